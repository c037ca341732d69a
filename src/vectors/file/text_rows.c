/* Reader of word vectors as text. */
#include "text_rows.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/unicode/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAX_HEADER = 64, MAX_NUMBER = 512 };

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* The line at byte `at`, without its end and trailing blanks; *next: the line after it. */
static ses_string line_at(const ses_vectors *v, size_t at, size_t *next)
{
    const char *s = v->p + at, *end = memchr(s, '\n', v->n - at);
    size_t n = end ? (size_t)(end - s) : v->n - at;
    *next = at + n + (end != NULL);
    while (n && (is_blank(s[n - 1]) || s[n - 1] == '\r')) n--;
    return (ses_string){ s, n };
}

static uint64_t line_number(const ses_vectors *v, const char *at)
{
    uint64_t line = 1;
    for (const char *s = v->p; (s = memchr(s, '\n', (size_t)(at - s))); s++) line++;
    return line;
}

static bool read_count(const char **s, const char *end, int64_t *x)
{
    const char *first = *s;
    *x = 0;
    for (; *s < end && **s >= '0' && **s <= '9' && *x < INT64_MAX / 100; ++*s) *x = *x * 10 + (**s - '0');
    return *s > first;
}

bool ses_vector_header_read(const ses_vectors *v, ses_vector_header *h)
{
    size_t n = v->n < MAX_HEADER ? v->n : MAX_HEADER;
    const char *s = v->p, *end = n ? memchr(s, '\n', n) : NULL;
    if (!end) end = s + n;
    h->size = (size_t)(end - v->p) + (end < v->p + n);
    if (!read_count(&s, end, &h->count) || s == end || !is_blank(*s)) return false;
    while (s < end && is_blank(*s)) s++;
    if (!read_count(&s, end, &h->dim)) return false;
    while (s < end && (is_blank(*s) || *s == '\r')) s++;
    return s == end;
}

/* ---- fields ---- */

/* Number of blanks. A plain loop, which the compiler vectorizes: it runs over the whole file. */
static size_t count_blanks(const char *s, size_t n)
{
    size_t blanks = 0;
    for (size_t i = 0; i < n; i++) blanks += s[i] == ' ';
    return blanks;
}

static size_t count_fields(const char *s, size_t n)
{
    size_t fields = 0;
    for (size_t i = 0; i < n; i++) fields += !is_blank(s[i]) && (!i || is_blank(s[i - 1]));
    return fields;
}

/* The word that begins a line; it is empty if fewer than `dim` numbers follow. */
static ses_string word_of(ses_string line, size_t dim, ses_err *e)
{
    const char *s = line.p, *end = line.p + line.n;
    size_t n = 0, fields;
    if (s[0] != ' ' && count_blanks(s, line.n) == dim) /* single blanks: the usual case */
        return (ses_string){ s, (size_t)((const char *)memchr(s, ' ', line.n) - s) };
    fields = count_fields(s, line.n);
    if (fields < dim + 1) {
        ses_fail(e, SES_EFORMAT, "%zu numbers, expected %zu after a word", fields ? fields - 1 : 0, dim);
        return (ses_string){ 0 };
    }
    while (s < end && is_blank(*s)) s++;
    const char *at = s;
    for (size_t skip = fields - dim; skip--; n = (size_t)(at - s)) {
        while (at < end && is_blank(*at)) at++;
        while (at < end && !is_blank(*at)) at++;
    }
    return (ses_string){ s, n };
}

/* Reads `dim` numbers from s on; *s: behind them. */
static bool read_numbers(const char **s, const char *end, int64_t dim, float *out, ses_err *e)
{
    for (int64_t k = 0; k < dim; k++) {
        double x;
        while (*s < end && is_blank(**s)) ++*s;
        const char *first = *s;
        while (*s < end && !is_blank(**s) && **s != '\n' && **s != '\r') ++*s;
        size_t n = (size_t)(*s - first);
        if (n > MAX_NUMBER || !ses_parse_number(first, n, &x) || !isfinite((float)x))
            return ses_fail(e, SES_EFORMAT, "number %" PRId64 ", \"%s\", is not a finite number", k + 1,
                            ses_quoted_of(first, n).s);
        out[k] = (float)x;
    }
    return true;
}

/* Whether bytes are not a text: invalid UTF-8, except for a character that the end splits, or control
 * characters. */
static bool has_binary(const char *p, size_t n)
{
    if (ses_utf8_valid(p, n) + 4 <= n) return true;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)p[i] < ' ' && !memchr("\t\n\r", p[i], 3)) return true;
    return false;
}

bool ses_vector_row_is_text(const ses_vectors *v, const ses_vector_header *h)
{
    size_t next;
    if (h->size >= v->n || h->dim < 1 || h->dim > SES_VECTORS_MAX_DIM) return true;
    ses_string line = line_at(v, h->size, &next);
    size_t n = line.n;
    if (n > SES_VECTORS_MAX_WORD) n = SES_VECTORS_MAX_WORD;
    if (has_binary(line.p, n)) return false;
    /* a number of a binary row may contain a line feed: look at the bytes of a whole row */
    size_t left = v->n - h->size; /* `line` lacks the blanks at its end */
    const char *blank = memchr(line.p, ' ', left < SES_VECTORS_MAX_WORD ? left : SES_VECTORS_MAX_WORD);
    size_t row = blank ? (size_t)(blank - line.p) + 1 + 4 * (size_t)h->dim : n;
    return !has_binary(line.p, row < left ? row : left);
}

/* ---- rows ---- */

bool ses_text_rows_open(ses_vectors *v, const ses_vector_header *h, ses_err *e)
{
    size_t next, need;
    if (h) {
        v->at = h->size, v->dim = h->dim, v->stated = h->count;
        if (!ses_vector_dim_check(h->dim, e)) return false;
        /* A row has a word, `dim` times a blank and a digit, and a line end, which the last one may lack. */
        bool fits =
            ses_mul_size((size_t)h->count, 2 * (size_t)h->dim + 2, &need) && need <= v->n - h->size + 1;
        return fits || ses_fail(e, SES_EFORMAT,
                                "the header gives %" PRId64 " words of %" PRId64
                                " numbers, which do not fit into %zu bytes: the file is truncated",
                                h->count, h->dim, v->n);
    }
    ses_string line = { 0 };
    for (next = 0; !line.n && next < v->n;) line = line_at(v, next, &next);
    v->dim = (int64_t)count_fields(line.p, line.n) - 1;
    return (v->dim >= 1 && v->dim <= SES_VECTORS_MAX_DIM) ||
           ses_fail(e, SES_EFORMAT,
                    "line %" PRIu64 ": expected a word and 1 to %d numbers, separated by blanks",
                    line.p ? line_number(v, line.p) : 1, SES_VECTORS_MAX_DIM);
}

bool ses_text_rows_next(ses_vectors *v, ses_vector_row *row, ses_err *e)
{
    ses_string line = { 0 };
    while (!line.n && v->at < v->n) line = line_at(v, v->at, &v->at);
    if (!line.n) return true;
    if (v->stated >= 0 && v->read == v->stated) {
        ses_fail(e, SES_EFORMAT, "the header gives %" PRId64 " words, the file has more", v->stated);
        goto fail;
    }
    ses_string word = word_of(line, (size_t)v->dim, e);
    if (!word.p || !ses_vector_word_check(word.p, word.n, e)) goto fail;
    *row = (ses_vector_row){ word.p, word.p + word.n, (uint32_t)word.n };
    return true;
fail:
    return ses_wrap(e, "line %" PRIu64, line_number(v, line.p));
}

bool ses_text_rows_get(const ses_vectors *v, const ses_vector_row *row, float *out, ses_err *e)
{
    const char *s = row->data, *end = v->p + v->n;
    return read_numbers(&s, end, v->dim, out, e) || ses_wrap(e, "line %" PRIu64, line_number(v, row->data));
}

/* ---- formats with a header ---- */

bool ses_text_rows_detect(const ses_vectors *v)
{
    ses_vector_header h;
    return !v->is_folder && ses_vector_header_read(v, &h) && ses_vector_row_is_text(v, &h);
}

bool ses_text_rows_open_header(ses_vectors *v, ses_err *e)
{
    ses_vector_header h;
    return ses_text_rows_open(v, ses_vector_header_read(v, &h) ? &h : NULL, e);
}

/* ---- writing ---- */

void ses_vector_header_put(ses_buf *out, int64_t count, int64_t dim)
{
    ses_buf_appendf(out, "%" PRId64 " %" PRId64 "\n", count, dim);
}

const char *ses_text_rows_refuses(ses_string word)
{
    if (!word.n) return "an empty word, which the format cannot store; safetensors can";
    for (size_t i = 0; i < word.n; i++)
        if (is_blank(word.p[i]) || word.p[i] == '\n' || word.p[i] == '\r')
            return "a blank or line end in the word, which the format cannot store; safetensors keeps blanks";
    return NULL;
}

void ses_text_row_put(ses_buf *out, const ses_vector_line *l, ses_text_number kind, bool blank_first)
{
    char text[SES_NUMBER_CHARS];
    ses_buf_append(out, l->word.p, l->word.n);
    if (!blank_first) ses_buf_put(out, ' ');
    for (int64_t k = 0; k < l->dim; k++) {
        if (blank_first) ses_buf_put(out, ' ');
        if (l->full_precision)
            ses_buf_append(out, text, ses_format_float(l->x[k], text));
        else
            ses_buf_appendf(out, kind == SES_TEXT_SIX_DECIMALS ? "%f" : "%.9g", (double)l->x[k]);
        if (!blank_first) ses_buf_put(out, ' ');
    }
    ses_buf_put(out, '\n');
}
