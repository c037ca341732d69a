/* Model presets: the published configurations, by name, for models with random weights. The caller frees the
 * documents. Any thread. */
#ifndef SES_TRAIN_PRESETS_H
#define SES_TRAIN_PRESETS_H

#include "data/special_tokens.h"
#include "sesame/json.h"
#include "sesame/model.h"

#define SES_PRESETS                                                                                       \
    "bert-tiny, -mini, -small, -medium, -base, -large, roberta-base, electra-small, -base, albert-base, " \
    "distilbert, gpt2, t5-small, bart-base, rnn-seq2seq, xlnet-base, bilstm, skip-thought, cloze-base, "  \
    "context2vec, nnlm, lstm, awd-lstm, "                                                                 \
    "ulmfit, flair-lm, elmo-small, elmo-original"

/* Name of the i-th preset; NULL past the last. */
const char *ses_preset_name(size_t i);

/* The config of a preset, or the config.json at this path. Fails with SES_EUSAGE if it is neither. */
ses_json_doc *ses_preset_load(const char *name, ses_err *e);

/* Adapts a config to a tokenizer: vocab_size (T5: plus 100 sentinels if the tokenizer has none) and the ids
 * of special tokens. Then applies `set` (NULL: none): "KEY=VALUE", VALUE a number, true, false or a word. */
ses_json_doc *ses_preset_fit(const ses_json *config, const ses_tokenizer *t, const char *const *set,
                             size_t n_set, ses_err *e);

/* Replaces *config by a copy with the values of "KEY=VALUE" [n]. Fails with SES_EUSAGE on another form. */
bool ses_preset_set(ses_json_doc **config, const char *const *set, size_t n, ses_err *e);

/* Models that read characters: sets the characters of the vocabulary's words; *shortened: number of words
 * whose ends are left out because they are too long. No effect on others. */
bool ses_model_set_words(ses_model *m, const ses_tokenizer *t, int64_t *shortened, ses_err *e);

#endif
