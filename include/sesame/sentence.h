/* Sentence encoders: a folder of the sentence-transformers library (modules.json: a model, pooling, dense
 * layers, normalization), or any model's folder with pooling of the caller's choice. And cross-encoders:
 * models that score a pair of texts. Threads and ownership are as of a model: see sesame/model.h. */
#ifndef SESAME_SENTENCE_H
#define SESAME_SENTENCE_H

#include "sesame/model.h"

SES_BEGIN_DECLS

typedef struct ses_sentence ses_sentence;

typedef enum { SES_NORMALIZE_DEFAULT, SES_NORMALIZE_ON, SES_NORMALIZE_OFF } ses_normalize;

typedef struct ses_sentence_options {
    const char *pooling; /* "mean", or several to be joined: "cls,max"; NULL: the folder's, or mean.
                            Of cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken */
    int64_t layer; /* whose states are pooled: 1 the first, -1 the last, -2 the one before; 0: the last */
    ses_normalize normalize;            /* to length 1 at the end */
    int64_t max_tokens;                 /* longer texts are to be cut; 0: as the folder says */
    bool train, check_only, no_packing; /* as of ses_model_options, */
    uint64_t seed;                      /* too */
    const ses_json *config;             /* without a folder: a model of this config.json at random */
    const ses_lora *lora;               /* of the model, as of ses_model_options: an adapter to be trained, */
    const char *base;                   /* or of the folder's adapter: the model it belongs to */
} ses_sentence_options;

/* dir NULL: with options->config a new one. */
ses_sentence *ses_sentence_open(const char *dir, ses_device *dev, const ses_sentence_options *options,
                                ses_err *e);
void ses_sentence_free(ses_sentence *s);

/* Everything but the tokenizer into a folder of the sentence-transformers library; see ses_model_save. */
bool ses_sentence_save(const ses_sentence *s, const char *dir, const ses_save_options *options, ses_err *e);

/* A vector for each sequence, [seqs, ses_sentence_width], on the tape; with a recording tape gradients go
 * back to both stores. prompt [seqs], or NULL: how many tokens at the front of each are a prompt's, which
 * some encoders do not pool. NULL after an error. */
ses_tensor *ses_sentence_embed(const ses_sentence *s, ses_tape *t, const ses_batch *b, const int32_t *prompt,
                               ses_err *e);

ses_model *ses_sentence_model(const ses_sentence *s);
ses_store *ses_sentence_store(const ses_sentence *s);   /* of the modules after the model; may be empty */
const char *ses_sentence_dir(const ses_sentence *s);    /* where the model and its tokenizer lie */
int64_t ses_sentence_width(const ses_sentence *s);      /* numbers in a vector */
int64_t ses_sentence_max_tokens(const ses_sentence *s); /* longer texts are to be cut */
bool ses_sentence_lower_case(const ses_sentence *s);    /* texts are to be made lower case first */
bool ses_sentence_pools_prompt(const ses_sentence *s);  /* false: embed wants to know the prompt's length */
bool ses_sentence_normalizes(const ses_sentence *s);    /* the last step makes vectors of length 1 */
const char *ses_sentence_similarity(const ses_sentence *s); /* "cosine", "dot", ... */

/* Texts put in front: the one of this name; NULL: the default. NULL: there is none. */
const char *ses_sentence_prompt(const ses_sentence *s, const char *name);
size_t ses_sentence_prompt_count(const ses_sentence *s);
const char *ses_sentence_prompt_name(const ses_sentence *s, size_t i);

/* The modules in words, "Pooling (mean)"; buf of size n is filled. */
size_t ses_sentence_module_count(const ses_sentence *s);
const char *ses_sentence_describe(const ses_sentence *s, size_t i, char *buf, size_t n);
bool ses_sentence_is_encoder_dir(const char *dir); /* does the folder have a modules.json? */

/* Cross-encoders: a model with a head that labels sequences. What its logits go through, by the folder's
 * files; where they are silent, a sigmoid for one label and nothing for several. */
bool ses_cross_encoder_activation(const ses_model *m, const char *dir, ses_act *out, ses_err *e);
/* [seqs, labels] on the tape; NULL after an error. */
ses_tensor *ses_cross_encoder_score(const ses_model *m, ses_act act, ses_tape *t, const ses_batch *b,
                                    ses_err *e);

SES_END_DECLS

#endif
