/* Losses of cloze classifiers, composed of ops. x [n, vocabulary]: logits of masked tokens.
 *
 *     PET       cross entropy of the scores of labels; a label's score is the mean logit of its words
 *     ADAPET    -log p(word of the label) - sum over other labels of log(1 - p(word)),
 *               p: softmax over the whole vocabulary, of the first word of each label
 * All are means over rows. */
#ifndef SES_TUNE_CLOZE_LOSS_H
#define SES_TUNE_CLOZE_LOSS_H

#include "nn/nn.h"
#include "task/prompt/cloze_prompt.h"

/* Scores of the labels, [n, labels]. */
ses_tensor *ses_cloze_label_scores(const ses_cloze_prompt *p, ses_tape *t, ses_tensor *x);
/* label [n]: of each row. */
ses_tensor *ses_cloze_label_loss(const ses_cloze_prompt *p, ses_tape *t, ses_tensor *x, const int32_t *label);
ses_tensor *ses_cloze_decoupled_loss(const ses_cloze_prompt *p, ses_tape *t, ses_tensor *x,
                                     const int32_t *label);
/* Mean of -log(1 - p(token)). */
ses_tensor *ses_cloze_reject_loss(ses_tape *t, ses_tensor *x, const int32_t *token);

/* tune_cloze.c: the prompt of a finetuner of ses_finetune_task_by_cloze; and the logits of the tokens of a
 * batch that have a label, [n, vocabulary], questions first. */
struct ses_finetuner;
ses_cloze_prompt *ses_cloze_prompt_of(const struct ses_finetuner *t);
ses_tensor *ses_cloze_logits(const struct ses_finetuner *t, ses_tape *tape, const ses_batch *b, ses_err *e);

#endif
