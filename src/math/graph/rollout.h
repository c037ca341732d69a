/* Rollout of attention (Abnar and Zuidema 2020): how much of each input reaches a token through all layers.
 * Matrices are row-major in double; rows are queries. Nothing is allocated. */
#ifndef SES_MATH_ROLLOUT_H
#define SES_MATH_ROLLOUT_H

#include "sesame/base.h"

struct ses_thread_pool;

/* Mean over heads of weights [heads, rows, cols]. */
void ses_head_mean(const float *weights, int64_t heads, int64_t rows, int64_t cols, double *mean);

/* A' = A + I with rows divided by their sums: attention [n, n] and the residual connection. */
void ses_add_residual(double *a, int64_t n);

/* Divides each row by its sum; a row of zeros stays. */
void ses_normalize_rows(double *a, int64_t rows, int64_t cols);

/* out [n, cols] = a [n, k] b [k, cols], with `pool` or without (NULL). The sums have a fixed order. */
void ses_rollout_product(const double *a, const double *b, int64_t n, int64_t k, int64_t cols, double *out,
                         struct ses_thread_pool *pool);

#endif
