/* The ensemble of PET and iPET: a model for each pattern and repetition, trained on cloze questions; the
 * weighted mean of their scores labels the unlabeled texts for a classifier (Schick and Schuetze 2021).
 * iPET trains several generations. From the second on, a model also learns texts that other models of the
 * generation before have labeled: drawn by their probability, as many of each label as its share of the
 * training data, so that the set grows by a factor. */
#ifndef SES_TUNE_PET_ENSEMBLE_H
#define SES_TUNE_PET_ENSEMBLE_H

#include "tune_method.h"

/* out [n] = weighted mean of the votes, which have n scores each; all weights 0: equal ones. which: NULL, or
 * the numbers of the votes that count. */
void ses_vote_mean(const ses_tune_vote *vote, const size_t *which, size_t votes, bool equal, size_t n,
                   float *out);

/* Draws about n * share[l] of the texts whose best label is l, without replacement, by the probability of
 * that label. score [texts, labels]. pick, label: [texts]; returns how many. */
size_t ses_vote_draw(const float *score, size_t texts, size_t labels, const double *share, double n,
                     uint64_t seed, uint64_t number, size_t *pick, int32_t *label, ses_err *e);

/* The whole method. */
bool ses_pet_run(ses_tune_run *r, int64_t generations, ses_err *e);

#endif
