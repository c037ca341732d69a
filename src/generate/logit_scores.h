/* Probabilities and rankings of one row of logits. Computed in double and rounded once, so that results
 * agree with transformers in float. Nothing is owned; any thread may call. */
#ifndef SES_GENERATE_LOGIT_SCORES_H
#define SES_GENERATE_LOGIT_SCORES_H

#include <stdint.h>

/* y, x: [n]; y may be x. */
void ses_softmax_row(float *y, const float *x, int64_t n);
void ses_sigmoid_row(float *y, const float *x, int64_t n);

int64_t ses_argmax(const float *x, int64_t n); /* the first of equal values */

/* Indices of the k highest values into at[], best first, equal values by index. Returns min(k, n). */
int64_t ses_top_k(const float *x, int64_t n, int64_t k, int32_t *at);

#endif
