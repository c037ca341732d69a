/* Linear CKA (Kornblith et al. 2019): similarity of representations of the same n rows, from 0 to 1,
 * independent of rotations, of the scale and of the width. Columns are centered.
 *     CKA(X, Y) = ||X'Y||^2 / (||X'X|| ||Y'Y||)
 * debiased: with the unbiased estimators of the three terms (Szekely and Rizzo), which do not grow with the
 * width; the result may be below 0. */
#ifndef SES_MATH_CKA_H
#define SES_MATH_CKA_H

#include "base/thread_pool.h"

typedef struct ses_cka_input {
    const float *x; /* [n, width] */
    size_t width;
} ses_cka_input;

/* Fills out [count, count]; NaN for a representation without variance. n >= 4. Needs 8 n width bytes for each
 * representation. The result does not depend on the number of threads. */
bool ses_cka_compute(const ses_cka_input *in, size_t count, size_t n, bool debiased, ses_thread_pool *pool,
                     double *out, ses_err *e);

#endif
