/* The configuration of a model: every architectural difference, as data. The model's file (src/model/NAME.c)
 * sets the defaults of its type, config.json the rest. Plain values: a ses_config owns nothing, and it is
 * constant once the model is open, so all threads may read it. */
#ifndef SES_NN_CONFIG_H
#define SES_NN_CONFIG_H

#include "base/labels/tag_scheme.h"
#include "op/rope/rope.h"
#include "sesame/model.h"
#include "sesame/unstable/ops.h"

/* Sizes and widths of character filters are bounded by the number of inputs of an op (SES_MAX_IN). */
enum { SES_MAX_VECTOR_MIXES = 8 };
enum { SES_MAX_FILTERS = 10, SES_MAX_FILTER_SIZE = 10, SES_MAX_HIGHWAYS = 8 };
enum { SES_MAX_LAYERS = 1024, SES_MAX_CLUSTERS = 8, SES_MAX_CUSTOM_LAYERS = 4, SES_MAX_LAYER_CHOICE = 64 };

/* mix: a learned weighted sum (ses_scalar_mix). */
typedef enum { SES_COMBINE_MEAN, SES_COMBINE_SUM, SES_COMBINE_CONCAT, SES_COMBINE_MIX } ses_combine;
enum { SES_COMBINES = SES_COMBINE_MIX + 1 };
extern const char *const ses_combine_names[SES_COMBINES];

/* Layers that heads read instead of the last one: 0 is the embeddings, -1 the last layer. */
typedef struct ses_layer_choice {
    int64_t layer[SES_MAX_LAYER_CHOICE], n; /* n 0: none */
    ses_combine combine;
} ses_layer_choice;

/* problem_type of config.json. */
typedef enum { SES_PROBLEM_UNSET, SES_PROBLEM_REGRESSION, SES_PROBLEM_SINGLE, SES_PROBLEM_MULTI } ses_problem;

typedef enum {
    SES_NORM_LAYER,          /* layer norm with weight and bias */
    SES_NORM_LAYER_NO_BIAS,  /* layer norm with weight only */
    SES_NORM_RMS,            /* RMS norm with weight */
    SES_NORM_RMS_PLUS_ONE,   /* RMS norm with the factor 1 + weight (Gemma) */
    SES_NORM_LAYER_NO_AFFINE /* layer norm without parameters */
} ses_norm_kind;

/* SES_POST_NORM: after the residual sum; SES_PRE_NORM: before the sublayer. */
typedef enum { SES_POST_NORM, SES_PRE_NORM } ses_norm_placement;

/* Position encodings. */
typedef enum {
    SES_POS_LEARNED,     /* trained table */
    SES_POS_SINUSOID,    /* fixed table, sines | cosines; read from the file or computed */
    SES_POS_INTERLEAVED, /* fixed table, sine and cosine of each frequency in adjacent columns */
    SES_POS_FAIRSEQ,     /* sines | cosines with fairseq's frequencies, computed */
    SES_POS_ROTARY,      /* rotary: rotates queries and keys (ModernBERT) */
    SES_POS_ALIBI,       /* fixed bias on the scores, linear in the distance (BLOOM) */
    /* Scores by distance: queries times a trained vector per distance, shared by a layer's heads (Shaw et
     * al. 2018); or queries and keys. The file's table of absolute positions is kept, but not read. */
    SES_POS_RELATIVE_KEY,
    SES_POS_RELATIVE_KEY_QUERY,
    SES_POS_NONE
} ses_position_kind;

/* Norms of queries and keys: none, of each head with norm.kind, or a layer norm of all columns. */
typedef enum { SES_QK_NORM_NONE, SES_QK_NORM_HEAD, SES_QK_NORM_ALL } ses_qk_norm;

/* Input of a sequence classifier in models without a pooler. */
typedef enum {
    SES_SUMMARY_FIRST,        /* first token, dense layer, activation */
    SES_SUMMARY_LAST_NON_PAD, /* last token that is not padding, unchanged */
    SES_SUMMARY_CLS_INDEX,    /* token given by ses_batch.choice_positions, or the last one, unchanged */
    SES_SUMMARY_EOS,          /* last EOS token, dense layer, activation */
    SES_SUMMARY_LAST_TOKEN,   /* last token, dense layer, activation */
    SES_SUMMARY_MEAN,         /* mean of all tokens, dense layer, activation */
    SES_SUMMARY_MAX,          /* maximum over all tokens by column, dense layer, activation */
    SES_SUMMARY_ENDS          /* final states of two directions: left half of the last token, right half of
                                 the first; dense layer, activation */
} ses_summary;

/* Decoder input made from labels: shifted right behind the start token, or behind the sequence's own last
 * token (mBART). */
typedef enum { SES_SHIFT_START, SES_SHIFT_WRAP_LAST } ses_label_shift;

/* Task head of Sesame that replaces the model's: linear layer, MLP, or bidirectional recurrent layers. */
typedef enum {
    SES_CUSTOM_NONE,
    SES_CUSTOM_LINEAR,
    SES_CUSTOM_MLP,
    SES_CUSTOM_LSTM,
    SES_CUSTOM_GRU
} ses_custom_head;

/* The tokens whose states it reads. */
typedef enum {
    SES_HEAD_POOL_DEFAULT /* see ses_custom_head_summary */,
    SES_HEAD_POOL_FIRST,
    SES_HEAD_POOL_MEAN,
    SES_HEAD_POOL_MAX,
    SES_HEAD_POOL_LAST
} ses_head_pooling;

/* Attention of a recurrent decoder over the encoder's states. */
typedef enum {
    SES_RNN_ATTENTION_GENERAL, /* state' W key */
    SES_RNN_ATTENTION_DOT,
    SES_RNN_ATTENTION_ADDITIVE, /* v' tanh(W state + U key) */
    SES_RNN_ATTENTION_NONE
} ses_rnn_attention_kind;

typedef struct ses_config {
    int64_t vocab, hidden, layers, labels;
    int64_t pad_id, eos_id; /* below 0: none */
    /* Parameter sharing (ALBERT): unique groups, layers in each group; 0: none. */
    int64_t layer_groups, layers_per_group;
    int64_t name_table;  /* index of the tensor name table that is searched first */
    bool weights_in_out; /* dense weights are stored [in, out] (GPT-2) */

    const struct ses_json *low_rank; /* ranks of factorized weights: see low_rank.c; NULL: none */

    struct {
        int64_t width;    /* columns of the token table; 0: hidden */
        int64_t low_rank; /* the token table is a product of two matrices of this rank; 0: it is not */
        int64_t
            modal_width;  /* columns of vectors that precede a text (MMBT) or describe its words; 0: none */
        int64_t segments; /* rows of the segment (token type) table; 0: no table */
        int64_t tasks;    /* rows of the table of tasks, whose first is added to all tokens; 0: no table */
        bool tied;        /* the LM head's projection is the token table */
        bool scale_by_sqrt_hidden; /* token vectors are multiplied by sqrt(hidden) */
        bool norm;                 /* norm after the sum of the embeddings */
        bool train_pad;            /* the padding token's vector receives gradients */
        /* width -> hidden before positions are added, back after the last layer (OPT) */
        bool project_before_positions;
        bool always_project; /* the projection exists even if width equals hidden */
        bool trigram;        /* input of a token: its vector and both neighbors' (MobileBERT) */
        /* taggers: columns of the vectors of bytes, units of the LSTM over a word's bytes; 0: not read */
        int64_t char_width, char_size;
        int64_t caps_width; /* taggers: columns of the vector of a word's capital letters; 0: not read */
        /* vectors of mask_id are 0, the others divided by the part that is left, times 0.88 (ESM) */
        bool token_dropout;
        int64_t mask_id;
        bool vector_norm; /* batch norm of the modal_width columns */
        bool reproject;   /* a dense layer as wide as its input after the embeddings */
    } embed;

    /* Word vectors from characters (ELMo). Filters of size[i] characters, count[i] of them. */
    struct {
        int64_t per_word; /* characters of a word, padding included; 0: tokens have vectors of their own */
        int64_t width;    /* columns of the character table */
        int64_t filters;  /* number of sizes */
        int64_t size[SES_MAX_FILTERS], count[SES_MAX_FILTERS];
        int64_t highways; /* highway layers */
        int64_t unk_id;   /* id of words outside the vocabulary, whose characters the batch gives */
        ses_act act;      /* after the maximum over positions */
    } chars;

    /* Adaptive embeddings and softmax (Transformer-XL). Cluster i holds tokens cutoffs[i] .. cutoffs[i + 1]
     * - 1 in vectors of embed.width / div_val^i columns; cluster 0 is the shortlist. */
    struct {
        int64_t clusters; /* 0: one plain table */
        int64_t div_val;
        int64_t cutoffs[SES_MAX_CLUSTERS + 1];
        uint32_t tie_projs; /* bit i: embedding and softmax share the projection of cluster i */
    } adaptive;

    struct {
        ses_position_kind kind;
        int64_t max;               /* longest sequence */
        int64_t offset;            /* rows of the table before position 0 */
        int64_t extra_rows;        /* rows of the table beyond `max` */
        bool skips_pad;            /* a token with the padding id gets the padding row and is not counted */
        bool from_mask;            /* transformers counts positions over the attention mask (OPT) */
        bool distances_unscaled;   /* the scores of distances are added after scaling (ALBERT) */
        ses_rope rope, local_rope; /* rotary frequencies in layers with full attention, in local layers */
        double rotary_fraction;    /* part of each head that is rotated; 0: all */
        bool rotary_adjacent;      /* pairs of adjacent columns are rotated, not of two halves */
    } position;

    struct {
        int64_t heads;
        int64_t head_size; /* 0: hidden / heads */
        /* "pruned_heads" of config.json for ses_stack_add, not valid later; NULL: all heads are there */
        const struct ses_json *pruned;
        bool causal;
        bool cross;   /* layers have cross attention (a decoder): computed behind an encoder, else idle */
        double scale; /* factor of the scores; 0: 1 / sqrt(head size) */
        bool scale_by_layer;                        /* scores are divided by the layer number, too */
        int64_t window;                             /* window of local layers; 0: none */
        uint64_t local_layers[SES_MAX_LAYERS / 64]; /* bit i: layer i is local */
        /* the first as many layers attend to tokens up to their own, the next to tokens from their own on
         * (two towers); 0: none */
        int64_t tower_layers;
        ses_qkv_layout qkv_layout;
        int64_t kv_heads; /* heads of keys and values, each read by heads / kv_heads queries; 0: heads */
        ses_qk_norm qk_norm;
        bool no_bias;     /* all four projections lack a bias */
        bool no_qkv_bias; /* query, key and value projections lack a bias */
    } attention;

    /* Trained bias on the scores by bucketed distance (T5). */
    struct {
        int64_t buckets; /* 0: none */
        int64_t max_distance;
        int64_t table_rows; /* rows of the table in the file; 0: buckets */
        bool per_layer;     /* each layer has a table (UMT5) */
    } rel_bias;

    /* Disentangled attention (DeBERTa): scores of content and relative position vectors. */
    struct {
        bool enabled;
        /* distances -max .. max - 1 have rows of their own, or share buckets */
        int64_t max_relative_positions;
        int64_t buckets;    /* 0: none */
        bool c2p, p2c;      /* content-to-position, position-to-content term */
        bool share_att_key; /* content and position share their projections */
        bool norm_table;    /* the position table is normalized */
    } disentangled;

    struct {
        int64_t kernel_size; /* convolution beside the first layer (DeBERTa-v2); 0: none */
        ses_act act;
    } conv;

    /* Transformer-XL and XLNet. */
    struct {
        bool segment_recurrence; /* accepts and returns mems */
        bool permutation_lm;     /* accepts permutation masks, positions to predict and mems */
        bool relative_segments;  /* attention compares segments, so that any segment id is valid */
        bool bi_data;            /* the second half of a batch is reversed */
        bool same_length;        /* causal: all tokens attend to equally many keys */
        bool shared_biases;      /* all layers share the query biases */
        int64_t mem_len;         /* tokens in the mems */
        int64_t reuse_len;       /* tokens of a batch that enter the mems; 0: all */
        int64_t clamp_len;       /* maximum relative distance; 0: unlimited */
    } xl;

    /* Models before BERT. */
    struct {
        int64_t width;   /* columns of the token table, if the vocabulary projection has others; 0: none */
        int64_t context; /* tokens that the hidden layer reads (n-gram models) */
        bool direct;     /* the vocabulary projection reads the token vectors, too */
        bool excludes_token; /* the hidden state at a token does not depend on the token */
    } input;

    /* Taggers of words. */
    struct {
        int64_t encoder; /* index among the encoders of taggers */
        /* The last late_width columns of the vectors enter after layer late_layer (TagLM); 0: none. */
        int64_t late_width, late_layer;
        int64_t window;         /* words that a hidden vector reads */
        int64_t conv_width;     /* outputs of the convolution */
        int64_t distance_width; /* columns of the vector of the distance from the word to be labeled */
        /* Columns of the vectors that are layers of a model, side by side: a learned weighted sum replaces
         * them. In the order of columns. */
        struct {
            int64_t column, layers, size;
        } mix[SES_MAX_VECTOR_MIXES];
        int64_t n_mix;
    } tagger;

    /* Recurrent layers. */
    struct {
        ses_rnn_type type;
        int64_t size, last_size,
            proj;      /* units; units of the last layer, 0: size; projected outputs, 0: none */
        int64_t state; /* numbers in the state of a sequence, all layers; 0: none is carried */
        bool bidirectional;
        bool one_way;   /* an encoder that is not bidirectional: a token sees earlier ones only */
        bool backward;  /* a language model of reversed texts */
        int64_t window; /* tokens that gradients pass through (truncated backpropagation); 0: all */
        double ar, tar; /* weights of the penalties on outputs and on their changes over time (AWD-LSTM) */
        bool residual;  /* layers after the first add their input to their output (ELMo) */
        double cell_clip, proj_clip; /* 0: not clipped */
        ses_rnn_attention_kind attention;
        bool input_feeding; /* the decoder reads the attentional vector of the step before */
        /* dropout rates: inputs of the first layer, between layers, recurrent weights, vocabulary entries,
         * outputs */
        double input_drop, hidden_drop, weight_drop, embed_drop, output_drop;
    } rnn;

    struct {
        ses_norm_kind kind;
        ses_norm_placement placement;
        double eps, final_eps;   /* final_eps: after the last layer; 0: eps */
        bool residual_post_norm; /* pre-norm: the residual is the norm's output (BLOOM) */
        bool no_first_attn_norm; /* no norm before the first layer's attention (ModernBERT) */
        bool sandwich;           /* pre-norm: the sublayers' outputs are normalized, too (Gemma) */
        bool second_attn_norm;   /* post-norm: norm(x + norm(x + attention)) (jina) */
        bool after_last_layer;
        bool affine_only; /* norms inside layers scale and shift without statistics (MobileBERT NoNorm) */
    } norm;

    struct {
        int64_t width; /* intermediate_size */
        /* "sesame_ffn_widths" of config.json for ses_stack_add, not valid later; NULL: `width` everywhere */
        const struct ses_json *widths;
        ses_act act;
        bool gated;      /* act(gate x) * up x */
        bool fused_gate; /* gate and up projection are one matrix, gate rows first */
        bool no_bias;
        bool no_up_bias; /* gate and up projection lack a bias */
        /* mixture of experts in layers expert_every - 1, 2 expert_every - 1, ...: each token is the sum of
         * its `top` likeliest experts, weighted by their probabilities; experts 0: none */
        int64_t experts, expert_top, expert_every;
    } ffn;

    /* Bottleneck layers (MobileBERT). */
    struct {
        int64_t width;         /* inside a layer; 0: none */
        int64_t ffns;          /* consecutive feed-forward blocks */
        bool key_query_shared; /* queries and keys read a bottleneck of their own */
        bool for_attention;    /* queries, keys and values read the layer's bottleneck */
    } bottleneck;

    /* The decoder of an encoder-decoder model. */
    struct {
        int64_t layers, heads, ffn_width;
        int64_t vocab;    /* the decoder's own vocabulary; 0: the encoder's */
        int64_t start_id; /* decoder_start_token_id */
        ses_label_shift label_shift;
        bool input_from_source;   /* without decoder ids: the encoder's input, shifted right (BART) */
        bool separate_embeddings; /* encoder and decoder do not share the token table */
    } decoder;

    struct {
        bool present;  /* in the model's class */
        bool no_dense; /* the pooled vector is the first token's */
        ses_act act;
    } pooler;

    /* The vector a sequence classifier reads in models without a pooler. */
    struct {
        ses_summary kind;
        bool no_proj;        /* no dense layer */
        bool dense_by_token; /* a mean: the dense layer reads each token, not the mean */
        ses_act act;
        ses_act sequence_summary_act; /* replaces act in classes with uses_sequence_summary_act (ELECTRA) */
    } summary;

    struct {
        ses_problem problem;
        /* ULMFiT's classifier: width of its inner layer, tokens of a text that it pools, 0: all. Width 0: the
         * classifier reads a summary. */
        int64_t pooled_width, pooled;
        bool label_gain; /* classifiers: each token predicts the label, with weights that rise linearly */
        bool prediction_head; /* dense, activation and norm before every head (ModernBERT) */
        bool no_classifier_bias;
        ses_act score_act;              /* on the classifier's scores */
        ses_act choice_act;             /* on a multiple-choice score */
        bool choice_from_labels;        /* a multiple-choice score is computed from the label scores (XLM) */
        int64_t start_n_top, end_n_top; /* answers by beam search: starts, ends of each start */
        /* span boundary head: positions in a span, vector width */
        int64_t boundary_positions, boundary_width;
        int64_t decoder_size; /* units that predict neighbor sentences; 0: hidden */
    } head;

    struct {
        ses_act act;            /* activation of the transform */
        int64_t width;          /* columns of the vocabulary projection; 0: of the token table */
        double logit_scale;     /* 0: 1 */
        int64_t sampled;        /* negatives of a sampled softmax in training; 0: the whole softmax */
        bool no_transform;      /* no dense layer before the vocabulary projection */
        bool no_transform_bias; /* this dense layer, or that of prediction_head, has no bias */
        bool bias;              /* the vocabulary projection has a bias */
        bool final_logits_bias; /* the bias is a [1, V] buffer, never trained (BART) */
        bool extra_cols; /* input is `hidden` wide; columns beyond embed.width have weights of their own */
    } lm;

    struct {
        ses_custom_head kind;
        int64_t layers, sizes[SES_MAX_CUSTOM_LAYERS];
        ses_act act;
        bool scalar_mix; /* heads read a learned mix of all layers (ELMo), not the last layer */
        bool norm;       /* recurrent: batch norm of the input */
        ses_layer_choice choice;
        ses_head_pooling pooling; /* linear, mlp: input of a sequence classifier */
        bool normalize;           /* linear, mlp: this input is divided by its length */
    } custom_head;

    /* Classifiers after inner layers ("sesame_exits"); n 0: none. */
    struct {
        int64_t n;
        uint64_t layers[SES_MAX_LAYERS / 64]; /* bit i: after i layers */
        bool linear;                          /* without a dense layer before the scores */
        bool has_rule;                        /* "rule": of predictions that name none */
        ses_exit_policy rule;
    } exits;

    /* Token classification with a CRF over the labels; scheme: which steps are never decoded. */
    struct {
        bool enabled;
        ses_tag_scheme scheme;
    } crf;

    /* Dropout rates. */
    struct {
        double hidden, attention, act, final;
        double embed, head, ffn;     /* below 0: hidden */
        double span;                 /* question answering head */
        double token_classification; /* 0: head; below 0: none */
        double summary_first;        /* before the summary's dense layer */
        bool head_on_summary_input;  /* the head's rate applies there, too */
    } dropout;

    struct {
        double range;   /* standard deviation */
        double uniform; /* all parameters but gains: uniform in +- this; 0: each by its kind */
        bool by_fan_in; /* matrices: range / sqrt(inputs), queries smaller (T5) */
    } init;
} ses_config;

/* Does each layer score distances with a table of its own? */
static inline bool ses_config_scores_distances(const ses_config *c)
{
    return c->position.kind == SES_POS_RELATIVE_KEY || c->position.kind == SES_POS_RELATIVE_KEY_QUERY;
}

/* Do segment ids change the output? */
static inline bool ses_config_uses_segments(const ses_config *c)
{
    return c->embed.segments > 1 || c->xl.relative_segments;
}

#endif
