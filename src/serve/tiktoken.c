/* Reads .tiktoken files and joins the bytes of tokens. */
#include "tiktoken.h"

#include "base/alloc.h"
#include "base/base64.h"
#include "base/file.h"
#include "base/unicode/utf8_replace.h"

#include <string.h>

enum { MAX_FILE = 64 << 20, MAX_TOKENS = 1 << 20, MAX_TOKEN = 1024 };

struct ses_tiktoken {
    char *bytes;     /* the tokens, one after the other */
    uint32_t *begin; /* [n + 1] */
    size_t n;
};

void ses_tiktoken_free(ses_tiktoken *t)
{
    if (!t) return;
    ses_free(t->bytes);
    ses_free(t->begin);
    ses_free(t);
}

size_t ses_tiktoken_size(const ses_tiktoken *t) { return t->n; }

static size_t count_lines(const char *text, size_t n)
{
    size_t lines = 0;
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    return lines + (n && text[n - 1] != '\n');
}

/* One line: the next token must have the next id. */
static bool add_line(ses_tiktoken *t, const char *line, size_t n, ses_err *e)
{
    const char *space = memchr(line, ' ', n);
    size_t length = space ? (size_t)(space - line) : 0, digits = n - length - 1, id = 0, bytes = 0;
    bool ok = space && digits && digits < 8 && length && length <= MAX_TOKEN;
    for (size_t i = 0; ok && i < digits; i++) {
        char c = space[1 + i];
        ok = c >= '0' && c <= '9';
        id = 10 * id + (size_t)(c - '0');
    }
    ok =
        ok && id == t->n && ses_base64_decode(line, length, t->bytes + t->begin[t->n], &bytes, NULL) && bytes;
    if (!ok)
        return ses_fail(e, SES_EFORMAT, "line %zu: expected the base64 of a token, a space and the id %zu",
                        t->n + 1, t->n);
    t->begin[t->n + 1] = t->begin[t->n] + (uint32_t)bytes;
    t->n++;
    return true;
}

ses_tiktoken *ses_tiktoken_parse(const char *text, size_t n, ses_err *e)
{
    size_t lines = count_lines(text, n);
    ses_tiktoken *t = ses_alloc(sizeof *t, e);
    bool ok = t && ((lines && lines <= MAX_TOKENS && n <= MAX_FILE) ||
                    ses_fail(e, SES_EFORMAT, "expected 1 to %d lines", MAX_TOKENS));
    if (ok) {
        t->bytes = ses_alloc(n, e); /* base64 is longer than its bytes */
        t->begin = ses_alloc_array(lines + 1, sizeof *t->begin, e);
        ok = t->bytes && t->begin;
    }
    for (size_t at = 0; ok && at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t length = end ? (size_t)(end - text) - at : n - at;
        ok = add_line(t, text + at, length && text[at + length - 1] == '\r' ? length - 1 : length, e);
        at += length + 1;
    }
    if (ok) return t;
    ses_tiktoken_free(t);
    return NULL;
}

ses_tiktoken *ses_tiktoken_open(const char *path, ses_err *e)
{
    size_t n = 0;
    char *text = ses_file_read(path, MAX_FILE, &n, e);
    ses_tiktoken *t = text ? ses_tiktoken_parse(text, n, e) : NULL;
    if (text && !t) ses_wrap(e, "%s", path);
    ses_free(text);
    return t;
}

bool ses_tiktoken_decode(const ses_tiktoken *t, const ses_json *ids, ses_buf *out, ses_err *e)
{
    ses_buf b = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < ses_json_len(ids); i++) {
        int64_t id;
        ok = (ses_json_int(ses_json_at(ids, i), &id) && id >= 0 && (size_t)id < t->n) ||
             ses_fail(e, SES_EARG, "element %zu is not one of the %zu token ids", i, t->n);
        if (ok) ses_buf_append(&b, t->bytes + t->begin[id], t->begin[id + 1] - t->begin[id]);
    }
    ok = ok && ses_buf_ok(&b, e) &&
         (ses_utf8_replace_invalid(out, b.data ? b.data : "", b.len) || ses_buf_ok(out, e));
    ses_buf_free(&b);
    return ok;
}
