/* Encoders of taggers: the layers between the vectors of words and the labels. An encoder is one file
 * tagger_NAME.c and one line in tagger_encoders.def.
 *
 * Ownership: parameters belong to the store, activations to the tape. Threads: as nn.h. */
#ifndef SES_MODEL_TAGGER_ENCODER_H
#define SES_MODEL_TAGGER_ENCODER_H

#include "model/model_desc.h"

enum { SES_MAX_TAGGER_LAYERS = 8, SES_MAX_TAGGER_WINDOW = 11 };

typedef struct ses_tagger_params {
    ses_tensor *bytes, *caps; /* vectors of bytes, of kinds of capital letters; NULL: not read */
    ses_rnn_params chars[2];
    ses_batch_norm_params vector_norm; /* frozen vectors; gain NULL: not normalized */
    ses_scalar_mix mix[SES_MAX_VECTOR_MIXES];
    ses_dense reproject;
    ses_rnn_params rnn[SES_MAX_TAGGER_LAYERS][2];
    ses_tensor *pad;      /* [1, width]: the vector of words outside the sentence */
    ses_dense conv, out;  /* layers over a window of words, over the convolution */
    ses_tensor *distance; /* [distances, width] */
    ses_dense conv_distance;
} ses_tagger_params;

typedef struct ses_tagger_encoder {
    const char *name;
    /* Checks the config and sets c->hidden. */
    bool (*check)(ses_config *c, ses_err *e);
    /* Declares the parameters; width: columns of the vectors of words. */
    void (*add)(ses_tagger_params *g, ses_store *s, const ses_config *c, int64_t width);
    /* x [T, width], late [T, late_width] or NULL; the result is [T, hidden]. */
    ses_tensor *(*run)(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x,
                       ses_tensor *late);
} ses_tagger_encoder;

#define SES_TAGGER_ENCODER(name) extern const ses_tagger_encoder ses_tagger_##name;
#include "tagger_encoders.def"
#undef SES_TAGGER_ENCODER

/* tagger_mix.c: layers of a model among the frozen vectors ("vector_mix"). */
bool ses_tagger_mix_read(ses_config *c, const ses_json *config, ses_err *e);
/* The number of columns that [from, to) of the frozen vectors become. */
int64_t ses_tagger_mix_width(const ses_config *c, int64_t from, int64_t to);
void ses_tagger_mix_add(ses_tagger_params *g, ses_store *s, const ses_config *c);
/* Columns [from, to) of the frozen vectors x, mixed; NULL: there are none. */
ses_tensor *ses_tagger_mix_run(const ses_tagger_params *g, ses_forward_ctx *p, ses_tensor *x, int64_t from,
                               int64_t to);

/* tagger_layers.c */
/* The vectors of the words around each word side by side, [T, window columns]; pad [1, columns]: of words
 * outside the sentence. */
ses_tensor *ses_tagger_windows(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x, ses_tensor *pad,
                               int64_t window);
/* max(-1, min(1, x)) */
ses_tensor *ses_tagger_hard_tanh(ses_tape *t, ses_tensor *x);
/* Checks "window_size" and that no vectors enter after a layer. */
bool ses_tagger_check_window(const ses_config *c, ses_err *e);

#endif
