/* Strings that might become pieces of a unigram vocabulary. */
#ifndef SES_TEXT_TRAIN_SEED_H
#define SES_TEXT_TRAIN_SEED_H

#include "tokenizer_trainer.h"

typedef struct ses_seed_candidate {
    uint32_t at, len; /* characters of the text */
    uint32_t rank;    /* of the first suffix it begins: with len, alphabetic order */
    double score;     /* occurrences times length */
} ses_seed_candidate;

/* The words as code points end to end, 0 after each, and the strings of two characters and more that
 * repeat in them. Both are to be freed, also when it fails. */
bool ses_unigram_seed(const ses_counted_words *words, uint32_t **text, size_t *n_text,
                      ses_seed_candidate **list, size_t *n, ses_err *e);

#endif
