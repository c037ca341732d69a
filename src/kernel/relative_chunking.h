/* Work partitioning and index computations shared by every variant of the relative-score kernels. */
#ifndef SES_KERNEL_RELATIVE_CHUNKING_H
#define SES_KERNEL_RELATIVE_CHUNKING_H

#include "kernel.h"

/* One head of one sequence: the unit of work. */
typedef struct ses_rel_seq_head {
    int64_t seq, head;
    /* first query and key of the sequence in the batch, and their counts */
    int64_t q0, len_q, k0, len_k;
    int64_t scores, mask; /* offsets of its [len_q][len_k] block in y and in mask */
    bool reversed;        /* distances are negated */
} ses_rel_seq_head;

SES_HD static inline ses_rel_seq_head ses_rel_seq_head_at(const ses_relative *a, int64_t index)
{
    int64_t s = index / a->heads, h = index % a->heads, before = 0;
    int64_t q0 = a->cu_seqlens_q[s], len_q = a->cu_seqlens_q[s + 1] - q0, k0 = a->cu_seqlens_k[s],
            len_k = a->cu_seqlens_k[s + 1] - k0;
    for (int64_t i = 0; i < s; i++)
        before += (int64_t)(a->cu_seqlens_q[i + 1] - a->cu_seqlens_q[i]) *
                  (a->cu_seqlens_k[i + 1] - a->cu_seqlens_k[i]);
    ses_rel_seq_head part = {
        s, h, q0, len_q, k0, len_k, before * a->heads + h * len_q * len_k, before, s >= a->reversed_from
    };
    return part;
}

/* Position of query i among the keys of its sequence. */
SES_HD static inline int64_t ses_rel_q_pos(const ses_relative *a, const ses_rel_seq_head *p, int64_t i)
{
    return a->q_pos ? a->q_pos[p->q0 + i] : i + p->len_k - p->len_q;
}

/* Row of r for query i and key j. */
SES_HD static inline int64_t ses_rel_row(const ses_relative *a, const ses_rel_seq_head *p, int64_t i,
                                         int64_t j)
{
    int64_t pos = ses_rel_q_pos(a, p, i), distance = p->reversed ? pos - j : j - pos;
    if (a->dist_to_row) return a->dist_to_row[distance + a->max_seqlen_k - 1];
    return a->label[p->k0 + pos] != a->label[p->k0 + j];
}

/* Token of x (a query or a key) that contributes to the score of query i and key j. */
SES_HD static inline int64_t ses_rel_token(const ses_relative *a, const ses_rel_seq_head *p, int64_t i,
                                           int64_t j)
{
    return a->x_is_key ? p->k0 + j : p->q0 + i;
}

#endif
