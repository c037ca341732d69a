/* Every way two models may differ, as data. A model's file gives the values its kind implies; config.json
 * the rest. */
#ifndef SES_NN_CONFIG_H
#define SES_NN_CONFIG_H

#include "sesame/ops.h"

enum { SES_MAX_LAYERS = 1024, SES_MOST_CLUSTERS = 8 };

typedef enum { SES_PROBLEM_UNSET, SES_PROBLEM_REGRESSION, SES_PROBLEM_SINGLE, SES_PROBLEM_MULTI } ses_problem;

/* Layer norm, layer norm without a bias, RMS norm, or layer norm without weights. */
typedef enum { SES_NORM_LAYER, SES_NORM_GAIN, SES_NORM_RMS, SES_NORM_PLAIN } ses_norm_kind;
/* After the residual sum, or before the sublayer. */
typedef enum { SES_POST_NORM, SES_PRE_NORM } ses_norm_place;

/* How a token knows its place. */
typedef enum {
    SES_POS_LEARNED,     /* a table, trained */
    SES_POS_SINUSOID,    /* a table of sines | cosines, stored or computed, never trained */
    SES_POS_INTERLEAVED, /* the same with sine and cosine of a frequency beside each other */
    SES_POS_FAIRSEQ,     /* sines | cosines of fairseq's frequencies, computed */
    SES_POS_ROTARY,      /* queries and keys turned by an angle (ModernBERT) */
    SES_POS_ALIBI,       /* a fixed bias on the scores that falls with distance (BLOOM) */
    SES_POS_NONE
} ses_pos;

/* What a classifier looks at where there is no pooler. */
typedef enum {
    SES_SUMMARY_FIRST, /* dense and activation over the first token */
    SES_SUMMARY_LAST,  /* the last token that is no pad, as it is */
    SES_SUMMARY_PLACE, /* the token the batch names, or the last, as it is */
    SES_SUMMARY_EOS,   /* dense and activation over the last end-of-sequence token, */
    SES_SUMMARY_END,   /* over the last token, */
    SES_SUMMARY_MEAN   /* over the mean of all */
} ses_summary;

/* How labels become the decoder's input: shifted right behind a start token, or behind the row's own last
 * one. */
typedef enum { SES_SHIFT_START, SES_SHIFT_LAST } ses_shift;

/* A head of Sesame's own in place of the model's: hidden layers, or recurrent ones in both directions. */
typedef enum { SES_OWN_NONE, SES_OWN_LINEAR, SES_OWN_MLP, SES_OWN_LSTM, SES_OWN_GRU } ses_own_head;
enum { SES_MOST_OWN = 4 };

typedef struct ses_config {
    /* ---- sizes ---- */
    int64_t vocab, hidden, layers, heads, ffn, positions, segments, labels, pad;
    int64_t embed;         /* width of the token table; 0: hidden */
    int64_t head_size;     /* 0: hidden / heads */
    int64_t groups, inner; /* layers that share parameters: distinct groups, layers in each; 0: none */
    int64_t decoder_layers, decoder_heads, decoder_ffn;
    int64_t start, eos;  /* decoder_start_token_id, eos_token_id */
    int64_t first_names; /* the table of tensor names this config asks first */

    /* ---- tokens ---- */
    bool tied;           /* the vocabulary projection is the token table */
    bool tables_apart;   /* encoder and decoder have token tables of their own */
    bool scale_embed;    /* tokens times sqrt(hidden) */
    bool embed_norm;     /* a norm after the embeddings */
    bool pad_learns;     /* looking the pad token up passes a gradient */
    bool project_early;  /* from embed to hidden before positions are added, back after the last layer */
    bool always_project; /* from embed to hidden also where the two are equal */
    bool trigram;        /* a token's input is it and its neighbors */
    /* Of a vocabulary in clusters: the first is a short list, cluster i has tokens cut[i] .. cut[i + 1] - 1
     * in vectors of embed / narrower^i numbers; clusters 0: the vocabulary is one table. */
    int64_t clusters, narrower, cut[SES_MOST_CLUSTERS + 1];
    uint32_t tied_projects; /* bit i: cluster i's projection serves embedding and prediction */

    /* ---- places ---- */
    ses_pos pos;
    int64_t pos_offset; /* rows of the position table before position 0 */
    int64_t pos_extra;  /* rows of it beyond `positions` */
    bool pos_skips_pad; /* a token with the pad's id stands at the pad's row and is not counted */
    bool pos_by_mask;   /* the reference counts positions over real tokens, not over places of a padded row */
    double theta, local_theta; /* of rotary positions, in layers that see all and in local ones */

    /* ---- attention ---- */
    bool causal;
    double attention_scale;              /* 0: 1 / sqrt(head size) */
    bool scale_by_layer;                 /* scores also divided by the layer's number */
    int64_t window;                      /* of layers marked local; 0: none */
    uint64_t local[SES_MAX_LAYERS / 64]; /* bit i: layer i sees `window` tokens only */
    ses_qkv_layout qkv;
    bool segment_pairs; /* attention tells tokens of one segment from others: any number */
    int64_t conv;       /* width of a convolution beside the first layer; 0: none */
    /* A trained bias on the scores by bucketed distance (T5); 0: none. */
    int64_t buckets, max_distance;
    int64_t bucket_rows; /* of its table, where it has more than are used; 0: as many as buckets */
    /* Scores by distance from a table of vectors (DeBERTa): distances -span .. span - 1 have rows of their
     * own, or share buckets. */
    bool relative;
    int64_t rel_span, rel_buckets;
    bool rel_by_query, rel_by_key; /* with the query's content, with the key's */
    bool rel_shared;               /* tokens and distances have the same projections */
    bool rel_norm;                 /* the table goes through a norm */

    /* ---- layers ---- */
    ses_norm_kind norm;
    ses_norm_place place;
    double norm_eps, final_eps; /* of norms; of the one behind the last layer, 0: as the others */
    bool normed_residual;       /* of pre-norm: what is added is the norm's output */
    bool no_first_norm;         /* the first layer's attention has no norm before it */
    bool final_norm;            /* a norm after the last layer */
    bool plain_norm;            /* norms inside layers scale and shift without statistics */
    ses_act act, conv_act;
    bool gated;      /* feed-forward: act(gate x) * up x */
    bool fused_gate; /* gate and linear part are one matrix, one above the other */
    bool in_out;     /* weights stored [in, out] */
    /* Dense layers without a bias: of all attention, of query, key and value alone, of the feed-forward. */
    bool no_attn_bias, no_qkv_bias, no_ffn_bias;
    int64_t bottleneck;     /* width inside a layer (MobileBERT); 0: none */
    int64_t ffns;           /* of a bottleneck: feed-forwards after each other */
    bool bottleneck_shared; /* queries and keys have a bottleneck of their own, */
    bool bottleneck_all;    /* or that of everything, values too */

    /* ---- what goes on from batch to batch, what is read in any order ---- */
    bool any_order;             /* takes permutation masks, places to predict, memories (XLNet) */
    bool remembers;             /* takes a memory and gives one (Transformer-XL) */
    int64_t mem_len, reuse_len; /* of a memory: tokens in it, tokens of a batch among them; 0: all */
    int64_t clamp;              /* farther distances from it are as this one; 0: none is */
    bool two_ways;              /* of any_order: half of a batch is read backwards */
    bool same_length;           /* of any_order and causal: every token sees as many others */
    bool shared_biases;         /* of remembers: all layers have the same biases of queries */

    /* ---- a decoder beside an encoder ---- */
    ses_shift shift;
    bool echo; /* the decoder reads the encoder's input, shifted right */

    /* ---- heads ---- */
    ses_problem problem;
    bool pooler;       /* the class has one */
    bool pooler_plain; /* which is the first token as it is */
    bool head_norm;    /* a dense layer and a norm before what any head says */
    ses_act pooler_act;
    ses_summary summary;
    bool summary_plain;   /* no dense layer before the classifier */
    bool no_summary_bias; /* the classifier has no bias */
    ses_act summary_act;
    ses_act told_act;     /* of a summary, in classes that ask the config */
    ses_act score_act;    /* of a classifier's scores themselves */
    ses_act choice_act;   /* of a choice's score */
    bool choice_by_label; /* a choice's score is made of scores of labels */
    ses_act lm_act;
    double logit_scale;     /* 0: 1 */
    bool lm_plain, lm_bias; /* vocabulary projection without a layer before it; with a bias */
    bool no_lm_bias;        /* the dense layer before it, or that of head_norm, has none */
    bool lm_fixed_bias;     /* the projection's bias is [1, V] and never trained */
    bool lm_wide; /* the projection's input is `hidden` wide: columns beyond the token table have their own */
    /* Of a span boundary head: places in a span, width of each one's vector. */
    int64_t span_places, span_width;
    ses_own_head own_head;
    int64_t own_layers, own_size[SES_MOST_OWN]; /* of it */
    ses_act own_act;
    bool mix_layers; /* a learned mix of all layers stands for the last (ELMo) */

    /* ---- dropout and first values ---- */
    double drop, drop_attention, drop_act, drop_final;
    double drop_embed, drop_head, drop_ffn; /* below 0: as drop */
    double drop_span;
    double drop_summary;  /* before the summary's dense layer, */
    bool drop_summary_in; /* or there, too, the rate that is behind it */
    double drop_tag;      /* of a label for every token; 0: as drop_head, below 0: none */
    double init_range;
    bool init_fan; /* matrices begin with a deviation of init_range / sqrt(inputs), queries smaller yet */
} ses_config;

#endif
