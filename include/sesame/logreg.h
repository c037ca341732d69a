/* Logistic regression on vectors of features: multinomial, L2 penalty, fitted by L-BFGS in double precision.
 * The objective is scikit-learn's (LogisticRegression):
 *
 *     C * sum of the examples' losses + 1/2 |W|^2            the bias is not penalized
 *
 * Two classes have one row of weights, more have one each. A zeroed ses_logreg is empty and may be freed; one
 * that is fitted may be asked from several threads. */
#ifndef SESAME_LOGREG_H
#define SESAME_LOGREG_H

#include "sesame/err.h"

SES_BEGIN_DECLS

typedef struct ses_logreg {
    size_t classes, width, rows; /* rows: 1 for two classes */
    double *weight;              /* [rows, width] */
    double *bias;                /* [rows] */
    int64_t iterations;
    bool converged;
} ses_logreg;

typedef struct ses_logreg_options {
    double c;           /* 0: 1 */
    double tolerance;   /* of the largest part of the gradient of the mean; 0: 1e-7 */
    int64_t iterations; /* at most; 0: 1000 */
    bool no_bias;
    bool balanced; /* classes weigh the same, however many examples they have */
} ses_logreg_options;

/* x [n, width] in rows; pick NULL, or the n rows of x and y to use. A model that was fitted before is
 * where it begins: zero it first, or keep it for another C. */
bool ses_logreg_fit(ses_logreg *m, const float *x, const int32_t *y, const size_t *pick, size_t n,
                    size_t width, size_t classes, const ses_logreg_options *o, ses_err *e);
void ses_logreg_predict(const ses_logreg *m, const float *x, double *probability); /* of one row: [classes] */
void ses_logreg_free(ses_logreg *m);

SES_END_DECLS

#endif
