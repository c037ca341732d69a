/* What all ways of attention on a GPU share: attention*_cuda.cu. */
#ifndef SES_KERNEL_ATTENTION_CUDA_CUH
#define SES_KERNEL_ATTENTION_CUDA_CUH

#include "cuda_common.cuh"

/* A head of a sequence; for all threads of a block. */
__device__ static inline ses_attn_part part_of(const ses_attn &a, int64_t index)
{
    int64_t s = index / a.heads, h = index % a.heads, q0 = a.cu_seqlens_q[s], k0 = a.cu_seqlens_k[s];
    int64_t len_q = a.cu_seqlens_q[s + 1] - q0, len_k = ses_attn_keys(&a, s), before = 0;
    if (a.probs || a.bias) before = pairs_before(s, a.cu_seqlens_q, a.cu_seqlens_k, a.len_k);
    ses_attn_part part = { s, h, q0, len_q, k0, len_k, before * a.heads + h * len_q * len_k };
    return part;
}

/* What is added to the score of query i and key j. */
template <class T>
__device__ static inline float extra(const ses_attn &a, const ses_attn_part &p, int64_t i, int64_t j)
{
    float s = 0;
    if (a.rel_bias)
        s += num(((const T *)(const void *)a.rel_bias)[ses_attn_distance(&a, p, i, j) * a.heads + p.head]);
    if (a.bias) s += num(((const T *)(const void *)a.bias)[p.probs + i * p.len_k + j]);
    return s;
}

template <class T>
__device__ static inline const T *head_of(const ses_real *x, int64_t row, int64_t stride, int64_t token,
                                          const ses_attn &a, int64_t head)
{
    return (const T *)(const void *)x + token * row + head * ses_attn_head(stride, &a);
}

/* Where lse is larger its last digit is one of probabilities, too: P = exp(S - lse - rest). */
static const float large = 256;

__device__ static inline float rest_of(const ses_attn &a, int64_t stat)
{
    return a.lse_lo ? a.lse_lo[stat] : 0;
}

template <class K> static void allow_shared(ses_cuda *g, K kernel, size_t bytes)
{
    if (bytes > 48 * 1024)
        ses_cuda_note(g,
                      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
}

/* What all rows of a block need: the keys some of them see. */
__device__ static inline ses_attn_view seen_by_block(const ses_attn &a, const ses_attn_part &p, int64_t first,
                                                     int64_t n)
{
    ses_attn_view low = ses_attn_sees(&a, p, first), high = ses_attn_sees(&a, p, first + n - 1);
    ses_attn_view v = { low.begin, high.end };
    return v;
}

/* Attention of bf16 on tensor cores: in general, in heads of 64 without biases, and these on Hopper; false:
 * not of these arguments, or on this card. Backwards they leave ddist to others. */
bool attention_mma(ses_cuda *g, const ses_attn *a);
bool attention_mma_bwd(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad);
bool attention_fast(ses_cuda *g, const ses_attn *a);
bool attention_fast_bwd(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad);
bool attention_wgmma(ses_cuda *g, const ses_attn *a);
bool attention_wgmma_bwd(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad);

#endif
