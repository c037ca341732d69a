/* Reading hidden states with the language model head: logit lens (nostalgebraist 2020), and tuned lens
 * (Belrose et al. 2023), which first applies a translator of the layer: h + A h + b.
 *
 * Ownership: the caller frees what it opens. Threads: one thread at a time. */
#ifndef SES_ANALYSIS_LENS_H
#define SES_ANALYSIS_LENS_H

#include "analysis/analysis.h"
#include "model/model_desc.h"
#include "run/pass.h"
#include "text/tokenizer_config.h"

/* Translators of the layers 0 .. layers - 1; the last layer has none. */
typedef struct ses_translators {
    int64_t layers, width;
    ses_real *a; /* [layers, width, width] */
    ses_real *b; /* [layers, width] */
} ses_translators;

bool ses_translators_alloc(ses_translators *t, int64_t layers, int64_t width, ses_err *e); /* zeroed */
void ses_translators_free(ses_translators *t);
/* A safetensors file with translator.N.weight and translator.N.bias. Loading fails if the shapes differ from
 * the model's, or if a number is not finite. */
bool ses_translators_load(ses_translators *t, const char *path, const ses_model *m, ses_err *e);
bool ses_translators_save(const ses_translators *t, const char *path, const ses_model *m, bool overwrite,
                          ses_err *e);

typedef struct ses_lens {
    const ses_model *m;
    const ses_tokenizer *tokenizer;
    ses_tokenizer_config config;
    const ses_head_use *head;
    bool masked, decoder; /* masked: the head predicts masked tokens; decoder: of an encoder-decoder */
    bool segments;        /* the model reads token type ids */
    int64_t layers, width, vocab; /* layers: number of the last one */
    ses_encode_ctx *tokens;
    ses_pass pass;
} ses_lens;

/* Fails if the model has no language model head. dir: folder of the tokenizer. */
bool ses_lens_open(ses_lens *l, const ses_model *m, const ses_tokenizer *t, const char *dir, ses_err *e);
void ses_lens_close(ses_lens *l);

/* Runs the model on the sequences of l->pass.in and reads the states of its rows. state: [layers + 1] of
 * [n, width]; the last state may have fewer columns. logits: [n, vocab], computed by the model itself.
 * Encoder-decoders: the decoder reads the target shifted right, so that row t predicts target token t. */
bool ses_lens_states(ses_lens *l, ses_real *const *state, ses_real *logits, ses_err *e);

/* Logits of the states of a layer; t NULL: without translators. */
bool ses_lens_read(ses_lens *l, const ses_translators *t, int64_t layer, const ses_real *state, int64_t n,
                   ses_real *logits, ses_err *e);

typedef struct ses_tuned_options {
    int64_t steps, batch_tokens;
    double rate, momentum;
    uint64_t seed;
} ses_tuned_options;

/* Trains the translators of a lens whose model was opened with `train`, on n texts, to predict the output of
 * the last layer (KL). loss: [2 layers], KL of each layer before and after. */
bool ses_tuned_train(ses_lens *l, const ses_input *text, size_t n, const ses_tuned_options *o,
                     const ses_analysis_call *call, ses_translators *out, double *loss, ses_err *e);

#endif
