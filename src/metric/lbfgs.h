/* L-BFGS: minimizes a smooth function (Nocedal 1980), with a line search for the weak Wolfe conditions.
 * No state outlives the call; any thread may call. */
#ifndef SES_METRIC_LBFGS_H
#define SES_METRIC_LBFGS_H

#include "sesame/err.h"

/* Returns the function's value at x [n] and writes its gradient to g [n]. */
typedef double ses_lbfgs_fn(void *ctx, const double *x, double *g);

typedef struct ses_lbfgs_result {
    int64_t iterations;
    bool converged; /* max |g| <= tolerance, or <= 100 tolerance when no step lowers the value */
} ses_lbfgs_result;

/* Minimizes f from x [n], which is overwritten, until max |g| <= tolerance or for `iterations` iterations.
 * Fails if the initial value is not finite or memory runs out. */
bool ses_lbfgs_minimize(double *x, size_t n, ses_lbfgs_fn *f, void *ctx, double tolerance, int64_t iterations,
                        ses_lbfgs_result *r, ses_err *e);

#endif
