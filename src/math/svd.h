/* Singular value decomposition, in double. */
#ifndef SES_MATH_SVD_H
#define SES_MATH_SVD_H

#include "kernel/kernel.h"

/* The `count` largest singular values of w [rows, cols] in descending order, and the vectors of length 1 that
 * belong to them: value [count], left [count, rows], right [count, cols], so that w is the sum of
 * value[i] left[i]' right[i] if count is min(rows, cols). Vectors of the longer side are 0 where the value is
 * 0. Fails if an element is not finite or memory runs out. Any thread. */
bool ses_svd(const ses_kernels *k, const double *w, int64_t rows, int64_t cols, int64_t count, double *value,
             double *left, double *right, ses_err *e);

/* The same weighted by a symmetric matrix s [cols, cols] without negative eigenvalues: the sum of left[i]'
 * right[i] over i < count is the matrix y of this rank with the least trace((w - y) s (w - y)'). If s is the
 * mean of x' x over inputs x, this is the mean error of the product x w'. energy [count]: the parts of the
 * trace of w s w', *all, that the vectors keep. left and right are not of length 1. */
bool ses_svd_weighted(const ses_kernels *k, const double *w, const double *s, int64_t rows, int64_t cols,
                      int64_t count, double *energy, double *all, double *left, double *right, ses_err *e);

#endif
