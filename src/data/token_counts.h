/* Token counts of a corpus, and the loss of a unigram model: the context-free baseline. Arrays are the
 * caller's. */
#ifndef SES_DATA_TOKEN_COUNTS_H
#define SES_DATA_TOKEN_COUNTS_H

#include "sesame/pretrain.h"

typedef enum { SES_COUNT_TRAIN, SES_COUNT_HELD_OUT, SES_COUNT_ALL } ses_count_split;

/* Adds the occurrences of each token in these documents to count[vocab]. */
void ses_unigram_count(const ses_corpus *c, ses_count_split which, int64_t *count);

double ses_unigram_entropy(const int64_t *count, int64_t vocab); /* in nats per token */

/* Mean loss in nats of tokens with counts `of` under the frequencies of `by`, with add-one smoothing.
 * NaN: there are none. */
double ses_unigram_loss(const int64_t *by, const int64_t *of, int64_t vocab);

#endif
