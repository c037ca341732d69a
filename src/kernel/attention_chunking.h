/* Work partitioning and index computations shared by every variant of attention, CUDA included. */
#ifndef SES_KERNEL_ATTENTION_CHUNKING_H
#define SES_KERNEL_ATTENTION_CHUNKING_H

#include "kernel.h"

/* One head of one sequence: the unit of work. */
typedef struct ses_attn_seq_head {
    int64_t seq, head;
    /* first query and key of the sequence in the batch, and their counts */
    int64_t q0, len_q, k0, len_k;
    int64_t probs; /* offset of its [len_q][len_k] block in probs and bias */
} ses_attn_seq_head;

SES_HD static inline int64_t ses_attn_key_count(const ses_attn *a, int64_t s)
{
    return a->len_k ? a->len_k[s] : a->cu_seqlens_k[s + 1] - a->cu_seqlens_k[s];
}

SES_HD static inline ses_attn_seq_head ses_attn_seq_head_at(const ses_attn *a, int64_t index)
{
    int64_t s = index / a->heads, h = index % a->heads, before = 0;
    int64_t q0 = a->cu_seqlens_q[s], len_q = a->cu_seqlens_q[s + 1] - q0, k0 = a->cu_seqlens_k[s],
            len_k = ses_attn_key_count(a, s);
    for (int64_t i = 0; (a->probs || a->bias) && i < s; i++)
        before += (int64_t)(a->cu_seqlens_q[i + 1] - a->cu_seqlens_q[i]) * ses_attn_key_count(a, i);
    ses_attn_seq_head part = { s, h, q0, len_q, k0, len_k, before * a->heads + h * len_q * len_k };
    return part;
}

/* Half-open range of keys or queries: begin .. end - 1. */
typedef struct ses_attn_range {
    int64_t begin, end;
} ses_attn_range;

/* Do some queries not attend to all keys? */
static inline bool ses_attn_masked(const ses_attn *a)
{
    return a->causal || a->anticausal || a->window || a->equal_keys;
}

/* The window of a sequence; 0: none. */
SES_HD static inline int64_t ses_attn_window(const ses_attn *a, ses_attn_seq_head part)
{
    if (!a->equal_keys) return a->window;
    return part.len_k >= part.len_q ? part.len_k - part.len_q + 1 : 0;
}

/* Keys that query i attends to. */
SES_HD static inline ses_attn_range ses_attn_key_range(const ses_attn *a, ses_attn_seq_head part, int64_t i)
{
    int64_t pos = i + part.len_k - part.len_q; /* position of the query among the keys */
    int64_t window = ses_attn_window(a, part);
    ses_attn_range v = { 0, part.len_k };
    if (a->causal && pos + 1 < v.end) v.end = pos + 1;
    if (a->anticausal && pos > v.begin) v.begin = pos;
    if (window && pos + window < v.end) v.end = pos + window;
    if (window && pos - window + 1 > v.begin) v.begin = pos - window + 1;
    if (v.end < 0) v.end = 0;
    if (v.begin > v.end) v.begin = v.end;
    return v;
}

/* Queries that attend to key j. */
SES_HD static inline ses_attn_range ses_attn_query_range(const ses_attn *a, ses_attn_seq_head part, int64_t j)
{
    int64_t pos = j - (part.len_k - part.len_q); /* query at the position of the key */
    int64_t window = ses_attn_window(a, part);
    ses_attn_range v = { 0, part.len_q };
    if (a->causal && pos > v.begin) v.begin = pos;
    if (a->anticausal && pos + 1 < v.end) v.end = pos + 1;
    if (window && pos - window + 1 > v.begin) v.begin = pos - window + 1;
    if (window && pos + window < v.end) v.end = pos + window;
    if (v.end < 0) v.end = 0;
    if (v.begin > v.end) v.begin = v.end;
    return v;
}

/* Row of rel_bias for query i and key j. */
SES_HD static inline int64_t ses_attn_rel_row(const ses_attn *a, ses_attn_seq_head part, int64_t i, int64_t j)
{
    return j - (i + part.len_k - part.len_q) + a->max_seqlen_k - 1;
}

SES_HD static inline int64_t ses_attn_head_stride(int64_t stride, const ses_attn *a)
{
    return stride ? stride : a->dim;
}

/* Index of query i in lse, lse_lo and delta, which are [heads][queries]. */
SES_HD static inline int64_t ses_attn_stat_index(const ses_attn *a, ses_attn_seq_head part, int64_t i)
{
    return part.head * a->cu_seqlens_q[a->seqs] + part.q0 + i;
}

/* Index of the random number that decides about dropping query i and key j. */
SES_HD static inline uint64_t ses_attn_draw_index(const ses_attn *a, ses_attn_seq_head part, int64_t i,
                                                  int64_t j)
{
    return (uint64_t)ses_attn_stat_index(a, part, i) * ses_dropout_row_stride((uint64_t)a->max_seqlen_k) +
           ses_dropout_swizzle((uint64_t)j);
}

/* True if attention_i8 computes this call with int8 operands: no mask, bias, dropout, lse or probs, and a
 * head size for which the int32 sums cannot overflow. Other calls run as f32 attention. */
static inline bool ses_attn_i8_supported(const ses_attn *a)
{
    return a->dim <= SES_ATTN_I8_MAX_DIM && !ses_attn_masked(a) && !a->rel_bias && !a->bias && !a->lse &&
           !a->probs && a->dropout <= 0;
}

static inline bool ses_attn_i8_fits(int64_t keys) { return keys > 0 && keys <= SES_ATTN_I8_MAX_KEYS; }

#endif
