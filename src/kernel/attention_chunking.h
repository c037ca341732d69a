/* What every variant of attention shares: how the work is cut, and where a part's numbers stand. */
#ifndef SES_KERNEL_ATTENTION_SPLIT_H
#define SES_KERNEL_ATTENTION_SPLIT_H

#include "kernel.h"

/* One head of one sequence. */
typedef struct ses_attn_part {
    int64_t seq, head;
    int64_t q0, len_q, k0, len_k; /* its tokens */
    int64_t probs;                /* where its [len_q][len_k] probabilities begin */
} ses_attn_part;

SES_HD static inline int64_t ses_attn_keys(const ses_attn *a, int64_t s)
{
    return a->len_k ? a->len_k[s] : a->cu_seqlens_k[s + 1] - a->cu_seqlens_k[s];
}

SES_HD static inline ses_attn_part ses_attn_part_of(const ses_attn *a, int64_t index)
{
    int64_t s = index / a->heads, h = index % a->heads, before = 0;
    int64_t q0 = a->cu_seqlens_q[s], len_q = a->cu_seqlens_q[s + 1] - q0, k0 = a->cu_seqlens_k[s],
            len_k = ses_attn_keys(a, s);
    for (int64_t i = 0; (a->probs || a->bias) && i < s; i++)
        before += (int64_t)(a->cu_seqlens_q[i + 1] - a->cu_seqlens_q[i]) * ses_attn_keys(a, i);
    ses_attn_part part = { s, h, q0, len_q, k0, len_k, before * a->heads + h * len_q * len_k };
    return part;
}

/* The keys begin .. end - 1 that query i of the part sees. */
typedef struct ses_attn_view {
    int64_t begin, end;
} ses_attn_view;

SES_HD static inline ses_attn_view ses_attn_sees(const ses_attn *a, ses_attn_part part, int64_t i)
{
    int64_t at = i + part.len_k - part.len_q; /* the query's own place among the keys */
    ses_attn_view v = { 0, part.len_k };
    if (a->causal && at + 1 < v.end) v.end = at + 1;
    if (a->window && at + a->window < v.end) v.end = at + a->window;
    if (a->window && at - a->window + 1 > v.begin) v.begin = at - a->window + 1;
    if (v.end < 0) v.end = 0;
    if (v.begin > v.end) v.begin = v.end;
    return v;
}

/* The queries begin .. end - 1 of the part that see key j. */
SES_HD static inline ses_attn_view ses_attn_seen_by(const ses_attn *a, ses_attn_part part, int64_t j)
{
    int64_t at = j - (part.len_k - part.len_q); /* the query that stands where the key does */
    ses_attn_view v = { 0, part.len_q };
    if (a->causal && at > v.begin) v.begin = at;
    if (a->window && at - a->window + 1 > v.begin) v.begin = at - a->window + 1;
    if (a->window && at + a->window < v.end) v.end = at + a->window;
    if (v.end < 0) v.end = 0;
    if (v.begin > v.end) v.begin = v.end;
    return v;
}

/* Row of dist for query i and key j. */
SES_HD static inline int64_t ses_attn_distance(const ses_attn *a, ses_attn_part part, int64_t i, int64_t j)
{
    return j - (i + part.len_k - part.len_q) + a->max_seqlen_k - 1;
}

SES_HD static inline int64_t ses_attn_head(int64_t stride, const ses_attn *a)
{
    return stride ? stride : a->dim;
}

/* Where query i's entry of lse and delta, [heads][queries], stands. */
SES_HD static inline int64_t ses_attn_stat(const ses_attn *a, ses_attn_part part, int64_t i)
{
    return part.head * a->cu_seqlens_q[a->seqs] + part.q0 + i;
}

/* Which draw decides on query i and key j. */
SES_HD static inline uint64_t ses_attn_draw(const ses_attn *a, ses_attn_part part, int64_t i, int64_t j)
{
    return (uint64_t)ses_attn_stat(a, part, i) * ses_dropout_row_stride((uint64_t)a->max_seqlen_k) +
           ses_dropout_swizzle((uint64_t)j);
}

/* What attention_i8 rounds: attention that is nothing but products and a softmax, of heads and numbers of keys
 * that its sums have room for. The rest is computed as attention does. */
static inline bool ses_attn_i8_supported(const ses_attn *a)
{
    return a->dim <= SES_ATTN_I8_MAX_DIM && !a->causal && !a->window && !a->rel_bias && !a->bias && !a->lse &&
           !a->probs && a->dropout <= 0;
}

static inline bool ses_attn_i8_fits(int64_t keys) { return keys > 0 && keys <= SES_ATTN_I8_MAX_KEYS; }

#endif
