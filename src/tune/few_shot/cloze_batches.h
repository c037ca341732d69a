/* Batches of a cloze task: questions, and texts whose tokens are masked for an auxiliary loss.
 *     PET      texts without labels, 15 % of their tokens masked as in BERT
 *     ADAPET   the texts of the questions, answered by a label drawn at random; 10.5 % masked. The model
 *              learns to predict the tokens if the label is right, and not to if it is wrong
 * The kind of each sequence is in pair_labels of the batch. A batch is a function of seed, epoch and index.
 *
 * Ownership: set, batches, tuner and unlabeled examples are borrowed. One thread. */
#ifndef SES_TUNE_CLOZE_BATCHES_H
#define SES_TUNE_CLOZE_BATCHES_H

#include "few_shot.h"
#include "task/prompt/cloze_prompt.h"

enum {
    SES_CLOZE_QUESTION, /* label at the mask: the first token of the class */
    SES_CLOZE_PREDICT,  /* labels: masked tokens to predict */
    SES_CLOZE_REJECT    /* labels: masked tokens of a wrong label, not to be predicted */
};

typedef struct ses_cloze_batches ses_cloze_batches;

ses_cloze_batches *ses_cloze_batches_new(ses_finetuner *t, ses_cloze_prompt *prompt,
                                         const ses_finetune_set *s, ses_batches *questions, uint64_t seed,
                                         ses_err *e);
void ses_cloze_batches_free(ses_cloze_batches *c); /* c may be NULL */
ses_batch_source ses_cloze_batches_source(ses_cloze_batches *c);

#endif
