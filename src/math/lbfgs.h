/* L-BFGS: minimizes a smooth function (Nocedal 1980), with a line search for the weak Wolfe conditions.
 * No state outlives the call; any thread may call. */
#ifndef SES_MATH_LBFGS_H
#define SES_MATH_LBFGS_H

#include "sesame/base.h"

typedef struct ses_lbfgs_problem {
    /* Returns the function's value at x [n] and writes its gradient to g [n]. */
    double (*value)(void *ctx, const double *x, double *g);
    /* Multiplies q [n] by an approximation of the inverse Hessian, which must be symmetric and positive
     * definite. It saves iterations if the problem is ill-conditioned. NULL: the identity. */
    void (*precondition)(void *ctx, double *q);
    /* Relative rounding error of the value. A step whose value differs by less is accepted by its slope
     * (Hager and Zhang 2005). 0: exact. */
    double noise;
    void *ctx;
} ses_lbfgs_problem;

typedef struct ses_lbfgs_result {
    int64_t iterations;
    bool converged; /* max |g| <= tolerance, or <= 100 tolerance when no step lowers the value */
} ses_lbfgs_result;

/* Minimizes p from x [n], which is overwritten, until max |g| <= tolerance or for `iterations` iterations.
 * Fails if the initial value is not finite or memory runs out. */
bool ses_lbfgs_minimize(double *x, size_t n, const ses_lbfgs_problem *p, double tolerance, int64_t iterations,
                        ses_lbfgs_result *r, ses_err *e);

#endif
