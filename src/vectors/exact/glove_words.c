/* Words and vocabulary of GloVe: what vocab_count does. */
#include "glove_words.h"

#include "base/alloc.h"
#include "base/sort.h"
#include "base/str.h"

#include <string.h>

ses_glove_reader ses_glove_reader_of(const ses_mmap *file, const char *path)
{
    return (ses_glove_reader){
        .path = path, .start = file->data, .at = file->data, .end = file->data + file->size
    };
}

static ses_glove_token refuse(const ses_glove_reader *r, unsigned char c, ses_err *e)
{
    size_t line = 1;
    for (const unsigned char *p = r->start; p < r->at - 1; p++) line += *p == '\n';
    ses_fail(e, SES_EFORMAT, "%s: line %zu: byte 0x%02x in a word: GloVe's vocabulary file cannot hold it",
             r->path, line, c);
    return SES_GLOVE_INVALID;
}

/* A word that was truncated loses an incomplete UTF-8 character, as far as the original cares. */
static size_t trim_utf8(const char *w, size_t n)
{
    if ((w[n - 1] & 0x80) != 0x80) return n;
    if ((w[n - 1] & 0xC0) == 0xC0) return n - 1;
    if ((w[n - 2] & 0xE0) == 0xE0) return n - 2;
    if ((w[n - 3] & 0xF8) == 0xF0) return n - 3;
    return n;
}

ses_glove_token ses_glove_read(ses_glove_reader *r, ses_err *e)
{
    size_t n = 0;
    for (;; r->at++) {
        int c = r->at == r->end ? -1 : *r->at;
        if (c == '\r') continue;
        if (!n && c < 0) return SES_GLOVE_END;
        if (!n && c == '\n') {
            r->at++;
            return SES_GLOVE_LINE_END;
        }
        if (!n && (c == ' ' || c == '\t')) continue;
        if (c < 0 || c == ' ' || c == '\t' || c == '\n') break;
        if (!c || c == '\f' || c == '\v') {
            r->at++;
            return refuse(r, (unsigned char)c, e);
        }
        if (n < SES_GLOVE_MAX_WORD) r->word[n++] = (char)c;
    }
    if (r->at < r->end && *r->at != '\n') r->at++; /* the line end is the next token */
    r->len = n == SES_GLOVE_MAX_WORD ? trim_utf8(r->word, n) : n;
    r->word[r->len] = 0;
    return SES_GLOVE_WORD;
}

static int compare(const void *a, const void *b)
{
    const ses_glove_word *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    const char *s = x->text, *t = y->text;
    while (*s && *s == *t) s++, t++;
    return (signed char)*s - (signed char)*t;
}

static bool count_word(ses_glove_vocab *v, const ses_glove_reader *r, ses_err *e)
{
    int64_t known;
    bool fresh;
    if (!strcmp(r->word, "<unk>"))
        return ses_fail(e, SES_EARG, "%s: the word <unk> occurs; GloVe reserves it: replace it", r->path);
    if (ses_strmap_find(&v->rank, r->word, r->len, &known)) {
        v->word[known].count++;
        return true;
    }
    const char *copy = ses_arena_strndup(&v->text, r->word, r->len, e);
    if (!copy || !ses_array_reserve(&v->word, &v->capacity, v->n + 1, sizeof *v->word, e) ||
        !ses_strmap_insert(&v->rank, copy, r->len, (int64_t)v->n, &fresh, e))
        return false;
    v->word[v->n++] = (ses_glove_word){ copy, 1, r->len };
    return true;
}

bool ses_glove_count(ses_glove_vocab *v, const ses_mmap *file, const char *path, int64_t min_count,
                     ses_err *e)
{
    ses_glove_reader r = ses_glove_reader_of(file, path);
    ses_glove_token token;
    bool fresh, ok = true;
    while (ok && (token = ses_glove_read(&r, e)) != SES_GLOVE_END)
        ok = token == SES_GLOVE_LINE_END || (token == SES_GLOVE_WORD && count_word(v, &r, e));
    if (!ok || !ses_stable_sort(v->word, v->n, sizeof *v->word, compare, e)) return false;
    size_t kept = 0;
    while (kept < v->n && v->word[kept].count >= min_count) kept++;
    v->n = kept;
    if (!v->n)
        return ses_fail(e, SES_EARG, "%s: no word occurs at least %lld times (--min-count)", path,
                        (long long)min_count);
    ses_strmap_free(&v->rank);
    for (size_t i = 0; ok && i < v->n; i++)
        ok = ses_strmap_insert(&v->rank, v->word[i].text, v->word[i].len, (int64_t)i + 1, &fresh, e) != NULL;
    return ok;
}

void ses_glove_vocab_free(ses_glove_vocab *v)
{
    ses_arena_free(&v->text);
    ses_strmap_free(&v->rank);
    ses_free(v->word);
    *v = (ses_glove_vocab){ 0 };
}
