/* Principal component analysis: exact, from the covariance matrix. */
#ifndef SES_MATH_PCA_H
#define SES_MATH_PCA_H

#include "math/math_exec.h"

typedef struct ses_pca {
    int64_t width, count;
    double *mean; /* [width] */
    ses_real *rounded_mean;
    double *component;   /* [count, width]: of length 1; the loading of largest size is positive */
    double *variance;    /* [count]: along each component, with divisor n - 1; descending */
    double all_variance; /* sum over all components */
} ses_pca;

/* Fits `count` <= width components to the rows x [n, width]. Fails if n < 1 or a number is not finite, and
 * names its row. */
bool ses_pca_fit(ses_pca *p, const ses_math *m, const ses_real *x, int64_t n, int64_t width, int64_t count,
                 ses_err *e);
/* y [n, count] = (x - mean) component' */
bool ses_pca_project(const ses_pca *p, const ses_math *m, const ses_real *x, int64_t n, ses_real *y,
                     ses_err *e);
void ses_pca_free(ses_pca *p);

#endif
