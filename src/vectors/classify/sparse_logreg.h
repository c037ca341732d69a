/* Logistic regression on sparse features: multinomial, L2 penalty, by L-BFGS in double precision. The
 * objective is that of sesame/unstable/logreg.h:
 *
 *     C * sum of the texts' losses + 1/2 |W|^2            the bias is not penalized
 *
 * Two classes have one row of weights, more have one row each. Loops run on the threads of a pool; sums have
 * a fixed order, so the bits do not depend on the number of threads. */
#ifndef SES_VECTORS_SPARSE_LOGREG_H
#define SES_VECTORS_SPARSE_LOGREG_H

#include "bag.h"
#include "base/thread_pool.h"

/* The features of texts, also by feature: feature f occurs in texts text[column[f]] ... */
typedef struct ses_sparse_texts {
    const ses_bags *bags; /* borrowed; `count` is the value of a feature */
    size_t width;
    size_t *column; /* [width + 1] */
    uint32_t *text; /* [values] */
    float *value;   /* [values] */
} ses_sparse_texts;

bool ses_sparse_texts_open(ses_sparse_texts *s, const ses_bags *b, size_t width, ses_err *e);
void ses_sparse_texts_free(ses_sparse_texts *s); /* back to zero */

typedef struct ses_sparse_fit {
    const ses_sparse_texts *x;
    const int32_t *y;    /* [n] */
    size_t classes;      /* 2: y is 0 or 1 */
    const double *scale; /* [width]: factor of each feature; NULL: 1 */
    double c;
    ses_thread_pool *pool;                                                 /* NULL: the calling thread */
    bool (*progress)(void *ctx, int64_t done, int64_t total, double loss); /* after evaluations; or NULL */
    void *ctx;
    /* results */
    double *weight; /* [rows, width], for features that are multiplied by scale; the caller's memory */
    double *bias;   /* [rows] */
    double loss;    /* mean over texts, without the penalty */
    int64_t iterations;
    bool converged;
} ses_sparse_fit;

/* Fits weight and bias from zero. False: out of memory, or progress returned false (`e` has no error then if
 * it set none: the caller reports the stop). */
bool ses_sparse_fit_run(ses_sparse_fit *f, ses_err *e);

#endif
