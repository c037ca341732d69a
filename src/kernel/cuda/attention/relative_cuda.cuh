/* Parts shared by the kernels of relative scores. */
#ifndef SES_KERNEL_RELATIVE_CUDA_CUH
#define SES_KERNEL_RELATIVE_CUDA_CUH

#include "kernel/cuda/cuda_common.cuh"

/* One head of sequence s whose pairs follow `before` pairs of other sequences. */
__device__ static inline ses_rel_seq_head rel_part(const ses_relative &a, int64_t s, int64_t head,
                                                   int64_t before)
{
    ses_rel_seq_head p = { s,
                           head,
                           a.cu_seqlens_q[s],
                           a.cu_seqlens_q[s + 1] - a.cu_seqlens_q[s],
                           a.cu_seqlens_k[s],
                           a.cu_seqlens_k[s + 1] - a.cu_seqlens_k[s],
                           0,
                           before,
                           s >= a.reversed_from };
    p.scores = before * a.heads + head * p.len_q * p.len_k;
    return p;
}

/* Head `index % heads` of sequence `index / heads`; called by all threads of a block. */
__device__ static inline ses_rel_seq_head rel_part_at(const ses_relative &a, int64_t index)
{
    int64_t s = index / a.heads;
    return rel_part(a, s, index % a.heads, pairs_before(s, a.cu_seqlens_q, a.cu_seqlens_k, NULL));
}

template <class T>
__device__ static inline const T *rel_x(const ses_relative &a, const ses_rel_seq_head &p, int64_t t)
{
    return (const T *)(const void *)a.x + (t + (a.x_is_key ? p.k0 : p.q0)) * a.x_row + p.head * a.x_head;
}

/* Scores in bf16 by the fastest kernel. */
void relative_bf16(ses_exec *x, const ses_relative *a, ses_dst y);
/* bf16 on tensor cores: rows by distance; rows by segment label, read by queries. They return false if
 * they do not support the arguments. */
bool relative_mma(ses_cuda *g, const ses_relative *a, ses_dst y);
bool relative_mma_bwd(ses_cuda *g, const ses_relative *a, const ses_real *dy, ses_dst dx, ses_dst dr);
bool relative_labels(ses_cuda *g, const ses_relative *a, ses_dst y);
bool relative_labels_bwd(ses_cuda *g, const ses_relative *a, const ses_real *dy, ses_dst dx, ses_dst dr);

#endif
