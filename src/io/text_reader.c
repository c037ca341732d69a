/* Line reader with checks for UTF-8 and for files that are not text. */
#include "text_reader.h"

#include "base/alloc.h"
#include "text_decoder.h"

#include <string.h>

enum { CHUNK = 1 << 16 };

bool ses_text_reader_open(ses_text_reader *l, const char *path, size_t max, ses_err *e)
{
    l->max = max;
    l->in = ses_input_stream_open_text(path, l->encoding, e);
    return l->in != NULL;
}

void ses_text_reader_from_text(ses_text_reader *l, const char *text, size_t n, size_t max)
{
    *l = (ses_text_reader){ .at = text, .left = n, .max = max, .done = true };
}

void ses_text_reader_free(ses_text_reader *l)
{
    ses_input_stream_free(l->in);
    ses_buf_free(&l->buf);
    ses_free(l->skipped);
    *l = (ses_text_reader){ 0 };
}

/* Reads more bytes after the unread ones. */
static bool fill(ses_text_reader *l, ses_err *e)
{
    if (l->left) memmove(l->buf.data, l->at, l->left);
    l->buf.len = l->left;
    size_t more = l->left > CHUNK ? l->left : CHUNK; /* doubles, so that a long line takes linear time */
    if (!ses_buf_reserve(&l->buf, more)) return ses_buf_ok(&l->buf, e);
    size_t got;
    if (!ses_input_stream_read(l->in, l->buf.data + l->buf.len, more, &got, e)) return false;
    l->buf.len += got;
    l->at = l->buf.data;
    l->left = l->buf.len;
    l->done = got == 0;
    return true;
}

bool ses_text_is_blank(const char *s, size_t n)
{
    while (n && (s[n - 1] == ' ' || s[n - 1] == '\t')) n--;
    return !n;
}

const char *ses_text_binary_format(const char *s, size_t n)
{
    static const struct {
        const char *begin;
        size_t n;
        const char *what;
        /* A table may begin with a cell PAR1, a gene: in Parquet a Thrift field of type i32 follows. */
    } kind[] = { { "\xff\xfe", 2, "UTF-16: convert it (--encoding utf-16)" },
                 { "\xfe\xff", 2, "UTF-16: convert it (--encoding utf-16)" },
                 { "BZh91AY&SY", 10, "compressed: unpack it first (bzip2 -dc)" },
                 { "PK\3\4", 4, "a zip archive, or a spreadsheet: save it as text" },
                 { "PAR1\x15", 5, "Parquet: save it as CSV or JSON lines" } };
    for (size_t i = 0; i < SES_LEN(kind); i++)
        if (n >= kind[i].n && !memcmp(s, kind[i].begin, kind[i].n)) return kind[i].what;
    return NULL;
}

static bool check(ses_text_reader *l, const char *s, size_t n, ses_err *e)
{
    const char *what = l->offset == 0 ? ses_text_binary_format(s, n) : NULL;
    if (what) return ses_fail(e, SES_EFORMAT, "this file is %s", what);
    return ses_text_good(s, n) == n || ses_text_check_lines(s, n, ses_text_reader_line(l), e);
}

/* Drops n of the unread bytes. */
static void drop(ses_text_reader *l, size_t n)
{
    l->at = l->at ? l->at + n : l->at;
    l->left -= n;
    l->offset += n;
    l->next = 0;
}

uint64_t ses_text_reader_offset(const ses_text_reader *l) { return l->offset + l->next; }

uint64_t ses_text_reader_line(ses_text_reader *l)
{
    uint64_t lines;
    if (l->skipped && ses_input_count_lines(l->skipped, l->skipped_to, &lines, NULL)) {
        l->line += lines - l->lines_before_skip;
        ses_free(l->skipped);
        l->skipped = NULL;
    }
    return l->line;
}

/* Drops the rest of a line, of any length. */
static bool drop_line(ses_text_reader *l, ses_err *e)
{
    for (;;) {
        const char *lf = l->left ? memchr(l->at, '\n', l->left) : NULL;
        drop(l, lf ? (size_t)(lf - l->at) + 1 : l->left);
        if (lf || l->done) return true;
        if (!fill(l, e)) return false;
    }
}

bool ses_text_reader_skip(ses_text_reader *l, const char *path, uint64_t to, ses_err *e)
{
    drop(l, l->next);
    if (to <= l->offset) return true;
    uint64_t gap = to - 1 - l->offset; /* the byte before `to` may end a line */
    l->lines_before_skip = ses_text_reader_line(l);
    if (gap > l->left && l->in && !l->done) {
        if (!ses_input_stream_skip(l->in, to - 1, e)) return false;
        l->left = 0;
        l->offset = to - 1;
    } else {
        drop(l, gap < l->left ? (size_t)gap : l->left);
    }
    if (!drop_line(l, e)) return false;
    l->skipped = ses_strdup(path, e);
    l->skipped_to = l->offset;
    return l->skipped != NULL;
}

bool ses_text_reader_peek(ses_text_reader *l, size_t n_lines, const char **s, size_t *n, bool *whole,
                          ses_err *e)
{
    for (size_t seen = 0, lines = 0;;) {
        for (; seen < l->left && lines < n_lines; seen++) lines += l->at[seen] == '\n';
        if (lines == n_lines || l->done || l->left > l->max) break;
        if (!fill(l, e)) return false;
    }
    *s = l->left ? l->at : "";
    *n = l->left;
    *whole = l->done;
    return true;
}

bool ses_text_reader_next(ses_text_reader *l, const char **s, size_t *n, ses_err *e)
{
    const char *lf = NULL;
    size_t seen = 0;
    *s = NULL;
    drop(l, l->next);
    for (;;) {
        lf = l->left > seen ? memchr(l->at + seen, '\n', l->left - seen) : NULL;
        seen = l->left;
        if (lf || l->done || seen > l->max) break;
        if (!fill(l, e)) return false;
    }
    size_t len = lf ? (size_t)(lf - l->at) : l->left;
    if (!l->left) return true;
    l->line++;
    l->next = lf ? len + 1 : len;
    if (len > l->max)
        return ses_fail(e, SES_EFORMAT, "line %llu: longer than %zu bytes",
                        (unsigned long long)ses_text_reader_line(l), l->max);
    const char *at = l->at;
    if (len && at[len - 1] == '\r') len--;
    if (!l->offset && len >= 3 && !memcmp(at, "\xef\xbb\xbf", 3)) at += 3, len -= 3;
    *s = at;
    *n = len;
    return check(l, at, len, e);
}
