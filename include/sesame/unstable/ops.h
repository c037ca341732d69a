/* The ops, listed with their semantics in sesame/unstable/ops.def. Each op runs at once and returns a
 * tensor that belongs to the tape and lives until the tape is reset. NULL: the op or an earlier one
 * failed; the reason is on the tape (ses_tape_ok).
 * Threads: as the tape (sesame/unstable/tape.h). */
#ifndef SESAME_OPS_H
#define SESAME_OPS_H

#include "sesame/unstable/tape.h"

SES_BEGIN_DECLS

/* Layout of queries, keys and values. C is heads * D. */
typedef enum {
    SES_QKV_SEPARATE,   /* three tensors [tokens, C] */
    SES_QKV_FUSED,      /* one tensor [tokens, 3 C]: queries | keys | values */
    SES_QKV_INTERLEAVED /* one tensor [tokens, 3 C]: query, key and value of each head */
} ses_qkv_layout;

/* Inputs of attention over ragged sequences. A sequence attends only to its own keys. */
typedef struct ses_attention_inputs {
    /* [tokens, heads * D] each. A fused or interleaved q holds all three, and k and v are NULL;
     * if they are given, only the queries of q are read. v alone NULL: k holds keys | values. */
    ses_tensor *q, *k, *v;
    ses_tensor *cu_seqlens_q, *cu_seqlens_k; /* ints: offsets of queries and keys */
    ses_tensor *len_k; /* ints: number of keys of each sequence, if cu_seqlens_k has gaps; NULL: no gaps */
    /* [2 max_seqlen_k - 1, heads], added to the scores by row key - query + max_seqlen_k - 1; or NULL */
    ses_tensor *rel_bias;
    bool head_major;  /* k and v are [heads, tokens, D] */
    bool allow_i8;    /* inference on a CPU: int8 products are permitted, as with int8 weights */
    ses_tensor *bias; /* [heads, queries, keys] of each sequence, added to the scores; or NULL */
} ses_attention_inputs;

typedef struct ses_attention_options {
    int64_t heads, max_seqlen_q, max_seqlen_k; /* max_seqlen_q, max_seqlen_k: maximum length */
    double scale;                              /* factor of the scores; 0: 1 / sqrt(D) */
    double dropout;                            /* rate on the probabilities, while training */
    bool causal;
    int64_t window; /* tokens attend to distances below this; 0: all */
    ses_qkv_layout layout;
    bool anticausal; /* tokens attend to themselves and to later ones */
    bool equal_keys; /* the window of each sequence is keys - queries + 1, instead */
} ses_attention_options;

/* Scores by relative position or segment: the query or the key times a row of a table. */
typedef enum { SES_BY_QUERY, SES_BY_KEY } ses_relative_side;
typedef enum {
    SES_ROWS_BY_DISTANCE, /* row dist_to_row[distance] */
    SES_ROWS_BY_LABEL     /* row 0 if both tokens have the same label, else row 1 */
} ses_relative_rows;

typedef struct ses_relative_term {
    ses_tensor *x; /* queries or keys [tokens, heads * D], or a tensor in `layout` */
    ses_tensor *r; /* table [rows, heads * D] */
    ses_relative_side side;
    ses_relative_rows rows;
    ses_qkv_layout layout;
} ses_relative_term;

typedef struct ses_relative_inputs {
    ses_relative_term term[2];               /* second term with x NULL: none */
    ses_tensor *cu_seqlens_q, *cu_seqlens_k; /* ints: offsets of queries and keys */
    ses_tensor *q_pos; /* ints [queries]: positions among the keys; NULL: queries are the last keys */
    /* ints [2 max_seqlen_k - 1]: table row of distance key - query + max_seqlen_k - 1 */
    ses_tensor *dist_to_row;
    ses_tensor *label; /* ints [keys], or NULL */
    ses_tensor *mask;  /* [queries, keys] of each sequence, added in every head; no gradient; or NULL */
} ses_relative_inputs;

typedef struct ses_relative_options {
    int64_t heads, max_seqlen_k; /* max_seqlen_k: maximum number of keys of a sequence, or more */
    int64_t pairs;               /* sum over sequences of queries times keys */
    double scale;                /* 0: 1 / sqrt(D) */
    int64_t reversed_from;       /* sequences from this one on are reversed: distances change sign; 0: none */
    bool for_attention;          /* the result is the bias of ses_attention and read nowhere else */
} ses_relative_options;

/* A recurrent layer of H units with G gates in PyTorch's order: 4 for an LSTM (input, forget, cell, output),
 * 3 for a GRU (reset, update, new). The output has P columns: H, or the rows of proj. */
typedef struct ses_rnn_inputs {
    ses_tensor *x;          /* [T, G H]: the input times its weights, plus its bias */
    ses_tensor *w, *bias;   /* recurrent weights [G H, P]; [G H] or NULL */
    ses_tensor *proj;       /* [P, H]: projects the output of an LSTM; NULL: P is H */
    ses_tensor *cu_seqlens; /* ints */
    /* the same on the host, until the tape is reset; NULL: read back from the device */
    const int32_t *host_cu_seqlens;
    ses_tensor *h0, *c0; /* [B, P], [B, H]: initial states; NULL: zeros */
} ses_rnn_inputs;

typedef struct ses_rnn_options {
    ses_rnn_type type;
    bool reverse; /* from the last token to the first */
    /* limits of the magnitudes of cell states and projected outputs; 0: none. Gradients do not pass clipped
     * values. */
    double cell_clip, proj_clip;
    bool cells; /* the output includes the cell states (LSTM) */
} ses_rnn_options;

#define SES_OP(name, params) ses_tensor *ses_##name params;
#include "sesame/unstable/ops.def"
#undef SES_OP

SES_END_DECLS

#endif
