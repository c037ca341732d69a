/* Initial candidates for the pieces of a Unigram vocabulary. The caller owns the results. */
#ifndef SES_TEXT_UNIGRAM_SEED_H
#define SES_TEXT_UNIGRAM_SEED_H

#include "tokenizer_trainer.h"

typedef struct ses_seed_candidate {
    uint32_t at, len; /* range in the text, in characters */
    uint32_t rank;    /* index of the first suffix that starts with it; with len, alphabetical order */
    double score;     /* occurrences times length */
} ses_seed_candidate;

/* *text: the words as code points, concatenated, each followed by 0. *list: repeated substrings of at
 * least two characters. Free both with ses_free, also on failure. */
bool ses_unigram_seed(const ses_counted_words *words, uint32_t **text, size_t *n_text,
                      ses_seed_candidate **list, size_t *n, ses_err *e);

#endif
