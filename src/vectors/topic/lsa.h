/* Latent semantic analysis: the largest singular values of a term-document matrix [texts, words] and their
 * right singular vectors, by randomized subspace iteration (Halko, Martinsson, Tropp 2011) with Chebyshev
 * polynomials instead of plain powers. Bits depend on the data and the seed, not on the number of threads.
 *
 * Ownership: the caller frees the result. Threads: the pool's. */
#ifndef SES_VECTORS_LSA_H
#define SES_VECTORS_LSA_H

#include "base/thread_pool.h"
#include "term_counts.h"

typedef struct ses_lsa_settings {
    int64_t topics;
    int64_t oversampling; /* more vectors than topics in the iteration */
    int64_t rounds;       /* maximum */
    double tolerance;     /* stops once no singular value changes by more, relative to its size */
    uint64_t seed;
} ses_lsa_settings;

typedef struct ses_lsa {
    int64_t topics, words;
    double *value;  /* [topics]: singular values, falling; below 1e-7 of the first: 0 */
    double *vector; /* [topics, words]: of length 1, the component of largest size is positive; zero for a
                       singular value of 0 */
    int64_t rounds; /* rounds of the iteration */
    double change;  /* largest relative change of a singular value in the last round */
} ses_lsa;

/* progress may be NULL; it returns false to stop, and the fit then fails. *r must be zeroed; free it after a
 * failure, too. */
typedef bool ses_lsa_progress(void *ctx, int64_t round, double change);
bool ses_lsa_fit(ses_lsa *r, const ses_term_counts *b, const ses_lsa_settings *s, ses_thread_pool *pool,
                 ses_lsa_progress *progress, void *ctx, ses_err *e);
void ses_lsa_free(ses_lsa *r);
/* y [rows, topics] = b vector' */
void ses_lsa_project(const ses_lsa *r, const ses_term_counts *b, double *y, ses_thread_pool *pool);

#endif
