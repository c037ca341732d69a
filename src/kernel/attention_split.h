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

static inline ses_attn_part ses_attn_part_of(const ses_attn *a, int64_t index)
{
    int64_t s = index / a->heads, h = index % a->heads, before = 0;
    int64_t q0 = a->cu_q[s], len_q = a->cu_q[s + 1] - q0, k0 = a->cu_k[s], len_k = a->cu_k[s + 1] - k0;
    for (int64_t i = 0; a->probs && i < s; i++)
        before += (int64_t)(a->cu_q[i + 1] - a->cu_q[i]) * (a->cu_k[i + 1] - a->cu_k[i]);
    return (ses_attn_part){ s, h, q0, len_q, k0, len_k, before * a->heads + h * len_q * len_k };
}

/* How many keys query i of the part sees. */
static inline int64_t ses_attn_visible(const ses_attn *a, ses_attn_part part, int64_t i)
{
    if (!a->causal) return part.len_k;
    int64_t n = i + 1 + part.len_k - part.len_q;
    return n < 0 ? 0 : n > part.len_k ? part.len_k : n;
}

/* Where query i's entry of lse and delta, [heads][queries], stands. */
static inline int64_t ses_attn_stat(const ses_attn *a, ses_attn_part part, int64_t i)
{
    return part.head * a->cu_q[a->seqs] + part.q0 + i;
}

#endif
