/* The least value of a smooth function (Nocedal 1980): L-BFGS, with a line search for Wolfe's conditions. */
#ifndef SES_TRAIN_LBFGS_H
#define SES_TRAIN_LBFGS_H

#include "sesame/err.h"

/* The value at x [n], and its gradient into g. */
typedef double ses_lbfgs_fn(void *ctx, const double *x, double *g);

typedef struct ses_lbfgs_result {
    int64_t iterations;
    bool converged; /* the largest |g| is at most the tolerance, or no step gets any lower */
} ses_lbfgs_result;

/* From x to the least; x is replaced. */
bool ses_lbfgs_minimize(double *x, size_t n, ses_lbfgs_fn *f, void *ctx, double tolerance, int64_t iterations,
                        ses_lbfgs_result *r, ses_err *e);

#endif
