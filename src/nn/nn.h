/* Layers: each declares its parameters in a store and builds its part of a forward pass on a tape.
 * No model is named here; what differs between models is in ses_config or in the model's own file. */
#ifndef SES_NN_H
#define SES_NN_H

#include "config.h"
#include "op/op.h"
#include "sesame/batch.h"
#include "sesame/model.h"
#include "sesame/store.h"

typedef struct ses_dense {
    ses_tensor *w, *b;
    ses_weight_layout layout;
    ses_tensor *lora_a, *lora_b;     /* of a low-rank adapter: [rank, in], [out, rank]; NULL: none */
    double lora_scale, lora_dropout; /* of it */
} ses_dense;

typedef struct ses_norm {
    ses_tensor *gain, *bias; /* bias NULL: an RMS norm */
} ses_norm;

typedef enum { SES_BIAS, SES_NO_BIAS } ses_bias;

ses_dense ses_dense_add(ses_store *s, int64_t out, int64_t in, ses_bias bias, const char *fmt, ...)
    SES_PRINTF(5, 6);
/* The same, stored in this order. */
ses_dense ses_dense_add_layout(ses_store *s, ses_weight_layout order, int64_t out, int64_t in, ses_bias bias,
                               const char *name);
/* n of one shape, [out, in], to be run side by side: their weights lie one after the other where the store
 * holds them itself, and so do their biases. */
void ses_dense_add_fused(ses_store *s, ses_dense *const d[], int n, int64_t out, int64_t in, ses_bias bias,
                         const char *const name[]);
ses_norm ses_norm_add(ses_store *s, int64_t width, ses_norm_kind kind, const char *fmt, ...) SES_PRINTF(4, 5);
ses_tensor *ses_dense_run(ses_tape *t, ses_dense d, ses_tensor *x, ses_act act);
/* What nothing but `next` reads. */
ses_tensor *ses_dense_run_i8_out(ses_tape *t, ses_dense d, ses_tensor *x, ses_act act, const ses_dense *next);
/* The same of act(a) b, where a | b is what d makes of x. */
ses_tensor *ses_dense_run_gated(ses_tape *t, ses_dense d, ses_tensor *x, ses_act act, const ses_dense *next);
/* down(act(up(x))) in one, where a GPU trains: it does not keep act's result. NULL: one after the other. */
ses_tensor *ses_dense_run_ffn(ses_tape *t, ses_dense up, ses_tensor *x, ses_act act, ses_dense down);
/* All n by one product: [T, n * out]. NULL: they do not lie side by side, or have adapters. heads: see
 * ses_linear_fused. */
ses_tensor *ses_dense_run_fused(ses_tape *t, const ses_dense d[], int n, ses_tensor *x, int64_t heads);
ses_tensor *ses_norm_run(ses_tape *t, ses_norm n, ses_tensor *x, ses_tensor *residual, double eps);
ses_tensor *ses_norm_run_dropout(ses_tape *t, ses_norm n, ses_tensor *x, double rate, ses_tensor *residual,
                                 double eps);             /* of x dropped out */
ses_tensor *ses_l2_normalize(ses_tape *t, ses_tensor *x); /* each row / sqrt(its length^2 + 1e-24) */
/* norm(d(x) dropped out + residual) */
ses_tensor *ses_dense_run_normed(ses_tape *t, ses_dense d, ses_tensor *x, ses_norm n, double rate,
                                 ses_tensor *residual, double eps);

/* Sequences on the device: what a stack reads. */
typedef struct ses_seqs {
    int64_t seqs, tokens, max_seqlen;
    int64_t token_pairs; /* of tokens of one sequence */
    const int32_t *host_cu_seqlens, *host_ids;
    ses_tensor *ids, *segments, *positions, *cu_seqlens;
    ses_tensor *key_lens, *key_rows; /* of keys in a cache: how many from cu on, and where new ones go */
} ses_seqs;

/* Rows of x `by` places further in their sequences; zeros where there is none. */
struct ses_forward_ctx;
ses_tensor *ses_seqs_shift(struct ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x, int64_t by);

/* What a batch says of who sees whom, in place of the model. */
typedef enum {
    SES_ATTN_MASK_DEFAULT, /* nothing */
    SES_ATTN_MASK_FULL,
    SES_ATTN_MASK_CAUSAL,
    SES_ATTN_MASK_PREFIX /* all see a sequence's beginning */
} ses_attn_mask;

/* The rows of a last hidden state that heads read: see used_rows.c. */
typedef struct ses_used_rows {
    ses_seqs seqs;       /* these tokens alone: how many, cu, the longest; seqs.tokens 0: all rows are kept */
    bool of_target;      /* they are of p->target, else of p->in */
    int32_t *row_plus_1; /* host, [tokens]: 1 + its row among those kept; 0: it is not */
    ses_tensor *rows;    /* [seqs.tokens], rising */
} ses_used_rows;

/* One forward pass: the batch on the device, what is wanted, what came out so far. */
typedef struct ses_forward_ctx {
    ses_tape *tape;
    const ses_config *c;
    const ses_batch *batch;
    const ses_output_request *request;
    ses_seqs in, target; /* what an encoder or a lone decoder reads; what the decoder of a pair reads, or the
                            places a model is asked about */
    ses_attn_mask attn_mask; /* of p->in */
    ses_tensor *mask_bias;   /* of SES_ATTN_MASK_PREFIX: a bias [heads, queries, keys] of each sequence */
    ses_seqs past, source;   /* of a cache: keys of each sequence, and of what cross attention reads */
    ses_output *item;
    size_t n, cap;
    ses_tensor *loss;
    const int32_t *mem_cu_seqlens; /* of what a next batch remembers */
    ses_tensor **layer; /* NULL, or [depth + 1]: hidden states of the stack that ran last, for a mix */
    ses_used_rows used;
} ses_forward_ctx;

void ses_forward_begin(ses_forward_ctx *p,
                       size_t outputs); /* tape, c, batch and want are set; uploads the batch */
void ses_forward_set_mask(ses_forward_ctx *p, int64_t heads); /* before the layers: sets sight and hides */
void ses_forward_output(ses_forward_ctx *p, ses_axis axis, ses_tensor *x, const char *fmt, ...)
    SES_PRINTF(4, 5);
void ses_forward_output_column(ses_forward_ctx *p, ses_axis axis, ses_tensor *x, int64_t col,
                               const char *name);
void ses_forward_add_loss(ses_forward_ctx *p, ses_tensor *loss); /* added to what other heads gave */

/* A stack of layers over embeddings: an encoder or a decoder. */
typedef struct ses_attn_params { /* query holds all three when they are one matrix */
    ses_dense query, key, value, out;
} ses_attn_params;

typedef struct ses_layer {
    ses_attn_params self, cross;
    ses_norm self_norm, cross_norm, ffn_norm;
    ses_dense up, gate, down;
    int64_t window; /* 0: sees everything */
} ses_layer;

typedef struct ses_stack ses_stack;

/* What all layers of a stack share in a pass. */
typedef struct ses_stack_ctx {
    const ses_seqs *seqs;
    ses_tensor *encoder_states;        /* what cross attention reads */
    ses_tensor *rel_bias;              /* a bias by distance */
    ses_tensor *rel, *rel_dist_to_row; /* of relative scores: a table, and its row for each distance */
} ses_stack_ctx;

/* What a model does in a way of its own. A slot that is NULL: as stack.c does it. */
typedef struct ses_stack_vtable {
    bool (*add)(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e); /* declares the parameters */
    void (*begin)(const ses_stack *k, ses_forward_ctx *p, ses_stack_ctx *all);
    ses_tensor *(*embed)(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *seqs);
    /* query, key, value and their bias, from x, the input of layer i */
    void (*project)(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *all, ses_tensor *x,
                    ses_attention_inputs *in, int i);
    ses_tensor *(*layer)(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *all, ses_tensor *x,
                         int i);
    ses_tensor *(*run)(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *seqs); /* everything */
} ses_stack_vtable;

struct ses_stack {
    const ses_stack_vtable *vtable; /* NULL: none */
    void *priv;                     /* what the ways keep: one block, freed with the stack */
    const char *prefix;             /* of its parameters' names: "" or "decoder." */
    const char *outputs;            /* of its outputs' names: "", "encoder_", "decoder_" */
    int64_t depth, heads, ffn;
    bool causal, cross;
    bool cross_unused; /* a decoder without its encoder: cross attention has weights but no part */
    ses_tensor *token, *position, *segment,
        *rel_bias_table;             /* buckets: [buckets, heads], a bias by distance */
    ses_dense project, project_out;  /* from the tables' width to the layers', and back; w NULL: none */
    ses_norm embed_norm, final_norm; /* gain NULL: none */
    ses_layer *layer;                /* [distinct]; which of them is the i-th: layer_at in stack.c */
    int64_t n_unique;
};

/* ways, prefix, outputs, depth, heads, ffn, causal, cross, and token if shared, are set. */
bool ses_stack_add(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e);
void ses_stack_free(ses_stack *k);
/* Fills the tables that no file has. */
bool ses_stack_compute(const ses_stack *k, ses_store *s, const ses_config *c, ses_err *e);
/* The last hidden state [T, C], or its rows in p->kept; memory: the encoder's, with its sequences in p->in,
 * or NULL. */
ses_tensor *ses_stack_run(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *seqs, ses_tensor *memory);

/* For ways: what is done without them. */
bool ses_stack_add_default(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e);
ses_tensor *ses_layer_run(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *all, ses_tensor *x,
                          int i);
ses_tensor *ses_layer_ffn(const ses_layer *l, ses_forward_ctx *p, ses_tensor *x); /* from its attention on */
/* What goes on of x behind the attention of layer i: of the last layer the rows that are kept. */
ses_tensor *ses_layer_used_rows(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *all,
                                ses_tensor *x, int i);
/* Self-attention of layer i over what was projected: [T, heads * D]. */
ses_tensor *ses_self_attention(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *all,
                               ses_attention_inputs in, int64_t reach, int i);

ses_attn_params ses_attn_params_add(ses_store *s, const ses_config *c, int64_t heads, const char *name);
/* The bias by distance, or NULL. */
ses_tensor *ses_attn_rel_bias(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *seqs);

/* A vocabulary in clusters (see ses_config): tables, what projects them to the layers' width, biases. Where
 * all have one width, there is one table. */
typedef struct ses_adaptive_softmax {
    ses_tensor *table[SES_MAX_CLUSTERS];   /* [tokens, width] */
    ses_tensor *project[SES_MAX_CLUSTERS]; /* [hidden, width]; NULL: the widths are the same */
    ses_tensor *bias[SES_MAX_CLUSTERS];
    ses_dense
        cluster; /* beside the short list: a logit for each of the other clusters; w NULL: there is none */
} ses_adaptive_softmax;

void ses_adaptive_softmax_add(ses_adaptive_softmax *k, ses_store *s,
                              const ses_config *c); /* the embeddings' part */
ses_tensor *ses_adaptive_softmax_embed(const ses_adaptive_softmax *k, ses_forward_ctx *p,
                                       const ses_seqs *q); /* [T, hidden] */
void ses_adaptive_softmax_add_lm(ses_adaptive_softmax *k, ses_store *s,
                                 const ses_config *c); /* that of the predictions */
ses_tensor *ses_adaptive_softmax_logits(const ses_adaptive_softmax *k, ses_forward_ctx *p,
                                        ses_tensor *x); /* log probabilities */
ses_tensor *ses_adaptive_softmax_loss(const ses_adaptive_softmax *k, ses_forward_ctx *p, ses_tensor *x,
                                      const int32_t *label, int64_t n);

/* A recurrent layer in one direction, in PyTorch's names and order of gates. */
typedef struct ses_rnn_params {
    ses_dense in;      /* [gates * size, width], with b_ih */
    ses_tensor *w, *b; /* [gates * size, size], b_hh */
} ses_rnn_params;

/* ELMo's scalar mix (Peters et al. 2018): gain sum_i softmax(weight)_i h_i, over embeddings and layers. */
typedef struct ses_scalar_mix {
    ses_tensor *weight, *gain; /* [layers + 1], [1]; NULL: none */
} ses_scalar_mix;
ses_scalar_mix ses_scalar_mix_add(ses_store *s, int64_t layers);
ses_tensor *ses_scalar_mix_run(const ses_scalar_mix *m, ses_tape *t, ses_tensor *const *h, int64_t n);

/* Heads: what a model says about its last hidden state, and what it learns from. */
typedef struct ses_head_params {
    ses_dense dense, label_scores, out; /* by_label: scores of labels, of which a choice's is made */
    ses_norm norm;
    ses_tensor
        *extra_proj; /* [hidden - embed, vocab]: the projection of columns the token table does not have */
    ses_adaptive_softmax adaptive; /* instead of all of these */
    ses_dense dense2;              /* of a span's boundary, */
    ses_norm norm2;
    ses_tensor *boundary_position;                /* and places in the span */
    ses_dense custom[SES_MAX_CUSTOM_LAYERS];      /* of a head of Sesame's own: hidden layers, */
    ses_rnn_params rnn[SES_MAX_CUSTOM_LAYERS][2]; /* or recurrent ones, forward and backward */
} ses_head_params;

typedef struct ses_head_use { /* a head in a model's class */
    const struct ses_head *head;
    const char *output;   /* the output's name */
    size_t labels_offset; /* offset in ses_batch of its labels */
    const char *loss;     /* the name of its own loss among the outputs; NULL: not there */
} ses_head_use;

/* What a head is given: the last hidden state and the sequences it belongs to, the pooled first tokens. */
typedef struct ses_state {
    ses_tensor *x, *pooled; /* x: [T, C], or its rows in p->kept */
    const ses_seqs *seqs;
} ses_state;

/* Sets p->kept, of what the heads look at. */
void ses_used_rows_select(ses_forward_ctx *p, const ses_seqs *q, const ses_head_use *use, size_t n);
bool ses_used_rows_active(const ses_forward_ctx *p, const ses_seqs *q); /* some of q's rows are not kept */
/* Of q's x; or x, if it has no more. */
ses_tensor *ses_used_rows_gather(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x);
/* Those asked for by p->want: all, or rows, which then is the axis; NULL: none, or the tape has failed. */
ses_tensor *ses_state_requested(ses_forward_ctx *p, const ses_state *at, ses_axis *axis);
void ses_state_mark_used(const ses_forward_ctx *p, const ses_seqs *q,
                         int32_t *read); /* sets read[t] of these */
/* The last hidden states of these tokens, [n, C]. */
ses_tensor *ses_state_gather(ses_forward_ctx *p, const ses_state *at, const int32_t *token, int64_t n);

typedef enum {
    SES_LABEL_PER_TOKEN,
    SES_LABEL_PER_SEQUENCE,
    SES_LABEL_PER_QUESTION,
    SES_LABEL_PER_TARGET, /* a token of the decoder */
    SES_LABEL_SPAN
} ses_label_axis;

typedef struct ses_head {
    const char *name, *description; /* "masked-lm", what it is good for */
    ses_label_axis axis;
    bool pretrained;       /* learned with the model: an adapter for a task leaves it as it is */
    const char *peft_task; /* what the peft library calls its task; NULL: nothing */
    bool allows_custom;    /* one of Sesame's own may stand in its place */
    bool is_lm;            /* its scores are over the vocabulary, and may be asked for by row */
    bool shifts_labels;    /* a row's label is the next token's */
    int64_t (*class_count)(const ses_config *c); /* how many values a label has; 0: positions of a sequence */
    void (*add)(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token);
    void (*run)(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, const ses_state *at);
    /* Sets read[t] of each token of q whose last hidden state `run` will ask ses_state_gather for, the pooled
     * ones' too; NULL: it reads all of them. */
    void (*mark_used)(const ses_head_use *use, const ses_forward_ctx *p, const ses_seqs *q, int32_t *read);
} ses_head;

#define SES_HEAD(name) extern const ses_head ses_head_##name;
#include "heads.def"
#undef SES_HEAD

const ses_head *ses_head_find(const char *name);                             /* NULL: there is none */
const int32_t *ses_head_labels(const ses_head_use *use, const ses_batch *b); /* NULL: none in this batch */
double ses_head_dropout_rate(const ses_config *c);
int64_t ses_head_width(const ses_config *c); /* of the last hidden state */
/* What stands between a token's state and its scores, where the model has such a thing. */
void ses_prediction_head_add(ses_head_params *h, ses_store *s, const ses_config *c, const char *name);
ses_tensor *ses_prediction_head_run(const ses_head_params *h, ses_forward_ctx *p, ses_tensor *x);
/* A head of Sesame's own, where the config asks for one: h->out on whatever stands before it. */
void ses_custom_head_add(ses_head_params *h, ses_store *s, const ses_config *c);
bool ses_custom_head_is_recurrent(
    const ses_config *c); /* it reads all tokens, not one that stands for them */
ses_tensor *ses_custom_head_run(const ses_head_params *h, ses_forward_ctx *p, const ses_state *at,
                                bool per_token);
ses_tensor *ses_summary_gather(ses_forward_ctx *p,
                               const ses_state *at); /* [B, C]: what stands for each sequence */
ses_tensor *ses_summary_first(ses_forward_ctx *p, const ses_state *at); /* [B, C]: the first tokens */
void ses_summary_mark_used(const ses_head_use *use, const ses_forward_ctx *p, const ses_seqs *q,
                           int32_t *read);
void ses_summary_add(ses_head_params *h, ses_store *s, const ses_config *c, const char *name);
ses_tensor *ses_summary_run(const ses_head_params *h, ses_forward_ctx *p, const ses_state *at); /* [B, C] */

/* The vocabulary's projection, and the layer before it where there is one. */
void ses_lm_add(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token);
ses_tensor *ses_lm_logits(const ses_head_params *h, ses_forward_ctx *p, ses_tensor *x);
/* Logits as an output, where they are wanted: of all rows, or of those asked for. */
void ses_lm_output(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, ses_axis axis,
                   const ses_state *at);
/* Cross entropy of token[i] against label[i]; host arrays on the tape. */
ses_tensor *ses_lm_loss(const ses_head_params *h, ses_forward_ctx *p, const ses_state *at, int32_t *token,
                        int32_t *label, int64_t n);
/* The tokens these two read: those asked for, and those with a label, which stands `ahead` places on. */
void ses_lm_mark_used(const ses_head_use *use, const ses_forward_ctx *p, const ses_seqs *q, int32_t ahead,
                      int32_t *read);

#endif
