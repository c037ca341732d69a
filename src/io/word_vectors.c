/* Reader of static word vectors: see word_vectors.h. */
#include "word_vectors.h"

#include "base/alloc.h"
#include "base/number.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_LINE = 1 << 20, MAX_WIDTH = 1 << 16 };

bool ses_word_vectors_open(ses_word_vectors *v, const char *path, ses_err *e)
{
    return ses_text_reader_open(&v->lines, path, MAX_LINE, e);
}

void ses_word_vectors_from_text(ses_word_vectors *v, const char *text, size_t n)
{
    ses_text_reader_from_text(&v->lines, text, n, MAX_LINE);
}

void ses_word_vectors_free(ses_word_vectors *v)
{
    ses_text_reader_free(&v->lines);
    ses_buf_free(&v->word);
    ses_free(v->x);
    *v = (ses_word_vectors){ 0 };
}

/* Fields of a line from `at` on. */
static size_t count_fields(const char *s, size_t n)
{
    size_t fields = 0;
    for (size_t i = 0; i < n; i++) fields += s[i] != ' ' && (!i || s[i - 1] == ' ');
    return fields;
}

/* "400000 300": the header of word2vec; the width is the second number. */
static bool is_header(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((s[i] < '0' || s[i] > '9') && s[i] != ' ') return false;
    return count_fields(s, n) == 2;
}

/* The word ends where the last `width` fields begin: some words of GloVe contain spaces. */
static bool split(ses_word_vectors *v, const char *s, size_t n, ses_err *e)
{
    size_t fields = count_fields(s, n), at = 0, k = 0;
    if (fields < v->width + 1)
        return ses_fail(e, SES_EFORMAT, "%zu numbers, expected %zu after a word", fields ? fields - 1 : 0,
                        v->width);
    while (at < n && s[at] == ' ') at++;
    size_t begin = at, skip = fields - v->width;
    for (size_t f = 0; f < skip; f++) {
        while (at < n && s[at] != ' ') at++;
        if (f + 1 < skip)
            while (at < n && s[at] == ' ') at++;
    }
    v->word.len = 0;
    ses_buf_append(&v->word, s + begin, at - begin);
    while (at < n) {
        while (at < n && s[at] == ' ') at++;
        size_t end = at;
        while (end < n && s[end] != ' ') end++;
        double x;
        if (end == at) break;
        if (k == v->width || !ses_parse_number(s + at, end - at, &x) || x > 3e38 || x < -3e38)
            return ses_fail(e, SES_EFORMAT, "\"%s\" is not a finite number",
                            ses_quoted_of(s + at, end - at).s);
        v->x[k++] = (float)x;
        at = end;
    }
    return ses_buf_ok(&v->word, e);
}

static bool start(ses_word_vectors *v, size_t width, ses_err *e)
{
    if (!width || width > MAX_WIDTH)
        return ses_fail(e, SES_EFORMAT, "expected a word and up to %d numbers, separated by spaces",
                        MAX_WIDTH);
    v->width = width;
    v->x = ses_alloc_array(width, sizeof *v->x, e);
    return v->x != NULL;
}

bool ses_word_vectors_next(ses_word_vectors *v, ses_err *e)
{
    for (const char *s;;) {
        size_t n = 0;
        if (!ses_text_reader_next(&v->lines, &s, &n, e)) return false;
        v->end = !s;
        if (!s) return true;
        while (n && (s[n - 1] == ' ' || s[n - 1] == '\t')) n--;
        if (!n || (v->lines.line == 1 && is_header(s, n))) continue;
        bool ok = (v->width || start(v, count_fields(s, n) - 1, e)) && split(v, s, n, e);
        return ok || ses_wrap(e, "line %" PRIu64, v->lines.line);
    }
}
