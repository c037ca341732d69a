/* Fine-tuning with the inputs of GPT-1 (task/gpt_inputs.h): hooks of the variants of classify, regress and
 * choose. The loss is L_task + lm_loss * L_LM; L_LM is the mean over all tokens of the batch but the first of
 * each sequence. */
#ifndef SES_TUNE_GPT_TUNING_H
#define SES_TUNE_GPT_TUNING_H

#include "tune/finetuner.h"

/* The task with the inputs of the options: k itself, or its variant. NULL: it has none. */
const ses_finetune_task *ses_finetune_task_with_inputs(const ses_finetune_task *k, int inputs, ses_err *e);
/* The same by the config.json of a model; sets the settings that it stores. */
bool ses_finetune_task_of_config(const ses_finetune_task **k, const ses_json *config,
                                 ses_finetune_task_options *o, ses_err *e);

/* Hooks, see ses_finetune_task. */
bool ses_gpt_open_tokenizer(ses_finetuner *t, ses_err *e);
void ses_gpt_put_config(const ses_finetuner *t, const ses_json *base, ses_json_writer *w);
bool ses_gpt_open(ses_finetuner *t, ses_err *e);
ses_tensor *ses_gpt_loss(void *finetuner, ses_tape *tape, const ses_batch *b, ses_err *e);
int64_t ses_gpt_group(const ses_finetuner *t, const ses_examples *rows); /* 2 for both orders */
bool ses_gpt_predict_batch(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o,
                           const ses_batch *b, int64_t first, ses_err *e);

/* Adds the sequences of a text or pair, one for each order. */
bool ses_gpt_add_texts(ses_finetuner *t, ses_string a, ses_string b, int32_t row, ses_finetune_set *s,
                       ses_sequence *q, ses_err *e);

#define SES_GPT_HOOKS                                                                               \
    .way = SES_WAY_GPT, .open_tokenizer = ses_gpt_open_tokenizer, .put_config = ses_gpt_put_config, \
    .open = ses_gpt_open, .loss = ses_gpt_loss, .predict_batch = ses_gpt_predict_batch

#endif
