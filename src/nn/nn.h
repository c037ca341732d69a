/* Layers: each declares its parameters in a store and builds its part of a forward pass on a tape.
 * No model is named here; what differs between models is in ses_config or in the model's own file. */
#ifndef SES_NN_H
#define SES_NN_H

#include "op/op.h"
#include "sesame/batch.h"
#include "sesame/model.h"
#include "sesame/store.h"

typedef enum { SES_PROBLEM_UNSET, SES_PROBLEM_REGRESSION, SES_PROBLEM_SINGLE, SES_PROBLEM_MULTI } ses_problem;

/* The numbers of config.json that layers need. */
typedef struct ses_config {
    int64_t vocab, hidden, layers, heads, ffn, positions, segments, labels, pad;
    double norm_eps, drop, drop_attention, drop_head; /* drop_head < 0: as drop */
    double init_range;
    ses_act act;
    bool tied; /* the vocabulary projection is the token table */
    ses_problem problem;
} ses_config;

typedef struct ses_dense {
    ses_tensor *w, *b;
} ses_dense;

typedef struct ses_norm {
    ses_tensor *gain, *bias;
} ses_norm;

ses_dense ses_dense_add(ses_store *s, int64_t out, int64_t in, const char *fmt, ...) SES_PRINTF(4, 5);
ses_norm ses_norm_add(ses_store *s, int64_t width, const char *fmt, ...) SES_PRINTF(3, 4);
ses_tensor *ses_dense_run(ses_tape *t, ses_dense d, ses_tensor *x, ses_act act);
ses_tensor *ses_norm_run(ses_tape *t, ses_norm n, ses_tensor *x, ses_tensor *residual, double eps);

/* One forward pass: the batch on the device, what is wanted, what came out so far. */
typedef struct ses_pass {
    ses_tape *tape;
    const ses_config *c;
    const ses_batch *batch;
    const ses_want *want;
    ses_tensor *ids, *segments, *positions, *cu;
    int64_t longest;
    ses_output *item;
    size_t n, cap;
    ses_tensor *loss;
} ses_pass;

void ses_pass_begin(ses_pass *p); /* tape, c, batch and want are set; uploads the batch */
void ses_pass_output(ses_pass *p, ses_axis axis, ses_tensor *x, const char *fmt, ...) SES_PRINTF(4, 5);
void ses_pass_column(ses_pass *p, ses_axis axis, ses_tensor *x, int64_t col, const char *name);
void ses_pass_loss(ses_pass *p, ses_tensor *loss); /* added to what other heads gave */

/* Encoder: embeddings, then layers of attention and feed-forward, each followed by a norm. */
typedef struct ses_layer {
    ses_dense query, key, value, out;
    ses_norm attn_norm;
    ses_dense up, down;
    ses_norm ffn_norm;
} ses_layer;

typedef struct ses_encoder {
    ses_tensor *token, *position, *segment;
    ses_norm embed_norm;
    ses_layer *layer; /* [layers] */
    ses_dense pooler; /* w NULL: none */
} ses_encoder;

bool ses_encoder_add(ses_encoder *n, ses_store *s, const ses_config *c, bool pooler, ses_err *e);
void ses_encoder_free(ses_encoder *n);
ses_tensor *ses_encoder_run(const ses_encoder *n, ses_pass *p); /* the last hidden state [T, C] */
ses_tensor *ses_pooler_run(const ses_encoder *n, ses_pass *p,
                           ses_tensor *x); /* tanh of the first token's [B, C] */

/* Heads: what a model says about its last hidden state, and what it learns from. */
typedef struct ses_head_params {
    ses_dense dense, out;
    ses_norm norm;
} ses_head_params;

typedef struct ses_head_use { /* a head in a model's class */
    const struct ses_head *head;
    const char *output; /* the output's name */
    size_t labels;      /* offset in ses_batch of its labels */
} ses_head_use;

typedef enum {
    SES_LABEL_PER_TOKEN,
    SES_LABEL_PER_SEQUENCE,
    SES_LABEL_PER_QUESTION,
    SES_LABEL_SPAN
} ses_label_axis;

typedef struct ses_head {
    const char *name, *does; /* "masked-lm", what it is good for */
    bool pooled;             /* x is the pooler's output, not every token's */
    ses_label_axis axis;
    int64_t (*classes)(const ses_config *c); /* how many values a label has; 0: positions of a sequence */
    void (*add)(ses_head_params *h, ses_store *s, const ses_config *c, const ses_encoder *n);
    void (*run)(const ses_head_params *h, const ses_head_use *use, ses_pass *p, ses_tensor *x);
} ses_head;

#define SES_HEAD(name) extern const ses_head ses_head_##name;
#include "heads.def"
#undef SES_HEAD

const int32_t *ses_head_labels(const ses_head_use *use, const ses_batch *b); /* NULL: none in this batch */
double ses_head_drop(const ses_config *c);

#endif
