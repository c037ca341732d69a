/* Parts shared by all attention kernels on the GPU. */
#ifndef SES_KERNEL_ATTENTION_CUDA_CUH
#define SES_KERNEL_ATTENTION_CUDA_CUH

#include "kernel/cuda/cuda_common.cuh"

/* Head and sequence of work item `index`; called by all threads of a block. */
__device__ static inline ses_attn_seq_head seq_head_at(const ses_attn &a, int64_t index)
{
    int64_t s = index / a.heads, h = index % a.heads, q0 = a.cu_seqlens_q[s], k0 = a.cu_seqlens_k[s];
    int64_t len_q = a.cu_seqlens_q[s + 1] - q0, len_k = ses_attn_key_count(&a, s), before = 0;
    if (a.probs || a.bias) before = pairs_before(s, a.cu_seqlens_q, a.cu_seqlens_k, a.len_k);
    ses_attn_seq_head part = { s, h, q0, len_q, k0, len_k, before * a.heads + h * len_q * len_k };
    return part;
}

/* Biases added to the score of query i and key j. */
template <class T>
__device__ static inline float score_bias(const ses_attn &a, const ses_attn_seq_head &p, int64_t i, int64_t j)
{
    float s = 0;
    if (a.rel_bias)
        s +=
            to_float(((const T *)(const void *)a.rel_bias)[ses_attn_rel_row(&a, p, i, j) * a.heads + p.head]);
    if (a.bias) s += to_float(((const T *)(const void *)a.bias)[p.probs + i * p.len_k + j]);
    return s;
}

template <class T>
__device__ static inline const T *head_rows(const ses_real *x, int64_t row, int64_t stride, int64_t token,
                                            const ses_attn &a, int64_t head)
{
    return (const T *)(const void *)x + token * row + head * ses_attn_head_stride(stride, &a);
}

/* Above this magnitude the rounding error of lse is visible in the probabilities: P = exp(S - lse -
 * lse_lo). */
static const float large_lse = 256;

__device__ static inline float lse_lo_of(const ses_attn &a, int64_t stat)
{
    return a.lse_lo ? a.lse_lo[stat] : 0;
}

template <class K> static void allow_shared(ses_cuda *g, K kernel, size_t bytes)
{
    if (bytes > 48 * 1024)
        ses_cuda_record(
            g, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
}

/* Keys that any of the queries first .. first + n - 1 attends to. */
__device__ static inline ses_attn_range block_key_range(const ses_attn &a, const ses_attn_seq_head &p,
                                                        int64_t first, int64_t n)
{
    ses_attn_range low = ses_attn_key_range(&a, p, first), high = ses_attn_key_range(&a, p, first + n - 1);
    ses_attn_range v = { low.begin, high.end };
    return v;
}

/* bf16 attention on tensor cores: any head size up to 128; head size 64 without biases; the same on Hopper.
 * They return false if they do not support the arguments or the GPU. */
bool attention_mma_fits(const ses_attn *a);
bool attention_mma(ses_cuda *g, const ses_attn *a);
bool attention_mma_bwd(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad);
bool attention_hd64(ses_cuda *g, const ses_attn *a);
bool attention_hd64_bwd(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad);
bool attention_wgmma(ses_cuda *g, const ses_attn *a);
bool attention_wgmma_bwd(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad);

/* The same with ses_attn.terms, inference. */
bool attention_terms(ses_cuda *g, const ses_attn *a);

#endif
