/* Cross entropy over a sample of a large vocabulary (Jean et al. 2015), as TensorFlow's sampled_softmax_loss.
 * Ownership and threads: as nn.h. */
#ifndef SES_NN_SAMPLED_SOFTMAX_H
#define SES_NN_SAMPLED_SOFTMAX_H

#include "nn.h"

/* Distinct negatives, drawn with P(id) = log((id + 2) / (id + 1)) / log(vocab + 1): ids must be sorted by
 * frequency. */
typedef struct ses_log_uniform {
    const int32_t *id; /* [n] */
    const int32_t *at; /* [vocab]: 1 + index in id; 0: not drawn */
    int64_t n, vocab;
    int64_t tries; /* draws until n were distinct */
} ses_log_uniform;

/* Draws n of vocab words, n < vocab, on the tape's memory; id NULL: the tape has failed. */
ses_log_uniform ses_log_uniform_draw(ses_tape *t, ses_rng_key key, int64_t n, int64_t vocab);

/* Expected number of times that a word is among the negatives: at most 1. */
double ses_log_uniform_expected(const ses_log_uniform *s, int32_t id);

/* Mean over rows of -log of the probability of label[r] among itself and the negatives; logits x w' + b, less
 * the logarithm of the expected counts. x [n, C], w [vocab, C], b [vocab]. */
ses_tensor *ses_sampled_softmax(ses_tape *t, ses_tensor *x, const ses_dense *out, const int32_t *label,
                                int64_t n, const ses_log_uniform *s);

#endif
