/* Splitting of input text into documents. */
#include "corpus_text.h"

#include "base/alloc.h"

#include <string.h>

bool ses_texts_open(ses_texts *t, const char *path, bool lines, uint64_t offset, uint64_t line, ses_err *e)
{
    t->lines = lines;
    t->in = ses_input_stream_open_text(path, t->encoding, e);
    if (!t->in || !ses_input_stream_skip(t->in, offset, e)) return false;
    t->offset = ses_input_stream_offset(t->in);
    if (t->offset < offset)
        return ses_fail(e, SES_EFORMAT, "the file has %llu bytes, fewer than the interrupted build has read",
                        (unsigned long long)t->offset);
    t->line = line;
    return true;
}

void ses_texts_free(ses_texts *t)
{
    ses_input_stream_free(t->in);
    ses_buf_free(&t->buf);
    ses_free(t->doc);
    *t = (ses_texts){ .encoding = t->encoding };
}

static bool fill(ses_texts *t, size_t want, ses_err *e)
{
    while (t->buf.len < want && !t->end) {
        size_t got = 0, more = want - t->buf.len;
        uint64_t at = ses_input_stream_offset(t->in), left = at < t->limit ? t->limit - at : 0;
        if (t->limit && left < more) more = (size_t)left;
        if (!ses_buf_reserve(&t->buf, more)) return ses_buf_ok(&t->buf, e);
        if (!ses_input_stream_read(t->in, t->buf.data + t->buf.len, more, &got, e)) return false;
        t->buf.len += got;
        t->end = got == 0;
    }
    return true;
}

static bool is_blank(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r' && p[i] != '\v' && p[i] != '\f') return false;
    return true;
}

bool ses_texts_border(const char *path, bool lines, uint64_t at, uint64_t *border, ses_err *e)
{
    enum { CHUNK = 1 << 16 };
    *border = at;
    if (!at || at == UINT64_MAX) return true;
    int64_t before; /* the position of standard input, which is read again for the texts */
    ses_input_stream *in = ses_input_stream_open_start(path, &before, e);
    char *block = in ? ses_alloc(CHUNK, e) : NULL;
    bool ok = block && ses_input_stream_skip(in, at - 1, e), found = false;
    bool starts = false, blank = false; /* a line has started at `*border`; it is blank so far */
    size_t got = 1;
    for (*border = at - 1; ok && got && !found;) {
        uint64_t from = ses_input_stream_offset(in);
        ok = ses_input_stream_read(in, block, CHUNK, &got, e);
        for (size_t i = 0; ok && !found && i < got; i++) {
            found = starts && (lines || (blank && block[i] == '\n'));
            if (found) break;
            blank = blank && is_blank(block + i, 1);
            if (block[i] == '\n') *border = from + i + 1, starts = blank = true;
        }
    }
    if (ok && !found && !(starts && blank)) *border = ses_input_stream_offset(in); /* the end */
    ses_free(block);
    return (!in || ses_input_stream_close_start(in, before, e)) && ok;
}

static bool add(ses_texts *t, ses_text_document d, ses_err *e)
{
    if (!ses_array_reserve(&t->doc, &t->cap, t->n + 1, sizeof *t->doc, e)) return false;
    t->doc[t->n++] = d;
    return true;
}

/* Bytes of the line at p with its line end; *text: bytes before the line end. 0: the line is incomplete, and
 * the file has more. */
static size_t line_at(const ses_texts *t, const char *p, size_t *text)
{
    size_t left = (size_t)(t->buf.data + t->buf.len - p);
    const char *lf = left ? memchr(p, '\n', left) : NULL;
    *text = lf ? (size_t)(lf - p) : left;
    return lf ? *text + 1 : t->end ? left : 0;
}

/* Split position of a line that is too long: after a space, else between characters. */
static size_t split_point(const char *p, size_t n)
{
    for (size_t i = n; i > n / 2; i--)
        if (p[i - 1] == ' ') return i;
    while (n > 1 && ((unsigned char)p[n] & 0xC0) == 0x80) n--;
    return n;
}

/* The first document at or after p, without blank lines before it. *next: where to look for the next one; p
 * if more bytes must be read first. */
static ses_text_document document_at(ses_texts *t, const char *p, const char **next, uint64_t *lines)
{
    const char *begin = NULL, *at = p, *stop = NULL, *end = t->buf.data + t->buf.len;
    ses_text_document d = { 0 };
    uint64_t seen = 0;
    for (;;) {
        size_t text = 0, n = at < end ? line_at(t, at, &text) : 0;
        size_t so_far = begin ? (size_t)(at - begin) : 0;
        bool too_long =
            !t->lines && begin && so_far && so_far + (n ? n : (size_t)(end - at)) > CORPUS_DOCUMENT;
        bool huge = !t->lines && !too_long && (n ? n : (size_t)(end - at)) > CORPUS_DOCUMENT;
        if (!n && !t->end && !too_long && !huge) return *next = p, d; /* incomplete */
        if (huge) n = text = split_point(at, CORPUS_DOCUMENT), too_long = true;
        if (at >= end) break;
        d.continues = too_long;
        if (too_long && so_far) break;
        bool gap = !huge && is_blank(at, text);
        if (gap && begin) break;
        if (!gap && !begin) begin = at, d.line = t->line + *lines + seen + 1;
        at += n;
        if (!huge) seen++;
        if (!gap) stop = at;
        if (too_long || (t->lines && begin)) break;
    }
    *next = at;
    *lines += seen;
    if (begin) d.p = begin, d.n = (size_t)(stop - begin);
    return d;
}

bool ses_texts_next(ses_texts *t, size_t bytes, ses_err *e)
{
    size_t left = t->buf.len - t->used;
    if (t->used && left) memmove(t->buf.data, t->buf.data + t->used, left);
    t->buf.len = left;
    t->used = 0;
    t->n = 0;
    for (size_t want = bytes; !t->n; want = 2 * t->buf.len) {
        uint64_t lines = 0;
        if (!fill(t, want > bytes ? want : bytes, e)) return false;
        const char *p = t->buf.data, *next = p;
        for (; t->buf.len && p < t->buf.data + t->buf.len; p = next) {
            ses_text_document d = document_at(t, p, &next, &lines);
            if (d.p && !add(t, d, e)) return false;
            if (next == p) break;
        }
        t->used = t->buf.len ? (size_t)(p - t->buf.data) : 0;
        t->offset += t->used;
        t->line += lines;
        if (t->n || t->end) break;
        if (t->buf.len - t->used > CORPUS_LINE)
            return ses_fail(e, SES_EFORMAT, "line %llu: longer than %d MiB", (unsigned long long)t->line + 1,
                            CORPUS_LINE >> 20);
        if (t->used) { /* blank lines only */
            memmove(t->buf.data, t->buf.data + t->used, t->buf.len - t->used);
            t->buf.len -= t->used;
            t->used = 0;
        }
    }
    return true;
}
