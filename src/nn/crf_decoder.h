/* Decoding of a CRF on the host: the best sequence of labels (Viterbi) and marginal probabilities.
 *
 * Ownership: a decoder's numbers belong to the arena given to ses_crf_decoder_init; it copies the parameters.
 * Threads: several threads may decode with one decoder. */
#ifndef SES_NN_CRF_DECODER_H
#define SES_NN_CRF_DECODER_H

#include "base/arena.h"
#include "base/labels/tag_scheme.h"
#include "sesame/unstable/store.h"

typedef struct ses_crf_decoder {
    int64_t labels;
    double *trans;       /* [labels, labels]: from, to; -INFINITY: not allowed */
    double *start, *end; /* [labels] */
} ses_crf_decoder;

/* Copies the CRF of a store. *found: whether it has one. label [n]: names; steps that the scheme forbids are
 * never decoded. */
bool ses_crf_decoder_init(ses_crf_decoder *d, const ses_store *s, ses_tag_scheme scheme,
                          const char *const *label, size_t n, ses_arena *mem, bool *found, ses_err *e);

/* Decodes n tokens: token t has the scores x[row[t]][labels]; row NULL: x[t]. best [n]: the most probable
 * sequence of labels. marginal [n, labels] or NULL: the probability of each label of a token, summed over all
 * sequences of labels. If the scheme allows no sequence at all, it is ignored. */
bool ses_crf_decode(const ses_crf_decoder *d, const float *x, const int32_t *row, int64_t n, int32_t *best,
                    float *marginal, ses_err *e);

#endif
