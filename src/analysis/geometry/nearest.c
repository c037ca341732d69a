/* Nearest neighbours by cosine: see nearest.h. */
#include "nearest.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/thread_pool.h"
#include "base/unicode/lowercase.h"
#include "base/unicode/utf8_replace.h"
#include "math/similarity.h"
#include "vectors/word_search.h"

#include <string.h>

/* The index of a cosine in the sorted list; k: it is below all of them. */
static size_t index_for(const ses_near *near, size_t n, size_t k, double cosine)
{
    size_t at = n;
    while (at && near[at - 1].cosine < cosine) at--;
    return at < k ? at : k;
}

size_t ses_nearest_rows(const float *x, size_t n, size_t width, size_t of, ses_near *near, size_t k)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == of) continue;
        double c = ses_cosine_of(x + i * width, x + of * width, width);
        size_t at = index_for(near, found, k, c);
        if (at == k) continue;
        if (found < k) found++;
        memmove(near + at + 1, near + at, (found - at - 1) * sizeof *near);
        near[at] = (ses_near){ c, i };
    }
    return found;
}

/* The word as it is written, or else in lower case; -1: neither. */
static int64_t find_word(const ses_vectors *v, ses_string word, ses_err *e)
{
    int64_t i = ses_vectors_find(v, word.p, word.n);
    if (i >= 0) return i;
    ses_buf lower = { 0 };
    ses_lower_append(&lower, word.p, word.n);
    if (ses_buf_ok(&lower, e) && lower.len) i = ses_vectors_find(v, lower.data, lower.len);
    ses_buf_free(&lower);
    return i;
}

static bool search(const ses_vectors *v, int64_t of, ses_near_word *near, size_t k, size_t *n, ses_err *e)
{
    ses_word_search *s = ses_word_search_new(v, ses_vectors_count(v), ses_cpu_count(), e);
    ses_word_hit *hits = s ? ses_alloc_array(k, sizeof *hits, e) : NULL;
    ses_word_query q = { .plus = 1, .exclude = &of, .n_exclude = 1 };
    if (hits) q.x = ses_word_search_unit(s, of);
    bool ok = hits && ses_word_search_run(s, &q, 1, (int64_t)k, hits, e);
    for (size_t i = 0; ok && i < k && hits[i].index >= 0; i++) {
        ses_string w = ses_vectors_word(v, hits[i].index);
        ses_buf text = { 0 }; /* words are bytes, reports need UTF-8 */
        ses_utf8_replace_invalid(&text, w.p, w.n);
        ok = ses_buf_ok(&text, e);
        near[i] = (ses_near_word){ (double)hits[i].score, text.data };
        if (ok) ++*n;
    }
    ses_free(hits);
    ses_word_search_free(s);
    return ok;
}

bool ses_nearest_static(const char *path, ses_string word, ses_near_word *near, size_t k, size_t *n,
                        ses_err *e)
{
    ses_vectors *v = ses_vectors_open(path, e);
    bool ok = v && ses_vectors_read_words(v, 0, e);
    int64_t of = ok ? find_word(v, word, e) : -1;
    *n = 0;
    ok = ok && (of < 0 || search(v, of, near, k, n, e));
    ses_vectors_free(v);
    return ok;
}
