/* Batches of pairs of texts with and without the same label (SetFit, Tunstall et al. 2022). Texts are encoded
 * once; a pair is drawn from (seed, number) when its batch is made, so memory grows with the texts, not with
 * the pairs. An epoch has, for each text, `pairs` pairs with texts of its label (target 1; the text itself if
 * it is the only one) and as many with texts of other labels (target 0).
 *
 * Ownership: dataset and labels are borrowed. One thread. */
#ifndef SES_TUNE_PAIR_BATCHES_H
#define SES_TUNE_PAIR_BATCHES_H

#include "sesame/unstable/dataset.h"

typedef struct ses_pair_batches ses_pair_batches;

typedef struct ses_pair_options {
    const ses_dataset *texts;
    const int32_t *label; /* [texts]: 0 .. labels - 1 */
    int64_t labels, pairs, batch_pairs;
    uint64_t seed;
} ses_pair_options;

ses_pair_batches *ses_pair_batches_new(const ses_pair_options *o, ses_err *e);
void ses_pair_batches_free(ses_pair_batches *p); /* p may be NULL */
ses_batch_source ses_pair_batches_source(ses_pair_batches *p);
/* Pair `number`: its texts; returns its target. */
int ses_pair_batches_at(const ses_pair_batches *p, uint64_t number, int64_t text[2]);

#endif
