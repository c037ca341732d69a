/* Attention weights of a corpus: texts in, the weights of every layer and head of each text out, in order and
 * in batches. A text longer than the limit is truncated. Encoder-decoders: the encoder, the decoder or cross
 * attention; the decoder reads the target of each text, shifted right.
 *
 * Ownership: a text given to the callback is valid during the call.
 * Threads: a call uses the threads of the model's device; model and tokenizer are only read. */
#ifndef SES_ANALYSIS_ATTENTION_CORPUS_H
#define SES_ANALYSIS_ATTENTION_CORPUS_H

#include "analysis/heads/head_stats.h"
#include "sesame/hooks.h"
#include "sesame/model.h"
#include "sesame/tokenizer.h"

typedef struct ses_attention_text {
    size_t index;            /* index among the texts */
    int64_t n;               /* tokens: rows of the weights */
    const int32_t *id;       /* [n] */
    const uint8_t *kind;     /* [n]: SES_TOKEN_SPECIAL, ... */
    const int32_t *word;     /* [n]: word of the token, or of the given words; -1: special token */
    int64_t keys;            /* columns: n, or of cross attention the tokens of the encoder */
    const uint8_t *key_kind; /* [keys] */
    bool square;             /* columns are the same tokens as rows */
    bool truncated, causal;
    int64_t layers;
    const int64_t *heads;       /* [layers] */
    const float *const *weight; /* [layers] of [heads, n, keys]: rows are queries */
} ses_attention_text;

/* Takes a text. False with an error stops the run. */
typedef bool ses_attention_fn(void *ctx, const ses_attention_text *t, ses_err *e);

typedef struct ses_attention_corpus_options {
    const char *model_dir;   /* folder of the tokenizer's settings */
    int64_t max_tokens;      /* length of a text; 0: the model's limit, at most 512 */
    ses_part part;           /* whose attention */
    const ses_input *target; /* [n]: texts of the decoder; NULL: the texts themselves */
    void (*progress)(void *ctx, int64_t done, int64_t total); /* in texts; NULL: none */
    void *progress_ctx;
} ses_attention_corpus_options;

/* Fails with SES_EUNSUPPORTED if the model does not have this part. */
bool ses_attention_corpus_run(const ses_model *m, const ses_tokenizer *t, const ses_input *text, size_t n,
                              const ses_attention_corpus_options *o, ses_attention_fn *fn, void *ctx,
                              ses_err *e);

#endif
