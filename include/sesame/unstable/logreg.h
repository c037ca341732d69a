/* Logistic regression on feature vectors: multinomial, L2 penalty, fitted by L-BFGS in double precision.
 * The objective is that of scikit-learn's LogisticRegression:
 *
 *     C * sum of the examples' losses + 1/2 |W|^2            the bias is not penalized
 *
 * Two classes have one row of weights, more classes have one row each.
 *
 * Ownership: the caller owns the struct and calls ses_logreg_free. A zeroed ses_logreg is empty and may be
 * freed. Threads: fit and free need exclusive access; predict only reads and may run on several threads. */
#ifndef SESAME_LOGREG_H
#define SESAME_LOGREG_H

#include "sesame/base.h"

SES_BEGIN_DECLS

typedef struct ses_logreg {
    size_t classes, width, rows; /* rows: 1 for two classes, else one per class */
    double *weight;              /* [rows, width] */
    double *bias;                /* [rows] */
    int64_t iterations;          /* L-BFGS iterations of the last fit */
    bool converged;
} ses_logreg;

typedef struct ses_logreg_options {
    double c;           /* inverse regularization strength; 0: 1 */
    double tolerance;   /* on the largest component of the mean loss's gradient; 0: 1e-7 */
    int64_t iterations; /* maximum; 0: 1000 */
    bool no_bias;
    bool balanced; /* weight classes by inverse frequency */
    /* Products run in f32 on the kernels and threads of this device, which is many times faster and reaches a
     * tolerance of about 1e-6. Ignored if balanced. NULL: in double, on the calling thread. */
    struct ses_device *device;
} ses_logreg_options;

/* Fits m to x [n, width] (row-major) with labels y [n] in 0 .. classes - 1. pick: NULL, or the n rows of x
 * and y to use. o: NULL for defaults. If m was fitted before with the same width and classes, its weights are
 * the starting point (warm start, e.g. for another C). Fails with SES_EARG on labels out of range, values
 * that are not finite or examples of a single class, with SES_ENOMEM if memory runs out; m stays freeable. */
bool ses_logreg_fit(ses_logreg *m, const float *x, const int32_t *y, const size_t *pick, size_t n,
                    size_t width, size_t classes, const ses_logreg_options *o, ses_err *e);

/* Writes the class probabilities [classes] of one row x [width]. m must be fitted. Cannot fail. */
void ses_logreg_predict(const ses_logreg *m, const float *x, double *probability);

/* Frees the weights and zeroes the struct. */
void ses_logreg_free(ses_logreg *m);

SES_END_DECLS

#endif
