/* Frequencies of tokens: what a model that looks at nothing can know. */
#ifndef SES_DATA_UNIGRAM_H
#define SES_DATA_UNIGRAM_H

#include "sesame/corpus.h"

typedef enum { SES_COUNT_TRAIN, SES_COUNT_HELD_OUT, SES_COUNT_ALL } ses_count_split;

/* Adds how often each token occurs in these documents to count[vocab]. */
void ses_unigram_count(const ses_corpus *c, ses_count_split which, int64_t *count);

double ses_unigram_entropy(const int64_t *count, int64_t vocab); /* nats a token */

/* Mean loss of tokens that occur as `of` says, by frequencies `by`, each counted once more than it was. */
double ses_unigram_loss(const int64_t *by, const int64_t *of, int64_t vocab);

#endif
