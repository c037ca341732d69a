/* Layers: each declares its parameters in a store and adds its part of a forward pass to a tape. No model is
 * named here: models differ in ses_config, or override functions of ses_stack_vtable.
 *
 * Ownership: parameters belong to the store, activations to the tape; the structs here only point to them.
 * Threads: a forward pass belongs to the thread of its tape; declared layers are read-only. */
#ifndef SES_NN_H
#define SES_NN_H

#include "config.h"
#include "op/op.h"
#include "sesame/model.h"
#include "store_impl.h"

/* Receives the input of a dense layer, in reals, before each product. */
typedef struct ses_dense_watch {
    void (*see)(void *ctx, const ses_tensor *x);
    void *ctx;
} ses_dense_watch;

/* A dense layer y = x w' + b, or, factorized, y = x first' w' + b with first [rank, in], w [out, rank]. */
typedef struct ses_dense {
    ses_tensor *w, *b; /* b NULL: no bias */
    ses_weight_layout layout;
    ses_tensor *lora_a, *lora_b; /* LoRA matrices [rank, in], [out, rank]; NULL: none */
    double lora_scale, lora_dropout;
    ses_tensor *in_gain, *out_gain; /* IA3: factors of inputs [1, in], of outputs [out, 1]; NULL: none */
    ses_tensor *first;              /* NULL: not factorized */
    const ses_dense_watch *watch;   /* NULL: none */
} ses_dense;

/* Does an adapter that is not merged change the layer? */
static inline bool ses_dense_has_adapter(const ses_dense *d)
{
    return d->lora_a || d->in_gain || d->out_gain;
}

typedef struct ses_norm {
    ses_tensor *gain, *bias; /* bias NULL: an RMS norm */
    double plus;             /* RMS norm: added to the gain */
} ses_norm;

typedef enum { SES_BIAS, SES_NO_BIAS } ses_bias;

/* Declares a dense layer; fmt is the prefix of its parameter names: "layer.0.attn.query". */
ses_dense ses_dense_add(ses_store *s, int64_t out, int64_t in, ses_bias bias, const char *fmt, ...)
    SES_PRINTF(5, 6);
/* The same with a layout. */
ses_dense ses_dense_add_layout(ses_store *s, ses_weight_layout layout, int64_t out, int64_t in, ses_bias bias,
                               const char *name);
/* Declares n layers of the same shape [out, in] for a fused product: their weights are consecutive in memory
 * if the store allocates them, and so are their biases. */
void ses_dense_add_fused(ses_store *s, ses_dense *const d[], int n, int64_t out, int64_t in, ses_bias bias,
                         const char *const name[]);
/* Declares a norm; fmt is the prefix of its parameter names. */
ses_norm ses_norm_add(ses_store *s, int64_t width, ses_norm_kind kind, const char *fmt, ...) SES_PRINTF(4, 5);
/* act(d(x)) */
ses_tensor *ses_dense_run(ses_tape *t, ses_dense d, ses_tensor *x, ses_act act);
/* x first', the input of the weight d.w; x if d is not factorized. Shows x to the watch. */
ses_tensor *ses_dense_run_first(ses_tape *t, const ses_dense *d, ses_tensor *x);
/* Rounds queries, keys and values as int8 attention does, unless it does not support them; dim: head
 * size. Probabilities are not rounded. */
void ses_round_attention(ses_tape *t, ses_attention_inputs *in, int64_t dim, int64_t max_keys);
/* d(x) for `next` alone to read: the result may be int8. */
ses_tensor *ses_dense_run_i8_out(ses_tape *t, ses_dense d, ses_tensor *x, ses_act act, const ses_dense *next);
/* act(a) b for `next` alone to read, with d(x) = a | b. */
ses_tensor *ses_dense_run_gated(ses_tape *t, ses_dense d, ses_tensor *x, ses_act act, const ses_dense *next);
/* down(act(up(x))) as one op, for training on a GPU: does not store the activation. NULL: not possible. */
ses_tensor *ses_dense_run_ffn(ses_tape *t, ses_dense up, ses_tensor *x, ses_act act, ses_dense down);
/* All n layers in one product: [T, n * out]. NULL: their weights are not consecutive, or have LoRA. heads:
 * see ses_linear_fused. */
ses_tensor *ses_dense_run_fused(ses_tape *t, const ses_dense d[], int n, ses_tensor *x, int64_t heads);
/* norm(x + residual); residual may be NULL */
ses_tensor *ses_norm_run(ses_tape *t, ses_norm n, ses_tensor *x, ses_tensor *residual, double eps);
/* norm(dropout(x) + residual) */
ses_tensor *ses_norm_run_dropout(ses_tape *t, ses_norm n, ses_tensor *x, double rate, ses_tensor *residual,
                                 double eps);
/* x / sqrt(|x|^2 + 1e-24), row by row */
ses_tensor *ses_l2_normalize(ses_tape *t, ses_tensor *x);
/* norm(dropout(d(x)) + residual) */
ses_tensor *ses_dense_run_normed(ses_tape *t, ses_dense d, ses_tensor *x, ses_norm n, double rate,
                                 ses_tensor *residual, double eps);

/* Sequences on the device: the input of a stack. */
typedef struct ses_seqs {
    int64_t seqs, tokens, max_seqlen;
    int64_t token_pairs; /* sum over sequences of tokens^2 */
    const int32_t *host_cu_seqlens, *host_ids;
    const int32_t *host_positions; /* NULL: not on the host */
    ses_tensor *ids, *segments, *positions, *cu_seqlens;
    /* keys in a cache: number of keys per sequence, rows of the new keys */
    ses_tensor *key_lens, *key_rows;
    ses_tensor
        *prefix_rows; /* [n_prefixes, virtual tokens]: rows of virtual tokens, in slots that were empty */
    int64_t n_prefixes;
} ses_seqs;

struct ses_forward_ctx;
/* Rows of x shifted by `by` positions within their sequences; zeros outside. */
ses_tensor *ses_seqs_shift(struct ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x, int64_t by);

/* Attention mask chosen by the batch (ses_batch.prefix_len; SES_RIGHT_TO_LEFT: a token attends to itself and
 * to later ones). */
enum { SES_RIGHT_TO_LEFT = -1 };
typedef enum {
    SES_ATTN_MASK_DEFAULT, /* the model's own */
    SES_ATTN_MASK_FULL,
    SES_ATTN_MASK_CAUSAL,
    SES_ATTN_MASK_RIGHT_TO_LEFT, /* a token attends to itself and to later ones */
    SES_ATTN_MASK_PREFIX         /* bidirectional prefix, then causal; or sequences of several kinds */
} ses_attn_mask;

/* The rows of the last hidden state that heads read: see used_rows.c. */
typedef struct ses_used_rows {
    /* these tokens only: number, cu_seqlens, maximum length; seqs.tokens 0: all rows are used */
    ses_seqs seqs;
    bool of_target;      /* rows of p->target, else of p->in */
    int32_t *row_plus_1; /* host, [tokens]: 1 + row among the used rows; 0: not used */
    ses_tensor *rows;    /* [seqs.tokens], ascending */
} ses_used_rows;

/* Virtual tokens of an adapter, before the tokens of each sequence of a stack. */
typedef struct ses_virtual {
    int64_t tokens;    /* per sequence; 0: none */
    ses_tensor *embed; /* prompt tuning: vectors beside the token table, [>= tokens, width]; or NULL */
    /* prefix tuning: keys and values, [tokens, entries, width]; layer i reads the entries i * stride (key)
     * and the next (value), modulo entries; or NULL */
    ses_tensor *keys;
    int64_t entries, stride;
    /* the two are computed from their parameter by dense layers, act between them; n_dense 0: they are the
     * parameter itself */
    ses_dense dense[3];
    int n_dense;
    ses_act act;
} ses_virtual;

/* The state of one forward pass: the batch on the device, the requested outputs, the outputs so far. */
typedef struct ses_forward_ctx {
    ses_tape *tape;
    const ses_config *c;       /* config of the running stack, or of the heads */
    const ses_config *input_c; /* config of the stack that reads `in` */
    const ses_batch *batch;
    const ses_output_request *request;
    /* in: input of the encoder or of a decoder-only model; target: input of the decoder of an
     * encoder-decoder, or the positions to predict */
    ses_seqs in, target;
    ses_attn_mask attn_mask; /* mask of p->in */
    /* SES_ATTN_MASK_PREFIX: additive mask [heads, queries, keys] of each sequence */
    ses_tensor *mask_bias;
    ses_seqs past, source; /* KV cache: keys of each sequence, keys of its source */
    ses_output *item;
    size_t n, cap;
    ses_tensor *loss, *penalty; /* penalty: of a training pass, part of the first head's loss; NULL: none */
    const int32_t *mem_cu_seqlens; /* offsets of the mems for the next batch */
    ses_tensor *memory;            /* in a decoder: the encoder's output, whose sequences are `in` */
    /* final states of a recurrent encoder, for its decoder: of each layer h and, in an LSTM, c; NULL: none */
    ses_tensor **final_states;
    /* [depth + 1], for a scalar mix: hidden states of the last stack; NULL: no mix */
    ses_tensor **layer;
    ses_used_rows used;
    int64_t in_shift, target_shift; /* positions before the first token of `in`, of `target` */
    const int32_t *virtual_rows; /* [tokens] of `in`: row among the virtual tokens; -1: a token. NULL: none */
    ses_seqs prefixed;           /* keys of each sequence behind the keys of virtual tokens */
    ses_tensor *prefixed_rows;   /* order of these keys; see virtual_tokens.c */
    bool hooked;       /* layers have captures or edits: no fused products that hide them, all rows */
    bool captures;     /* captured tensors stay in memory: nothing is rewound */
    bool hooks_embeds; /* token vectors are captured or replaced */
    struct ses_leaving *leaving; /* texts leave before the last layer: exit/exit_heads.h; NULL: none do */
} ses_forward_ctx;

/* A location in a layer for captures and edits: see layer_hooks.h. */
typedef struct ses_layer_site {
    const char *prefix; /* start of output names */
    ses_part part;
    int layer;
    int64_t heads;
    ses_axis queries, keys;
    const int32_t *key_of_token; /* row of each token among the keys; NULL: the same */
} ses_layer_site;

/* Uploads the batch; tape, c, input_c, batch and request are set. outputs: maximum number of outputs. */
void ses_forward_begin(ses_forward_ctx *p, size_t outputs);
/* Sets attn_mask and mask_bias, before the layers. */
void ses_forward_set_mask(ses_forward_ctx *p, int64_t heads);
/* Adds an output named by fmt; or one column of x as an output. */
void ses_forward_output(ses_forward_ctx *p, ses_axis axis, ses_tensor *x, const char *fmt, ...)
    SES_PRINTF(4, 5);
void ses_forward_output_column(ses_forward_ctx *p, ses_axis axis, ses_tensor *x, int64_t col,
                               const char *name);
void ses_forward_add_loss(ses_forward_ctx *p, ses_tensor *loss); /* added to the losses of other heads */
void ses_forward_add_penalty(ses_forward_ctx *p, ses_tensor *penalty);

typedef struct ses_attn_params {
    /* a fused or interleaved matrix is in query; of cross attention: keys | values in key */
    ses_dense query, key, value, out;
    ses_norm query_norm, key_norm; /* gain NULL: none */
} ses_attn_params;

/* Tokens that a layer attends to, whatever the stack's own mask is. */
typedef enum {
    SES_TOWER_NONE,
    SES_TOWER_FORWARD, /* up to the token itself */
    SES_TOWER_BACKWARD /* from the token itself on */
} ses_tower;

/* A bottleneck adapter (Houlsby et al. 2019) after attention or after the feed-forward block, before its
 * residual connection: h + scale up(act(down(x))). */
typedef struct ses_bottleneck {
    ses_dense down, up;
    ses_act act;
    double scale, dropout;
    bool reads_normed; /* x is norm(h + residual), else h (Pfeiffer et al. 2020) */
    bool keeps_normed; /* with reads_normed: x replaces h in the sum */
    bool parallel;     /* x is the residual: the block's input (He et al. 2021) */
} ses_bottleneck;

enum { SES_MAX_BOTTLENECKS = 4 };
typedef struct ses_bottlenecks { /* one after the other */
    ses_bottleneck item[SES_MAX_BOTTLENECKS];
    int n;
} ses_bottlenecks;
/* bottleneck.c: h, the output of a block, after its adapters. residual: the block's input; norm: of its
 * output. */
ses_tensor *ses_bottlenecks_run(const ses_bottlenecks *b, ses_forward_ctx *p, ses_norm norm, ses_tensor *h,
                                ses_tensor *residual);

typedef struct ses_layer {
    ses_attn_params self, cross;
    ses_norm self_norm, cross_norm, ffn_norm;
    /* norms of the outputs (norm.sandwich), or behind self_norm (norm.second_attn_norm); gain NULL:
     * none */
    ses_norm self_norm2, ffn_norm2;
    ses_dense up, gate, down;
    struct ses_experts *experts; /* replace up, gate and down; NULL: none */
    ses_tensor *distance;        /* [2 * positions - 1, head size], SES_POS_RELATIVE_KEY; else NULL */
    ses_tensor *buckets;         /* [buckets, heads]: the layer's own bias by distance; NULL: none */
    int64_t window;              /* 0: full attention */
    ses_tower tower;
    ses_bottlenecks after_attn, after_ffn;
} ses_layer;

/* Heads that were removed from layers; NULL: none. */
typedef struct ses_removed_heads {
    int32_t *left;    /* [layers]: number of remaining heads */
    uint8_t *removed; /* [layers, heads] */
} ses_removed_heads;

/* A stack of layers over embeddings: an encoder or a decoder. */
typedef struct ses_stack ses_stack;

/* State shared by all layers of a stack in a forward pass. */
typedef struct ses_stack_ctx {
    const ses_seqs *seqs;
    ses_tensor *encoder_states;        /* input of cross attention */
    ses_tensor *rel_bias;              /* bias by distance */
    ses_tensor *rel_bucket;            /* bucket of each distance, if layers have tables of their own */
    ses_tensor *rel, *rel_dist_to_row; /* relative scores: table, and its row for each distance */
    ses_tensor *prefix;                /* keys and values of virtual tokens; NULL: none */
    ses_tensor *kv_rows; /* [tokens * heads]: row of each head's key among [tokens * kv_heads]; NULL: none */
} ses_stack_ctx;

/* Functions that a model overrides; NULL: the default in stack.c. */
typedef struct ses_stack_vtable {
    /* declares the parameters */
    bool (*add)(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e);
    /* all parameters have values; random: initial ones, which it may change */
    bool (*loaded)(ses_stack *k, ses_store *s, bool random, ses_err *e);
    void (*begin)(const ses_stack *k, ses_forward_ctx *p, ses_stack_ctx *ctx);
    ses_tensor *(*embed)(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *seqs);
    /* computes query, key, value and their bias from x, the input of layer i */
    void (*project)(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *ctx, ses_tensor *x,
                    ses_attention_inputs *in, int i);
    ses_tensor *(*layer)(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *ctx, ses_tensor *x,
                         int i);
    /* the whole stack */
    ses_tensor *(*run)(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *seqs);
} ses_stack_vtable;

struct ses_stack {
    const ses_config *c;            /* set by ses_stack_add; outlives the stack */
    const ses_stack_vtable *vtable; /* NULL: no overrides */
    void *priv;                     /* data of the vtable's functions: one allocation, freed with the stack */
    const char *prefix;             /* prefix of parameter names: "" or "decoder." */
    const char *outputs;            /* prefix of output names: "", "encoder_", "decoder_" */
    int64_t depth, heads, ffn;
    bool causal, cross;
    /* a decoder without its encoder: cross attention has weights, but is not computed */
    bool cross_unused;
    ses_tensor *token, *position, *segment, *task;
    ses_tensor *rel_bias_table; /* [buckets, heads]; NULL: none, or each layer has one */
    ses_tensor *token_up; /* [columns of token, width]: token vectors are rows of token times it; or NULL */
    ses_dense modal;      /* vectors of ses_batch.modal_vectors to hidden; w NULL: none */
    ses_dense project, project_out;  /* embeddings' width to hidden, and back; w NULL: none */
    ses_norm embed_norm, final_norm; /* gain NULL: none */
    ses_layer *layer;                /* [n_unique]; see layer_at in stack.c for the i-th */
    int64_t n_unique;
    ses_removed_heads pruned, cross_pruned; /* self-attention, cross attention */
    ses_virtual virt;
    int32_t *ffn_widths; /* [depth]; NULL: `ffn` in every layer */
};

static inline int64_t ses_stack_heads(const ses_stack *k, int64_t layer)
{
    return k->pruned.left ? k->pruned.left[layer] : k->heads;
}
static inline int64_t ses_stack_cross_heads(const ses_stack *k, int64_t layer)
{
    return k->cross_pruned.left ? k->cross_pruned.left[layer] : k->heads;
}

static inline int64_t ses_stack_ffn(const ses_stack *k, int64_t layer)
{
    return k->ffn_widths ? k->ffn_widths[layer] : k->ffn;
}

/* stack_heads.c: reads "sesame_ffn_widths" of the stack; depth and ffn are set. */
bool ses_stack_widths_read(ses_stack *k, const ses_json *widths, ses_err *e);
/* The widest feed-forward block of the stack. */
int64_t ses_stack_widest_ffn(const ses_stack *k);

/* stack_heads.c: reads "pruned_heads" of the stack; depth, heads, cross and cross_unused are set. */
bool ses_stack_heads_read(ses_stack *k, const ses_json *all, ses_err *e);
void ses_stack_heads_free(ses_stack *k);
/* The columns of bias [distances, heads] that belong to the heads of a layer; NULL stays NULL. */
ses_tensor *ses_stack_layer_bias(const ses_stack *k, ses_tape *t, ses_tensor *bias, int64_t layer);

/* Declares a stack. Set before: vtable, prefix, outputs, depth, heads, ffn, causal, cross, and token if it is
 * shared. */
bool ses_stack_add(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e);
/* Call it when the parameters have values. random: they are initial ones. */
bool ses_stack_loaded(ses_stack *k, ses_store *s, bool random, ses_err *e);
void ses_stack_free(ses_stack *k);
/* Fills a position table that no file contains. */
bool ses_stack_compute(const ses_stack *k, ses_store *s, const ses_config *c, ses_err *e);
/* The last hidden state [T, C], or its rows in p->used. memory: the encoder's output, whose sequences are
 * p->in; or NULL. */
ses_tensor *ses_stack_run(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *seqs, ses_tensor *memory);

/* Default implementations, for vtables. */
/* Gives out x as hidden state i of the stack, for requests and for heads that mix layers. Returns x, or its
 * edited rows. */
ses_tensor *ses_stack_output_hidden(const ses_stack *k, ses_forward_ctx *p, ses_tensor *x, int64_t i);
bool ses_stack_add_default(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e);
ses_tensor *ses_stack_embed(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q);
/* The norm after the last layer and what follows it. */
ses_tensor *ses_stack_finish(const ses_stack *k, ses_forward_ctx *p, ses_tensor *x);
ses_tensor *ses_layer_run(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *ctx, ses_tensor *x,
                          int i);
/* the sublayers after attention */
ses_tensor *ses_layer_ffn(const ses_layer *l, ses_forward_ctx *p, const ses_layer_site *at, ses_tensor *x);
/* The rows of x that continue after the attention of layer i: in the last layer the rows that heads use. */
ses_tensor *ses_layer_used_rows(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *ctx,
                                ses_tensor *x, int i);
/* Self-attention of layer i on projected inputs: [T, heads * D]. */
ses_tensor *ses_self_attention(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *ctx,
                               ses_attention_inputs in, int64_t window, int i);

/* virtual_tokens.c */
/* The values of the virtual tokens: their parameter x, or what the dense layers compute from it. */
ses_tensor *ses_virtual_values(const ses_virtual *v, ses_tape *t, ses_tensor *x);
/* Sets p->prefixed: the keys of q behind the keys of the virtual tokens. */
void ses_virtual_begin(const ses_virtual *v, ses_forward_ctx *p, const ses_seqs *q);
/* The key (part 0) or value (part 1) of each virtual token in layer i: [tokens, width]. */
ses_tensor *ses_virtual_part(const ses_virtual *v, ses_tape *t, ses_tensor *prefix, int i, int part);
/* Puts them before the keys and values of each sequence, which p->prefixed describes. */
void ses_virtual_prepend(const ses_virtual *v, ses_forward_ctx *p, ses_tensor *prefix, int i,
                         ses_attention_inputs *in);

/* attention_inputs.c: queries from x; keys and values from `from` (NULL: a cache holds them). heads: of an
 * int8 output, see ses_dense_run_fused; 0: none. */
void ses_attn_project(const ses_attn_params *a, ses_forward_ctx *p, const ses_stack_ctx *ctx, bool local,
                      ses_tensor *x, ses_tensor *from, int64_t heads, ses_attention_inputs *in);
/* ses_stack_ctx.kv_rows; NULL: as many heads of keys as of queries. */
ses_tensor *ses_attn_kv_rows(ses_forward_ctx *p, int64_t tokens);
/* Columns of a head. */
int64_t ses_attn_head_size(const ses_config *c);

/* experts.c: a mixture of experts. */
typedef struct ses_experts {
    ses_dense router, *up, *down; /* [n] */
    ses_tensor *bias;             /* [hidden], added to the sum of the experts */
    int64_t n;
} ses_experts;
ses_experts *ses_experts_add(ses_store *s, const ses_config *c, const char *name);
void ses_experts_free(ses_experts *x);
ses_tensor *ses_experts_run(const ses_experts *x, ses_forward_ctx *p, ses_tensor *in);

ses_attn_params ses_attn_params_add(ses_store *s, const ses_config *c, int64_t heads, const char *name);
/* The same for cross attention, whose queries have a matrix of their own. */
ses_attn_params ses_cross_params_add(ses_store *s, const ses_config *c, int64_t heads, const char *name);
/* Sets what all layers read: the position bias of the scores, or the buckets of the layers' tables; the rows
 * of grouped heads. */
void ses_attn_begin(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *seqs, ses_stack_ctx *ctx);

/* relative_key.c: the tables of SES_POS_RELATIVE_KEY and SES_POS_RELATIVE_KEY_QUERY. */
ses_tensor *ses_relative_key_add(const ses_stack *k, ses_store *s, const ses_config *c, int i);
/* Sets rel_dist_to_row: the row of each distance of the batch among the rows that are gathered. */
void ses_relative_key_begin(const ses_stack *k, ses_forward_ctx *p, ses_stack_ctx *ctx);
/* Sets in->bias, which scores the distances of layer i. */
void ses_relative_key_scores(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *ctx,
                             const ses_layer *l, ses_attention_inputs *in, int i);

/* Adaptive embeddings and softmax (see ses_config): tables, projections to hidden, biases. There is one
 * table if div_val is 1. */
typedef struct ses_adaptive_softmax {
    ses_tensor *table[SES_MAX_CLUSTERS];   /* [tokens, width] */
    ses_tensor *project[SES_MAX_CLUSTERS]; /* [hidden, width]; NULL: same width */
    ses_tensor *bias[SES_MAX_CLUSTERS];
    ses_dense cluster; /* one logit per cluster except the shortlist; w NULL: a single cluster */
} ses_adaptive_softmax;

/* Declares the embeddings. */
void ses_adaptive_softmax_add(ses_adaptive_softmax *k, ses_store *s, const ses_config *c);
/* [T, hidden]. */
ses_tensor *ses_adaptive_softmax_embed(const ses_adaptive_softmax *k, ses_forward_ctx *p, const ses_seqs *q);
/* Declares the softmax. */
void ses_adaptive_softmax_add_lm(ses_adaptive_softmax *k, ses_store *s, const ses_config *c);
/* Log probabilities. */
ses_tensor *ses_adaptive_softmax_logits(const ses_adaptive_softmax *k, ses_forward_ctx *p, ses_tensor *x);
ses_tensor *ses_adaptive_softmax_loss(const ses_adaptive_softmax *k, ses_forward_ctx *p, ses_tensor *x,
                                      const int32_t *label, int64_t n);

/* One direction of a recurrent layer, with PyTorch's names and order of gates. */
typedef struct ses_rnn_params {
    ses_dense in;      /* [gates * size, width], with b_ih */
    ses_tensor *w, *b; /* [gates * size, outputs], b_hh */
    ses_tensor *proj;  /* [outputs, size]; NULL: outputs is size */
} ses_rnn_params;

typedef struct ses_rnn_shape {
    ses_rnn_type type;
    int64_t size, width; /* units, columns of the input */
    int64_t proj;        /* columns of the projected output; 0: not projected */
    bool no_bias;
} ses_rnn_shape;

/* Declares "PREFIXweight_ih_lLAYERSUFFIX" and so on; suffix: "" or "_reverse". */
ses_rnn_params ses_rnn_add(ses_store *s, const ses_rnn_shape *k, const char *prefix, int layer,
                           const char *suffix);

typedef struct ses_rnn_run {
    ses_rnn_options o;
    double weight_drop;  /* dropout rate of the recurrent weights (AWD-LSTM) */
    ses_tensor *h0, *c0; /* [B, outputs], [B, size]; NULL: zeros */
} ses_rnn_run;
/* [T, outputs], or with cell states behind them. */
ses_tensor *ses_rnn_layer(ses_forward_ctx *p, const ses_rnn_params *r, ses_tensor *x, const ses_seqs *q,
                          const ses_rnn_run *run);
/* The same, but gradients pass through at most `length` tokens: see rnn_windows.c. length 0: through all. */
ses_tensor *ses_rnn_layer_windows(ses_forward_ctx *p, const ses_rnn_params *r, ses_tensor *x,
                                  const ses_seqs *q, const ses_rnn_run *run, int64_t length);
/* [T, 2 outputs]: outputs of the forward direction r[0] and of the backward direction r[1]. */
ses_tensor *ses_rnn_bidirectional(ses_forward_ctx *p, const ses_rnn_params r[2], ses_tensor *x,
                                  const ses_seqs *q, ses_rnn_type type);
/* [B, C]: the last row in time of each sequence; reverse: the first row. Zeros for an empty sequence. */
ses_tensor *ses_rnn_last(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x, bool reverse);

/* [B, C]: final states of the two directions in x, from ses_rnn_bidirectional. */
ses_tensor *ses_rnn_final_states(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x);

/* Attention of a recurrent decoder: see rnn_attention.c. */
typedef struct ses_rnn_attention {
    ses_rnn_attention_kind kind;
    ses_dense query, key, out; /* w NULL: none */
    ses_tensor *v;             /* additive scores; else NULL */
} ses_rnn_attention;

/* The states that are attended to. */
typedef struct ses_rnn_attention_keys {
    ses_tensor *key, *value; /* [S, hidden] */
    ses_tensor *cu_seqlens_q, *cu_seqlens_k;
    ses_tensor *len_k; /* NULL: cu_seqlens_k covers all keys */
    int64_t max_seqlen_q, max_seqlen_k;
} ses_rnn_attention_keys;

void ses_rnn_attention_add(ses_rnn_attention *a, ses_store *s, const ses_config *c, const char *prefix);
/* Sets key and value; the caller sets the rest. */
void ses_rnn_attention_begin(const ses_rnn_attention *a, ses_tape *t, ses_tensor *states,
                             ses_rnn_attention_keys *k);
/* Attentional vectors tanh(Wo [context; x]) of the states x. *probs: the weights; probs may be NULL. */
ses_tensor *ses_rnn_attention_run(const ses_rnn_attention *a, ses_tape *t, const ses_rnn_attention_keys *k,
                                  ses_tensor *x, ses_tensor **probs);

/* Dropout of recurrent models; each is the identity on a tape that does not train. dropout_kinds.c */
/* One mask per sequence and column, for all its tokens (locked or variational dropout; Gal and Ghahramani
 * 2016). */
ses_tensor *ses_dropout_locked(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x, double rate);
/* Whole rows: rescale divides the others by 1 - rate. */
ses_tensor *ses_dropout_tokens(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x, double rate,
                               bool rescale);
/* Whole rows, the same for all tokens of the batch with the same id, rescaled (AWD-LSTM's embedding
 * dropout). */
ses_tensor *ses_dropout_types(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x, double rate);

/* ELMo's scalar mix (Peters et al. 2018): gain sum_i softmax(weight)_i h_i over n layers. */
typedef struct ses_scalar_mix {
    ses_tensor *weight, *gain; /* [n], [1]; NULL: none */
} ses_scalar_mix;
/* Parameters named prefix + "weight", "gain". */
ses_scalar_mix ses_scalar_mix_add(ses_store *s, const char *prefix, int64_t n);
ses_tensor *ses_scalar_mix_run(const ses_scalar_mix *m, ses_tape *t, ses_tensor *const *h, int64_t n);

/* Heads on chosen layers (config.custom_head.choice). */
bool ses_layer_choice_check(const ses_config *c, int64_t depth, ses_err *e);
int64_t ses_layer_choice_width(const ses_config *c, int64_t width); /* width of the combined layers */
/* mix: the weights of SES_COMBINE_MIX. */
ses_tensor *ses_layer_choice_run(const ses_layer_choice *k, const ses_scalar_mix *mix, ses_tape *t,
                                 ses_tensor *const *h, int64_t depth);

typedef struct ses_batch_norm_params {
    ses_tensor *gain, *bias, *mean, *var; /* mean, var: running statistics */
} ses_batch_norm_params;
/* Parameters named prefix + "weight", "bias", "running_mean", "running_var". */
ses_batch_norm_params ses_batch_norm_add(ses_store *s, int64_t width, const char *prefix);
ses_tensor *ses_batch_norm_run(ses_tape *t, const ses_batch_norm_params *n, ses_tensor *x);

/* Heads: scores and losses computed from the last hidden state. */
typedef struct ses_head_params {
    /* label_scores: label scores that a multiple-choice score is computed from */
    ses_dense dense, label_scores, out;
    ses_norm norm;
    /* [hidden - embed.width, vocab]: projection of the columns beyond the token table */
    ses_tensor *extra_proj;
    ses_adaptive_softmax adaptive; /* replaces all of the above */
    /* span boundary head: second layer, embeddings of the positions in the span; copy_lm: the copy logit */
    ses_dense dense2;
    ses_norm norm2;
    ses_tensor *boundary_position;
    /* custom head: hidden layers, or recurrent layers (forward, backward) */
    ses_dense custom[SES_MAX_CUSTOM_LAYERS];
    /* ULMFiT's classifier: before custom[i]; recurrent heads: [0], before the first layer; gain NULL: none */
    ses_batch_norm_params batch_norm[2];
    ses_rnn_params rnn[SES_MAX_CUSTOM_LAYERS][2];
    ses_tensor *token;                           /* the token table, if the head reads tokens */
    ses_tensor *crf_trans, *crf_start, *crf_end; /* NULL: no CRF */
} ses_head_params;

/* Parameters of a CRF: names of pytorch-crf behind "own.". */
#define SES_CRF_TRANSITIONS "own.crf.transitions"
#define SES_CRF_START "own.crf.start_transitions"
#define SES_CRF_END "own.crf.end_transitions"

typedef struct ses_head_use { /* a head in a model's class */
    const struct ses_head *head;
    const char *output;   /* name of the output */
    size_t labels_offset; /* offset of its labels in ses_batch */
    const char *loss;     /* name of its own loss among the outputs; NULL: not an output */
} ses_head_use;

/* Input of a head: the last hidden state with its sequences, and the pooled first tokens. */
typedef struct ses_state {
    ses_tensor *x, *pooled; /* x: [T, C], or its rows in p->used */
    const ses_seqs *seqs;
} ses_state;

/* Sets p->used to the rows that the heads read. */
void ses_used_rows_select(ses_forward_ctx *p, const ses_seqs *q, const ses_head_use *use, size_t n);
/* are some of q's rows unused? */
bool ses_used_rows_active(const ses_forward_ctx *p, const ses_seqs *q);
/* Gathers the used rows of x; returns x if it has no others. */
ses_tensor *ses_used_rows_gather(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x);
/* The rows requested by p->request: all, or rows (*axis becomes SES_PER_ROW). NULL: none, or the tape has
 * failed. */
ses_tensor *ses_state_requested(ses_forward_ctx *p, const ses_state *at, ses_axis *axis);
/* Marks them in used[t]. */
void ses_state_mark_used(const ses_forward_ctx *p, const ses_seqs *q, int32_t *used);
/* The last hidden states of these tokens, [n, C]. */
ses_tensor *ses_state_gather(ses_forward_ctx *p, const ses_state *at, const int32_t *token, int64_t n);

typedef enum {
    SES_LABEL_PER_TOKEN,
    SES_LABEL_PER_SEQUENCE,
    SES_LABEL_PER_QUESTION,
    SES_LABEL_PER_TARGET, /* decoder tokens */
    SES_LABEL_SPAN
} ses_label_axis;

/* The rows that a head scores in training, for counts of its work. */
typedef enum {
    SES_SCORES_BY_AXIS,       /* all tokens, or sequences */
    SES_SCORES_LABELED,       /* labeled tokens */
    SES_SCORES_LABELED_TWICE, /* the same in two directions */
    SES_SCORES_TOKENS,        /* all tokens, whatever the axis is */
    SES_SCORES_TOKENS_TWICE
} ses_head_rows;

typedef struct ses_head {
    const char *name, *description; /* "masked-lm"; a description for messages */
    ses_label_axis axis;
    bool pretrained;       /* trained with the model: an adapter for a task keeps it unchanged */
    const char *peft_task; /* the peft library's task type; NULL: none */
    bool allows_custom;    /* may be replaced by a custom head */
    bool is_lm;            /* scores are over the vocabulary and may be requested by row */
    bool has_exits;        /* classifiers after inner layers may do its work: early exits */
    bool shifts_labels;    /* row t is scored with the label of token t + 1 */
    ses_head_rows scores;
    int64_t (*class_count)(const ses_config *c); /* number of label values; 0: positions in a sequence */
    void (*add)(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token);
    void (*run)(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, const ses_state *at);
    /* Sets used[t] for each token of q whose last hidden state `run` passes to ses_state_gather, including
     * the pooled ones; NULL: all. */
    void (*mark_used)(const ses_head_use *use, const ses_forward_ctx *p, const ses_seqs *q, int32_t *used);
} ses_head;

#define SES_HEAD(name) extern const ses_head ses_head_##name;
#include "heads.def"
#undef SES_HEAD

const ses_head *ses_head_find(const char *name); /* NULL: none */
/* NULL: not in this batch */
const int32_t *ses_head_labels(const ses_head_use *use, const ses_batch *b);
/* The number of labels in a batch that count in the head's loss. */
int64_t ses_head_predictions(const ses_head_use *use, const ses_batch *b);
double ses_head_dropout_rate(const ses_config *c);
int64_t ses_head_width(const ses_config *c); /* width of the last hidden state */
/* Dense layer, activation and norm between a hidden state and its scores; identity if the model has none. */
void ses_prediction_head_add(ses_head_params *h, ses_store *s, const ses_config *c, const char *name);
ses_tensor *ses_prediction_head_run(const ses_head_params *h, ses_forward_ctx *p, ses_tensor *x);
/* Custom head (config.custom_head): h->out, as wide as `outputs`, and the layers before it. */
void ses_custom_head_add(ses_head_params *h, ses_store *s, const ses_config *c, int64_t outputs);
/* Does it read all tokens instead of a summary token? */
bool ses_custom_head_is_recurrent(const ses_config *c);
/* The summary that it reads: its pooling, or the model's; of a causal model that has the first token, which
 * attends to no other, the last one. */
ses_summary ses_custom_head_summary(const ses_config *c);
ses_tensor *ses_custom_head_run(const ses_head_params *h, ses_forward_ctx *p, const ses_state *at,
                                bool per_token);
/* ULMFiT's classifier (config.head.pooled_width): its parameters, its scores [B, labels]. */
void ses_pooled_classifier_add(ses_head_params *h, ses_store *s, const ses_config *c);
ses_tensor *ses_pooled_classifier_run(const ses_head_params *h, ses_forward_ctx *p, const ses_state *at);
/* [B, C]: the summary of each sequence. */
ses_tensor *ses_summary_gather(ses_forward_ctx *p, const ses_state *at);
ses_tensor *ses_summary_first(ses_forward_ctx *p, const ses_state *at); /* [B, C]: the first tokens */
void ses_summary_mark_used(const ses_head_use *use, const ses_forward_ctx *p, const ses_seqs *q,
                           int32_t *used);
void ses_summary_add(ses_head_params *h, ses_store *s, const ses_config *c, const char *name);
/* [B, C], with dense layer and dropout */
ses_tensor *ses_summary_run(const ses_head_params *h, ses_forward_ctx *p, const ses_state *at);

/* The LM head: transform, if the model has one, and vocabulary projection. */
void ses_lm_add(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token);
/* x before the projection: dense layer and norm, if the model has them. */
ses_tensor *ses_lm_transform(const ses_head_params *h, ses_forward_ctx *p, ses_tensor *x);
ses_tensor *ses_lm_logits(const ses_head_params *h, ses_forward_ctx *p, ses_tensor *x);
/* The output of copy_lm beside its logits: the logit of copying the input token, for each row. */
#define SES_COPY_OUTPUT "copy_logits"
/* Outputs the logits if requested: of all rows, or of the requested ones. */
void ses_lm_output(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, ses_axis axis,
                   const ses_state *at);
/* Cross entropy of the logits at token[i] with label[i], i < n; host arrays on the tape. */
ses_tensor *ses_lm_loss(const ses_head_params *h, ses_forward_ctx *p, const ses_state *at, int32_t *token,
                        int32_t *label, int64_t n);
/* Marks the tokens that these two read: requested ones, and labeled ones, whose label is `shift` tokens
 * later. */
void ses_lm_mark_used(const ses_head_use *use, const ses_forward_ctx *p, const ses_seqs *q, int32_t shift,
                      int32_t *used);

#endif
