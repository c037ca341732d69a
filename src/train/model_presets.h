/* Models by name: a config.json each, in the sizes they were published in. For every command that begins with
 * random weights. */
#ifndef SES_TRAIN_PRESETS_H
#define SES_TRAIN_PRESETS_H

#include "base/opt_table.h"
#include "data/special_tokens.h"
#include "sesame/json.h"

#define SES_PRESETS                                                                                       \
    "bert-tiny, -mini, -small, -medium, -base, -large, roberta-base, electra-small, -base, albert-base, " \
    "distilbert, gpt2, t5-small, bart-base, xlnet-base"

/* The config of a preset, or of a config.json at this path. */
ses_json_doc *ses_preset_load(const char *name, ses_err *e);

/* The same fitted to a tokenizer: the vocabulary's size (of T5: with 100 sentinels, where the tokenizer has
 * none), the ids of special tokens. Then what is set: "KEY=VALUE", VALUE a number, true, false or a word. */
ses_json_doc *ses_preset_fit(const ses_json *config, const ses_tokenizer *t, const ses_opt_list *set,
                             ses_err *e);

#endif
