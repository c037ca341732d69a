/* Word ids and n-gram counts for the text metrics. */
#include "word_ids.h"

#include "base/alloc.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"

#include <stdlib.h>
#include <string.h>

bool ses_char_is_space(uint32_t cp)
{
    if (cp < 0x80) return cp == ' ' || (cp >= 9 && cp <= 13) || (cp >= 0x1C && cp <= 0x1F);
    return cp < 0x110000 && ses_cp_is(cp, SES_CP_SPACE);
}

bool ses_char_is_word(uint32_t cp)
{
    if (cp >= 0x110000) return false;
    return cp == '_' || ses_gc_in(cp, (uint32_t)SES_GCS_L | (uint32_t)SES_GCS_N);
}

void ses_word_interner_free(ses_word_interner *x) { ses_strmap_free(&x->map); }

bool ses_word_ids_add(ses_word_ids *w, ses_word_interner *x, const char *s, size_t n, ses_err *e)
{
    if (!ses_array_reserve(&w->id, &w->cap, w->n + 1, sizeof *w->id, e)) return false;
    bool is_new;
    const int64_t *id = ses_strmap_insert(&x->map, s, n, (int64_t)x->map.count, &is_new, e);
    if (id) w->id[w->n++] = (int32_t)*id;
    return id != NULL;
}

bool ses_word_ids_split(ses_word_ids *w, ses_word_interner *x, const char *s, size_t n, ses_err *e)
{
    size_t begin = 0, k;
    for (size_t i = 0; i <= n; i += k) {
        uint32_t cp = ' ';
        k = i < n ? ses_char_at(s + i, n - i, &cp) : 1;
        if (!ses_char_is_space(cp)) continue;
        if (i > begin && !ses_word_ids_add(w, x, s + begin, i - begin, e)) return false;
        begin = i + k;
    }
    return true;
}

size_t ses_words_count(const char *s, size_t n)
{
    size_t count = 0, k;
    bool inside = false;
    for (size_t i = 0; i < n; i += k) {
        uint32_t cp;
        k = ses_char_at(s + i, n - i, &cp);
        bool space = ses_char_is_space(cp);
        count += !space && !inside;
        inside = !space;
    }
    return count;
}

void ses_word_ids_free(ses_word_ids *w)
{
    ses_free(w->id);
    *w = (ses_word_ids){ 0 };
}

static int compare_ngrams(const void *a, const void *b)
{
    const ses_ngram *x = a, *y = b;
    for (int k = 0; k < SES_MAX_NGRAM; k++)
        if (x->id[k] != y->id[k]) return x->id[k] < y->id[k] ? -1 : 1;
    return 0;
}

bool ses_ngrams_build(ses_ngrams *g, const ses_word_ids *w, size_t order, ses_err *e)
{
    g->n = w->n >= order ? w->n - order + 1 : 0;
    if (!ses_array_reserve(&g->item, &g->cap, g->n, sizeof *g->item, e)) return false;
    for (size_t i = 0; i < g->n; i++)
        for (size_t k = 0; k < SES_MAX_NGRAM; k++) g->item[i].id[k] = k < order ? w->id[i + k] : -1;
    if (g->n) qsort(g->item, g->n, sizeof *g->item, compare_ngrams);
    return true;
}

void ses_ngrams_free(ses_ngrams *g)
{
    ses_free(g->item);
    *g = (ses_ngrams){ 0 };
}

/* Occurrences of x in g, by binary search. */
static size_t count_of(const ses_ngrams *g, const ses_ngram *x)
{
    size_t low = 0, high = g->n, n = 0;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare_ngrams(&g->item[mid], x) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    while (low + n < g->n && compare_ngrams(&g->item[low + n], x) == 0) n++;
    return n;
}

size_t ses_ngrams_count_matches(const ses_ngrams *g, const ses_ngrams *other, size_t n_others)
{
    size_t match = 0;
    for (size_t i = 0, j; i < g->n; i = j) {
        size_t max = 0;
        for (j = i + 1; j < g->n && compare_ngrams(&g->item[i], &g->item[j]) == 0; j++) {}
        for (size_t k = 0; k < n_others; k++) {
            size_t n = count_of(&other[k], &g->item[i]);
            if (n > max) max = n;
        }
        match += max < j - i ? max : j - i;
    }
    return match;
}
