/* The ops, listed in ops.def. Each runs at once and returns a tensor that lives until its tape is reset;
 * NULL, and the reason on the tape, where it cannot or the tape has failed before. */
#ifndef SESAME_OPS_H
#define SESAME_OPS_H

#include "sesame/tape.h"

SES_BEGIN_DECLS

/* Attention over ragged sequences: what goes in. Sequence i attends within itself only. */
typedef struct ses_attention_inputs {
    ses_tensor *q, *k, *v; /* [tokens, heads * D]; or all in q, k and v NULL: see layout. Of such a
                                q the queries alone are read where k and v are given. v alone NULL: k has
                                keys | values */
    ses_tensor *cu_seqlens_q, *cu_seqlens_k; /* ints: offsets of queries and of keys */
    ses_tensor *len_k; /* ints, or NULL: keys of each sequence when cu_seqlens_k leaves room between */
    ses_tensor *
        rel_bias; /* [2 max_seqlen_k - 1, heads], or NULL: added by distance, key - query + max_seqlen_k - 1 */
    bool head_major;  /* k and v lie head after head: [heads, tokens, D] */
    bool allow_i8;    /* products may be of 8 bits, without a gradient: as of weights that are (CPU only) */
    ses_tensor *bias; /* sequence after sequence [heads, queries, keys], or NULL: added to the scores */
} ses_attention_inputs;

typedef enum {
    SES_QKV_SEPARATE,   /* three tensors */
    SES_QKV_FUSED,      /* q [tokens, 3 C]: queries | keys | values */
    SES_QKV_INTERLEAVED /* q [tokens, 3 C]: for each head its query, key and value */
} ses_qkv_layout;

typedef struct ses_attention_options {
    int64_t heads, max_seqlen_q, max_seqlen_k; /* max: the longest sequence's length */
    double scale;                              /* of the scores; 0: 1 / sqrt(head size) */
    double dropout;                            /* dropout of the probabilities, when the tape trains */
    bool causal;
    int64_t window; /* tokens at a distance below this see each other; 0: all do */
    ses_qkv_layout layout;
} ses_attention_options;

/* Scores by what lies between a query and a key: one of them times a row of a table. */
typedef enum { SES_BY_QUERY, SES_BY_KEY } ses_relative_side;
typedef enum {
    SES_ROWS_BY_DISTANCE, /* the row `at` gives */
    SES_ROWS_BY_LABEL     /* row 0 where the two tokens have one label, else row 1 */
} ses_relative_rows;

typedef struct ses_relative_term {
    ses_tensor *x; /* queries or keys [tokens, heads * D], or with a layout as attention's q */
    ses_tensor *r; /* [rows, heads * D] */
    ses_relative_side side;
    ses_relative_rows rows;
    ses_qkv_layout layout;
} ses_relative_term;

typedef struct ses_relative_inputs {
    ses_relative_term term[2];               /* the second with x NULL: none */
    ses_tensor *cu_seqlens_q, *cu_seqlens_k; /* ints: offsets of queries and of keys */
    ses_tensor *q_pos; /* ints [queries], or NULL: queries are the last of their sequence's keys */
    ses_tensor
        *dist_to_row; /* ints [2 max_seqlen_k - 1]: the row for the distance key - query + max_seqlen_k - 1 */
    ses_tensor *label; /* ints [keys], or NULL */
    ses_tensor *mask; /* sequence after sequence [queries, keys], or NULL: added in every head; no gradient */
} ses_relative_inputs;

typedef struct ses_relative_options {
    int64_t heads, max_seqlen_k; /* max_seqlen_k: keys of the longest sequence, or more */
    int64_t pairs;               /* queries times keys, summed over the sequences */
    double scale;                /* 0: 1 / sqrt(head size) */
    int64_t reversed_from;       /* sequences from this one on count distances the other way; 0: none does */
} ses_relative_options;

#define SES_OP(name, params) ses_tensor *ses_##name params;
#include "sesame/ops.def"
#undef SES_OP

SES_END_DECLS

#endif
