/* What every variant of the relative scores shares: how the work is cut, which row two tokens have. */
#ifndef SES_KERNEL_RELATIVE_SPLIT_H
#define SES_KERNEL_RELATIVE_SPLIT_H

#include "kernel.h"

/* One head of one sequence. */
typedef struct ses_rel_part {
    int64_t seq, head;
    int64_t q0, len_q, k0, len_k; /* its tokens */
    int64_t scores, mask;         /* where its [len_q][len_k] numbers begin */
    bool turned;                  /* it counts distances the other way */
} ses_rel_part;

SES_HD static inline ses_rel_part ses_rel_part_of(const ses_relative *a, int64_t index)
{
    int64_t s = index / a->heads, h = index % a->heads, before = 0;
    int64_t q0 = a->cu_seqlens_q[s], len_q = a->cu_seqlens_q[s + 1] - q0, k0 = a->cu_seqlens_k[s],
            len_k = a->cu_seqlens_k[s + 1] - k0;
    for (int64_t i = 0; i < s; i++)
        before += (int64_t)(a->cu_seqlens_q[i + 1] - a->cu_seqlens_q[i]) *
                  (a->cu_seqlens_k[i + 1] - a->cu_seqlens_k[i]);
    ses_rel_part part = {
        s, h, q0, len_q, k0, len_k, before * a->heads + h * len_q * len_k, before, s >= a->reversed_from
    };
    return part;
}

/* Query i's place among the part's keys. */
SES_HD static inline int64_t ses_rel_place(const ses_relative *a, const ses_rel_part *p, int64_t i)
{
    return a->q_pos ? a->q_pos[p->q0 + i] : i + p->len_k - p->len_q;
}

SES_HD static inline int64_t ses_rel_row(const ses_relative *a, const ses_rel_part *p, int64_t i, int64_t j)
{
    int64_t place = ses_rel_place(a, p, i), distance = p->turned ? place - j : j - place;
    if (a->dist_to_row) return a->dist_to_row[distance + a->max_seqlen_k - 1];
    return a->label[p->k0 + place] != a->label[p->k0 + j];
}

/* The token of x that speaks for query i and key j. */
SES_HD static inline int64_t ses_rel_token(const ses_relative *a, const ses_rel_part *p, int64_t i, int64_t j)
{
    return a->x_is_key ? p->k0 + j : p->q0 + i;
}

#endif
