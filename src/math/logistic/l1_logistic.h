/* Logistic regression with an L1 penalty: sum |w| + C sum log(1 + exp(-y (z.w + b))), with y = 1 or -1 and
 * features z of mean 0 and standard deviation 1. The intercept b is not penalized. The solution does not
 * depend on the number of threads.
 *
 * Threads: a call uses the threads of the pool; inputs are only read. */
#ifndef SES_MATH_L1_LOGISTIC_H
#define SES_MATH_L1_LOGISTIC_H

#include "base/thread_pool.h"

typedef struct ses_l1_problem {
    const float *x; /* value i of feature k: x[k * stride + i] */
    size_t n, features, stride;
    const uint8_t *positive; /* [n] */
    double c;                /* inverse strength of the penalty */
} ses_l1_problem;

typedef struct ses_l1_fit {
    double *weight; /* [features], of the standardized features: allocated by the caller */
    double intercept;
    size_t nonzero;
    size_t right;   /* samples that it classifies correctly */
    bool converged; /* false: the limit of passes was reached */
} ses_l1_fit;

/* Fails if all samples have the same label, or if a value is not finite. */
bool ses_l1_logistic(const ses_l1_problem *p, ses_thread_pool *pool, ses_l1_fit *fit, ses_err *e);

#endif
