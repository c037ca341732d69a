/* Exact nearest neighbours by brute force: matrix products select candidates, whose distances are then
 * computed in double. Neighbours whose squared distances differ by less than the rounding of an f32 product
 * (about 1e-7 of the squared length of a vector) may be in either order beyond the 16 extra candidates. */
#ifndef SES_MATH_NEIGHBOURS_H
#define SES_MATH_NEIGHBOURS_H

#include "math/math_exec.h"

typedef struct ses_neighbours {
    int64_t rows, k;
    int32_t *index;   /* [rows, k]: nearest first, then by index */
    double *distance; /* [rows, k]: Euclidean */
} ses_neighbours;

/* The k nearest other rows of each row of x [n, width], k < n. pick [rows], or NULL: only these rows (rows of
 * the result in this order). n is at most INT32_MAX. */
bool ses_neighbours_find(ses_neighbours *nb, const ses_math *m, const ses_real *x, int64_t n, int64_t width,
                         int64_t k, const int32_t *pick, int64_t rows, ses_err *e);
void ses_neighbours_free(ses_neighbours *nb);

/* Blocks of scores: for queries and all rows j of x, score = x_i . x_j - |x_j|^2 / 2, which is larger for
 * nearer rows. For each block of queries, `use` runs in parallel for each query with its scores [n]. */
typedef void ses_score_fn(void *ctx, int64_t query, const ses_real *score, void *scratch);
bool ses_score_rows(const ses_math *m, const ses_real *x, int64_t n, int64_t width, const int32_t *pick,
                    int64_t rows, const char *label, ses_score_fn *use, void *ctx, ses_err *e);

#endif
