/* Reader of CoNLL columns: one token per line, empty lines between sentences. */
#include "base/alloc.h"
#include "sesame/unstable/table.h"
#include "text_reader.h"

#include <string.h>

enum { MAX_SENTENCE = 16 << 20, MAX_COLUMNS = 256 };

struct ses_conll {
    ses_text_reader lines;
    bool conllu, keep_documents;
    size_t max;
    int *want;
    size_t n_want;
    size_t expected; /* columns per token; 0: not known yet */

    ses_buf bytes;
    size_t *begin, *len; /* [n, n_want] */
    size_t n, cap;       /* tokens */
    ses_string *out;
    size_t out_cap;
    bool starts_document, any; /* any: a sentence was returned */
};

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* Splits a line into fields; returns their number, at most MAX_COLUMNS. */
static size_t split_columns(const ses_conll *c, const char *s, size_t n, ses_string *f)
{
    size_t count = 0;
    for (size_t i = 0; i < n && count < MAX_COLUMNS;) {
        while (!c->conllu && i < n && is_blank(s[i])) i++;
        size_t begin = i;
        while (i < n && !(c->conllu ? s[i] == '\t' : is_blank(s[i]))) i++;
        if (c->conllu || i > begin) f[count++] = (ses_string){ s + begin, i - begin };
        if (c->conllu) i++;
    }
    return count;
}

static bool is_document(const ses_string *f) { return f->n == 10 && !memcmp(f->p, "-DOCSTART-", 10); }

static bool reserve(ses_conll *c, ses_err *e)
{
    if (c->n < c->cap) return true;
    size_t cap = c->cap ? 2 * c->cap : 64, count;
    if (!ses_mul_size(cap, c->n_want, &count)) return ses_fail(e, SES_ENOMEM, "too many columns");
    size_t *begin = ses_realloc_array(c->begin, count, sizeof *begin, e);
    if (begin) c->begin = begin;
    size_t *len = begin ? ses_realloc_array(c->len, count, sizeof *len, e) : NULL;
    if (!len) return false;
    c->len = len;
    c->cap = cap;
    return true;
}

static bool add_token(ses_conll *c, const ses_string *f, size_t n, ses_err *e)
{
    if (!reserve(c, e)) return false;
    for (size_t k = 0; k < c->n_want; k++) {
        int want = c->want[k];
        size_t at = want > 0 ? (size_t)want - 1 : n - (size_t)-want;
        if (at >= n)
            return ses_fail(e, SES_EFORMAT, "%zu column%s, column %d requested", n, n == 1 ? "" : "s", want);
        c->begin[c->n * c->n_want + k] = c->bytes.len;
        c->len[c->n * c->n_want + k] = f[at].n;
        ses_buf_append(&c->bytes, f[at].p, f[at].n);
        ses_buf_put(&c->bytes, 0);
    }
    c->n++;
    if (c->bytes.len > c->max) return ses_fail(e, SES_EFORMAT, "sentence longer than %zu bytes", c->max);
    return ses_buf_ok(&c->bytes, e);
}

/* Whether a line begins with a JSON object or an array of objects, as {"text": ... A token may be a brace. */
static bool is_json(const char *s, size_t n)
{
    size_t i = 0;
    bool brace = false;
    for (; i < n && (s[i] == '[' || s[i] == '{' || is_blank(s[i])); i++) brace |= s[i] == '{';
    return brace && i < n && (s[i] == '"' || s[i] == '\'') && memchr(s + i, ':', n - i);
}

/* Reads one line: a token, a comment or a document mark. */
static bool read_line(ses_conll *c, const char *s, size_t n, ses_err *e)
{
    ses_string f[MAX_COLUMNS];
    if (c->conllu && *s == '#') return true;
    if (is_json(s, n))
        return ses_fail(
            e, SES_EFORMAT,
            "JSON, expected CoNLL columns: a line for each token with its tag, an empty line after "
            "each sentence");
    size_t count = split_columns(c, s, n, f);
    if (!count) return true;
    if (count == MAX_COLUMNS) return ses_fail(e, SES_EFORMAT, "%d columns or more", (int)MAX_COLUMNS);
    if (c->conllu && (memchr(f->p, '-', f->n) || memchr(f->p, '.', f->n))) return true;
    if (is_document(f) && !c->conllu) {
        c->starts_document = true;
        return !c->keep_documents || add_token(c, f, count, e);
    }
    if (!c->expected) c->expected = count;
    if (count != c->expected)
        return ses_fail(e, SES_EFORMAT, "%zu column%s, the first token has %zu", count, count == 1 ? "" : "s",
                        c->expected);
    if (count == 1 && c->n_want > 1)
        return ses_fail(e, SES_EFORMAT, "1 column, expected a token and its tag with a blank or tab between");
    return add_token(c, f, count, e);
}

static bool return_sentence(ses_conll *c, ses_conll_sentence *s, ses_err *e)
{
    size_t count = c->n * c->n_want;
    if (!ses_array_reserve(&c->out, &c->out_cap, count, sizeof *c->out, e)) return false;
    for (size_t i = 0; i < count; i++) c->out[i] = (ses_string){ c->bytes.data + c->begin[i], c->len[i] };
    s->n = c->n;
    s->field = c->out;
    s->starts_document = c->starts_document;
    if (c->n) c->any = true, c->starts_document = false;
    return true;
}

bool ses_conll_next(ses_conll *c, ses_conll_sentence *s, ses_err *e)
{
    const char *p;
    size_t n;
    *s = (ses_conll_sentence){ .n_columns = c->n_want };
    c->n = c->bytes.len = 0;
    for (;;) {
        if (!ses_text_reader_next(&c->lines, &p, &n, e)) return false;
        if (!p || ses_text_is_blank(p, n)) {
            if (c->n) return return_sentence(c, s, e);
            if (p) continue;
            return c->any || ses_fail(e, SES_EFORMAT, "no sentences");
        }
        if (!c->n) s->line = c->lines.line;
        if (!read_line(c, p, n, e)) return ses_wrap(e, "line %llu", (unsigned long long)c->lines.line);
    }
}

static ses_conll *make(const ses_conll_options *o, ses_err *e)
{
    static const ses_conll_options none;
    static const int ends[] = { 1, -1 };
    ses_conll *c = ses_alloc(sizeof *c, e);
    if (!c) return NULL;
    if (!o) o = &none;
    c->conllu = o->conllu;
    c->lines.encoding = o->encoding;
    c->keep_documents = o->keep_documents;
    c->max = o->max_sentence ? o->max_sentence : MAX_SENTENCE;
    c->n_want = o->columns ? o->n_columns : SES_LEN(ends);
    c->want = ses_alloc_array(c->n_want, sizeof *c->want, e);
    if (!c->want) goto fail;
    for (size_t k = 0; k < c->n_want; k++) {
        c->want[k] = o->columns ? o->columns[k] : ends[k];
        if (!c->want[k] || c->want[k] > MAX_COLUMNS || c->want[k] < -MAX_COLUMNS) {
            ses_fail(e, SES_EARG, "column %d: columns count from 1, or from -1 at the end", c->want[k]);
            goto fail;
        }
    }
    return c;
fail:
    ses_conll_free(c);
    return NULL;
}

ses_conll *ses_conll_open(const char *path, const ses_conll_options *o, ses_err *e)
{
    ses_conll *c = make(o, e);
    if (c && ses_text_reader_open(&c->lines, path, c->max, e)) return c;
    ses_wrap(e, "%s", path);
    ses_conll_free(c);
    return NULL;
}

ses_conll *ses_conll_from_text(const char *text, size_t n, const ses_conll_options *o, ses_err *e)
{
    ses_conll *c = make(o, e);
    if (c) ses_text_reader_from_text(&c->lines, text, n, c->max);
    return c;
}

void ses_conll_free(ses_conll *c)
{
    if (!c) return;
    ses_text_reader_free(&c->lines);
    ses_buf_free(&c->bytes);
    ses_free(c->want);
    ses_free(c->begin);
    ses_free(c->len);
    ses_free(c->out);
    ses_free(c);
}
