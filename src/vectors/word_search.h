/* Exact search in word vectors by cosine: for each query the k nearest of the first n words, best first,
 * equal ones by index. Products run in f32 on the CPU kernels; results do not depend on the number of threads
 * or on the other queries.
 *
 * Ownership: a search copies the normalized vectors and borrows nothing. Threads: one search at a time. */
#ifndef SES_VECTORS_WORD_SEARCH_H
#define SES_VECTORS_WORD_SEARCH_H

#include "sesame/vectors.h"

typedef struct ses_word_search ses_word_search;

typedef struct ses_word_hit {
    int64_t index; /* -1: fewer than k words are left */
    float score;
} ses_word_hit;

/* A query is the sum of unit vectors, or of 3CosMul (Levy and Goldberg 2014) several of them:
 *     sum:      score(w) = cos(w, x)
 *     3CosMul:  score(w) = prod over plus (1 + cos(w, x)) / 2
 *                          / (prod over minus (1 + cos(w, x)) / 2 + 1e-6) */
typedef struct ses_word_query {
    const ses_real *x; /* [plus + minus, dim] unit vectors, plus first; a sum: [1, dim] */
    int plus, minus;   /* sum: 1, 0 */
    bool multiply;
    const int64_t *exclude; /* [n_exclude]: words that are not results */
    int64_t n_exclude;
} ses_word_query;

enum { SES_WORD_SEARCH_MAX_TERMS = 64 };

/* Loads the first n words that v has read, with that many threads. */
ses_word_search *ses_word_search_new(const ses_vectors *v, int64_t n, int threads, ses_err *e);
void ses_word_search_free(ses_word_search *s); /* s may be NULL */
/* Word i as a unit vector [dim]; zero if its vector is zero. Borrowed. */
const ses_real *ses_word_search_unit(const ses_word_search *s, int64_t i);

/* Answers n queries: hits [n, k]. */
bool ses_word_search_run(const ses_word_search *s, const ses_word_query *q, int64_t n, int64_t k,
                         ses_word_hit *hits, ses_err *e);

/* Divides x [dim] by its length; zero stays zero. */
void ses_unit_vector(ses_real *out, const float *x, int64_t dim);

#endif
