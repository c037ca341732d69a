/* Subwords of a vocabulary. */
#include "subwords.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/unicode/utf8.h"

typedef struct builder {
    ses_subwords *s;
    size_t n;
    int minn, maxn;
    int64_t buckets;
} builder;

static bool add(builder *b, int64_t row, ses_err *e)
{
    if (!ses_array_reserve(&b->s->row, &b->s->capacity, b->n + 1, sizeof *b->s->row, e)) return false;
    b->s->row[b->n++] = (int32_t)row;
    return true;
}

/* FNV-1a; bytes are sign-extended, as in fastText. */
static uint32_t hash(const char *s, size_t n)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++) h = (h ^ (uint32_t)(int32_t)(signed char)s[i]) * 16777619u;
    return h;
}

static bool add_ngrams(builder *b, const char *s, size_t len, size_t words, ses_err *e)
{
    for (size_t i = 0; i < len; i++) {
        if (ses_utf8_continues(s[i])) continue;
        size_t j = i;
        for (int n = 1; j < len && n <= b->maxn; n++) {
            for (j++; j < len && ses_utf8_continues(s[j]);) j++;
            if (n < b->minn || (n == 1 && (i == 0 || j == len))) continue; /* not < or > alone */
            if (!add(b, (int64_t)words + hash(s + i, j - i) % b->buckets, e)) return false;
        }
    }
    return true;
}

bool ses_subwords_build(ses_subwords *s, const ses_word_vocab *v, int minn, int maxn, int64_t buckets,
                        ses_err *e)
{
    builder b = { .s = s, .minn = minn, .maxn = maxn, .buckets = buckets };
    ses_buf text = { 0 };
    bool ok = (s->start = ses_alloc_array(v->n + 1, sizeof *s->start, e)) != NULL;
    for (size_t i = 0; ok && i < v->n; i++) {
        text.len = 0;
        ok = add(&b, (int64_t)i, e) && ses_buf_put(&text, '<') &&
             ses_buf_append(&text, v->word[i].text, v->word[i].len) && ses_buf_put(&text, '>') &&
             add_ngrams(&b, text.data, text.len, v->n, e);
        s->start[i + 1] = b.n;
    }
    if (!ok) ses_buf_ok(&text, e);
    ses_buf_free(&text);
    return ok;
}

void ses_subwords_free(ses_subwords *s)
{
    ses_free(s->start);
    ses_free(s->row);
    *s = (ses_subwords){ 0 };
}
