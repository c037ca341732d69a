/* Eigenvalues and eigenvectors of a symmetric matrix, in double. */
#ifndef SES_MATH_EIGEN_H
#define SES_MATH_EIGEN_H

#include "kernel/kernel.h"

/* The `count` largest eigenvalues of a [n, n] in descending order and their eigenvectors of length 1:
 * vector [count, n]. a is overwritten. Fails if an element is not finite or memory runs out. */
bool ses_eigen_symmetric(const ses_kernels *k, double *a, int64_t n, int64_t count, double *value,
                         double *vector, ses_err *e);

#endif
