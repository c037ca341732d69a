/* Reads lines of files and standard input. */
#include "line_reader.h"

#include "cli/line_limit.h"
#include "io/text_reader.h"

#include <string.h>

enum { CHUNK = 1 << 18 };

static bool fail_in_file(const ses_line_reader *r, ses_err *e)
{
    return ses_wrap(e, "%s", strcmp(r->name, "-") ? r->name : "standard input");
}

ses_span ses_line_whole_file(const char *name) { return (ses_span){ .file = name, .end = UINT64_MAX }; }

/* Opens the next part. It begins with the first line that starts at its first byte or later: the byte before
 * it may end a line. */
static bool open_next(ses_line_reader *r, ses_err *e)
{
    r->open = *r->span++;
    r->n_spans--;
    r->name = r->open.file;
    r->buf.len = r->at = 0;
    r->line = 0;
    r->end = false;
    r->offset = r->first = r->open.begin ? r->open.begin - 1 : 0;
    r->in = ses_input_stream_open_text(r->name, r->encoding, e);
    if (!r->in || !ses_input_stream_skip(r->in, r->offset, e)) return fail_in_file(r, e);
    r->bytes_before = r->bytes - (int64_t)ses_input_stream_consumed(r->in);
    return true;
}

static void close_one(ses_line_reader *r)
{
    r->open = (ses_span){ 0 };
    ses_input_stream_free(r->in);
    r->in = NULL;
    r->name = NULL;
}

/* The line before the part is not over. */
static bool is_aligning(const ses_line_reader *r) { return r->open.begin && r->first < r->open.begin; }

/* Reads more bytes, after the unread rest of the buffer. */
static bool read_more(ses_line_reader *r, ses_err *e)
{
    size_t got = 0;
    if (r->at) {
        memmove(r->buf.data, r->buf.data + r->at, r->buf.len - r->at);
        r->buf.len -= r->at;
        r->offset += r->at;
        r->at = 0;
    }
    if (r->buf.len > SES_MAX_LINE && !is_aligning(r))
        return ses_fail_long_line(r->line + 1, e) || fail_in_file(r, e);
    if (!ses_buf_reserve(&r->buf, CHUNK)) return ses_buf_ok(&r->buf, e);
    if (!ses_input_stream_read(r->in, r->buf.data + r->buf.len, CHUNK, &got, e)) return fail_in_file(r, e);
    const char *format = r->offset || r->line || r->buf.len ? NULL : ses_text_binary_format(r->buf.data, got);
    if (format) return ses_fail(e, SES_EFORMAT, "this file is %s", format) || fail_in_file(r, e);
    r->buf.len += got;
    r->bytes = r->bytes_before + (int64_t)ses_input_stream_consumed(r->in);
    r->end = got == 0;
    return true;
}

int64_t ses_line_progress(const ses_line_reader *r)
{
    uint64_t read = r->in ? ses_input_stream_offset(r->in) : 0, unread = r->buf.len - r->at;
    if (!read || unread > read) return r->bytes;
    double part = (double)(read - unread) / (double)read;
    return r->bytes_before + (int64_t)((double)(r->bytes - r->bytes_before) * part);
}

ses_line_status ses_line_next(ses_line_reader *r, const char **line, size_t *n, ses_err *e)
{
    size_t scanned = 0; /* bytes after `at` that hold no line end */
    for (;;) {
        if (!r->name) {
            if (!r->n_spans) return SES_LINE_END;
            if (!open_next(r, e)) return SES_LINE_ERROR;
        }
        if (!is_aligning(r) && r->offset + r->at >= r->open.end) {
            close_one(r);
            scanned = 0;
            continue;
        }
        char *p = r->buf.data ? r->buf.data + r->at : NULL;
        size_t have = r->buf.len - r->at;
        char *lf = have > scanned ? memchr(p + scanned, '\n', have - scanned) : NULL;
        if (lf || (r->end && have)) {
            *n = lf ? (size_t)(lf - p) : have;
            r->start = r->offset + r->at;
            r->at += *n + (lf != NULL);
            if (is_aligning(r)) {
                r->first = r->offset + r->at;
                scanned = 0;
                continue;
            }
            if (lf && *n && lf[-1] == '\r') --*n;
            bool mark = !r->start && *n >= 3 && !memcmp(p, "\xef\xbb\xbf", 3); /* a byte order mark */
            if (mark) p += 3, *n -= 3;
            *line = p;
            r->line++;
            return SES_LINE_OK;
        }
        scanned = have;
        if (is_aligning(r)) r->at += have, scanned = 0; /* a line of any length */
        if (r->end) {
            close_one(r);
            scanned = 0;
        } else if (!read_more(r, e)) {
            return SES_LINE_ERROR;
        }
    }
}

bool ses_line_ready(const ses_line_reader *r)
{
    if (!r->name) return r->n_spans > 0;
    return r->end || memchr(r->buf.data + r->at, '\n', r->buf.len - r->at) || ses_input_stream_ready(r->in);
}

void ses_line_reader_close(ses_line_reader *r)
{
    close_one(r);
    ses_buf_free(&r->buf);
}
