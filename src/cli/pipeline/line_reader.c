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

static bool open_next(ses_line_reader *r, ses_err *e)
{
    r->name = *r->file++;
    r->n_files--;
    r->buf.len = r->at = 0;
    r->line = 0;
    r->end = false;
    r->bytes_before = r->bytes;
    r->in = ses_input_stream_open(r->name, e);
    return r->in || fail_in_file(r, e);
}

static void close_one(ses_line_reader *r)
{
    ses_input_stream_free(r->in);
    r->in = NULL;
    r->name = NULL;
}

/* Reads more bytes, after the unread rest of the buffer. */
static bool read_more(ses_line_reader *r, ses_err *e)
{
    size_t got = 0;
    if (r->at) {
        memmove(r->buf.data, r->buf.data + r->at, r->buf.len - r->at);
        r->buf.len -= r->at;
        r->at = 0;
    }
    if (r->buf.len > SES_MAX_LINE) return ses_fail_long_line(r->line + 1, e) || fail_in_file(r, e);
    if (!ses_buf_reserve(&r->buf, CHUNK)) return ses_buf_ok(&r->buf, e);
    if (!ses_input_stream_read(r->in, r->buf.data + r->buf.len, CHUNK, &got, e)) return fail_in_file(r, e);
    const char *format = r->line || r->buf.len ? NULL : ses_text_binary_format(r->buf.data, got);
    if (format) return ses_fail(e, SES_EFORMAT, "this file is %s", format) || fail_in_file(r, e);
    r->buf.len += got;
    r->bytes = r->bytes_before + (int64_t)ses_input_stream_consumed(r->in);
    r->end = got == 0;
    return true;
}

ses_line_status ses_line_next(ses_line_reader *r, const char **line, size_t *n, ses_err *e)
{
    size_t scanned = 0; /* bytes after `at` that hold no line end */
    for (;;) {
        if (!r->name) {
            if (!r->n_files) return SES_LINE_END;
            if (!open_next(r, e)) return SES_LINE_ERROR;
        }
        char *p = r->buf.data ? r->buf.data + r->at : NULL;
        size_t have = r->buf.len - r->at;
        char *lf = have > scanned ? memchr(p + scanned, '\n', have - scanned) : NULL;
        if (lf || (r->end && have)) {
            *n = lf ? (size_t)(lf - p) : have;
            r->at += *n + (lf != NULL);
            if (lf && *n && lf[-1] == '\r') --*n;
            *line = p;
            r->line++;
            return SES_LINE_OK;
        }
        scanned = have;
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
    if (!r->name) return r->n_files > 0;
    return r->end || memchr(r->buf.data + r->at, '\n', r->buf.len - r->at) || ses_input_stream_ready(r->in);
}

void ses_line_reader_close(ses_line_reader *r)
{
    close_one(r);
    ses_buf_free(&r->buf);
}
