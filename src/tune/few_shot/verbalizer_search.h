/* Search for the words of labels (LM-BFF, in a simple form). A candidate of a label is a token that begins a
 * word and has a high mean log probability at the mask over the training texts of the label. The words are
 * then chosen label after label, twice, by the accuracy on the training texts; of equal ones the first.
 *
 * Nothing is trained. */
#ifndef SES_TUNE_VERBALIZER_SEARCH_H
#define SES_TUNE_VERBALIZER_SEARCH_H

#include "tune_method.h"

/* score [texts, vocabulary]: log probabilities at the mask. allowed [vocabulary]: tokens that may be chosen.
 * Writes the token of each label to out [labels]; all differ. k: candidates of a label. */
bool ses_word_choose(const float *score, const int32_t *label, size_t texts, size_t labels, size_t vocab,
                     const uint8_t *allowed, size_t k, int32_t *out, ses_err *e);

/* Replaces the verbalizers of r->patterns. */
bool ses_verbalizer_search(ses_tune_run *r, ses_err *e);

#endif
