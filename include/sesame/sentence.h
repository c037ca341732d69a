/* Sentence encoders: a sentence-transformers folder (modules.json: a model, pooling, dense layers,
 * normalization), or any model with pooling of the caller's choice. And cross-encoders: models that score a
 * pair of texts.
 *
 * Ownership, threads and failure: as sesame/model.h. The caller frees an encoder with ses_sentence_free. */
#ifndef SESAME_SENTENCE_H
#define SESAME_SENTENCE_H

#include "sesame/model.h"

SES_BEGIN_DECLS

typedef struct ses_sentence ses_sentence;

typedef enum { SES_NORMALIZE_DEFAULT, SES_NORMALIZE_ON, SES_NORMALIZE_OFF } ses_normalize;

typedef struct ses_sentence_options {
    /* Pooling modes, separated by commas and concatenated: cls, max, mean, mean_sqrt_len_tokens,
     * weightedmean, lasttoken. NULL: the folder's, or mean. */
    const char *pooling;
    int64_t layer;           /* layer to pool: 1 the first, -1 the last, -2 the one before; 0: the last */
    ses_normalize normalize; /* L2 normalization at the end; SES_NORMALIZE_DEFAULT: as in the folder */
    int64_t max_tokens;      /* maximum length of a text; 0: the folder's */
    bool train, check_only, no_packing; /* see ses_model_options */
    uint64_t seed;
    const ses_json *config; /* without a folder: a model of this config.json with random weights */
    const ses_adapter_options *adapter_options; /* see ses_model_options */
    const char *base;                           /* see ses_model_options */
    /* A loaded model to share instead of loading the folder's, with or without a head; it must outlive the
     * encoder. NULL: load. */
    const ses_model *model;
} ses_sentence_options;

/* Opens an encoder by the name or path of its folder (see ses_model_resolve) on a device, which must outlive
 * it; options may be NULL. name NULL: makes a new one from options->config. */
ses_sentence *ses_sentence_open(const char *name, ses_device *dev, const ses_sentence_options *options,
                                ses_err *e);

/* Frees an encoder and its model; s may be NULL. */
void ses_sentence_free(ses_sentence *s);

/* Writes everything except the tokenizer as a sentence-transformers folder; see ses_model_save. */
bool ses_sentence_save(const ses_sentence *s, const char *dir, const ses_save_options *options, ses_err *e);

/* One vector per sequence, [seqs, ses_sentence_width], owned by the tape. On a recording tape, gradients
 * flow to both stores. prompt [seqs] or NULL: number of leading prompt tokens, which some encoders do not
 * pool (see ses_sentence_pools_prompt). NULL and an error: invalid batch, or the tape has failed. */
ses_tensor *ses_sentence_embed(const ses_sentence *s, ses_tape *t, const ses_batch *b, const int32_t *prompt,
                               ses_err *e);

/* The model below the pooling. */
ses_model *ses_sentence_model(const ses_sentence *s);
/* Parameters of the modules after the model; may be empty. */
ses_store *ses_sentence_store(const ses_sentence *s);
/* Folder of the model and its tokenizer. */
const char *ses_sentence_dir(const ses_sentence *s);
/* Size of a vector. */
int64_t ses_sentence_width(const ses_sentence *s);
/* Maximum length in tokens; the caller truncates longer texts. */
int64_t ses_sentence_max_tokens(const ses_sentence *s);
/* Must the caller convert texts to lower case first? */
bool ses_sentence_lower_case(const ses_sentence *s);
/* Are prompt tokens pooled? If not, ses_sentence_embed needs their number. */
bool ses_sentence_pools_prompt(const ses_sentence *s);
/* Does the encoder end with L2 normalization? */
bool ses_sentence_normalizes(const ses_sentence *s);
/* The similarity function of the folder: "cosine", "dot", ... */
const char *ses_sentence_similarity(const ses_sentence *s);

/* The prompt of this name, a text to put before the input; name NULL: the default prompt. NULL: none. */
const char *ses_sentence_prompt(const ses_sentence *s, const char *name);
/* Number of named prompts. */
size_t ses_sentence_prompt_count(const ses_sentence *s);
/* Name of prompt i < ses_sentence_prompt_count. */
const char *ses_sentence_prompt_name(const ses_sentence *s, size_t i);

/* Number of modules. */
size_t ses_sentence_module_count(const ses_sentence *s);
/* Writes a description of module i, "Pooling (mean)", to buf, which has n bytes; returns buf. */
const char *ses_sentence_describe(const ses_sentence *s, size_t i, char *buf, size_t n);

/* Does the folder contain a modules.json? */
bool ses_sentence_is_encoder_dir(const char *dir);

/* The activation of a cross-encoder's logits, from the files of its folder; default: sigmoid for one label,
 * none for several. The model must have a sequence classification head. */
bool ses_cross_encoder_activation(const ses_model *m, const char *dir, ses_act *out, ses_err *e);

/* Scores [seqs, labels], owned by the tape. NULL and an error: invalid batch, or the tape has failed. */
ses_tensor *ses_cross_encoder_score(const ses_model *m, ses_act act, ses_tape *t, const ses_batch *b,
                                    ses_err *e);

SES_END_DECLS

#endif
