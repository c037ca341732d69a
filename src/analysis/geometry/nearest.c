/* Nearest neighbours by cosine: see nearest.h. */
#include "nearest.h"

#include "analysis/math/similarity.h"
#include "base/alloc.h"
#include "io/word_vectors.h"

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

static bool same_word(const ses_buf *b, ses_string w, bool lower)
{
    if (b->len != w.n) return false;
    for (size_t i = 0; i < w.n; i++) {
        char c = w.p[i];
        if (lower && c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
        if (b->data[i] != c) return false;
    }
    return true;
}

/* The vector of the word as it is written, or else in lower case. Free with ses_free. */
static bool find_vector(const char *path, ses_string word, float **x, size_t *width, ses_buf *found,
                        ses_err *e)
{
    ses_word_vectors v = { 0 };
    bool ok = ses_word_vectors_open(&v, path, e), exact = false;
    while (ok && !exact && (ok = ses_word_vectors_next(&v, e)) && !v.end) {
        exact = same_word(&v.word, word, false);
        if (!exact && (*x || !same_word(&v.word, word, true))) continue;
        if (!*x) *x = ses_alloc_array(v.width, sizeof **x, e);
        ok = *x != NULL;
        if (!ok) break;
        memcpy(*x, v.x, v.width * sizeof **x);
        *width = v.width;
        found->len = 0;
        ses_buf_append(found, v.word.data, v.word.len);
        ok = ses_buf_ok(found, e);
    }
    ses_word_vectors_free(&v);
    return ok;
}

static bool keep_word(ses_near_word *near, size_t *n, size_t k, double c, const ses_buf *word, ses_err *e)
{
    size_t at = *n;
    while (at && near[at - 1].cosine < c) at--;
    if (at == k) return true;
    char *copy = ses_strndup(word->data, word->len, e);
    if (!copy) return false;
    if (*n == k)
        ses_free(near[k - 1].word);
    else
        ++*n;
    memmove(near + at + 1, near + at, (*n - at - 1) * sizeof *near);
    near[at] = (ses_near_word){ c, copy };
    return true;
}

bool ses_nearest_static(const char *path, ses_string word, ses_near_word *near, size_t k, size_t *n,
                        ses_err *e)
{
    float *x = NULL;
    size_t width = 0;
    ses_buf found = { 0 };
    ses_word_vectors v = { 0 };
    *n = 0;
    bool ok = find_vector(path, word, &x, &width, &found, e);
    if (ok && x) ok = ses_word_vectors_open(&v, path, e);
    while (ok && x && (ok = ses_word_vectors_next(&v, e)) && !v.end) {
        if (v.word.len == found.len && !memcmp(v.word.data, found.data, found.len)) continue;
        ok = keep_word(near, n, k, ses_cosine_of(v.x, x, width), &v.word, e);
    }
    ses_word_vectors_free(&v);
    ses_buf_free(&found);
    ses_free(x);
    return ok || ses_wrap(e, "%s", path);
}
