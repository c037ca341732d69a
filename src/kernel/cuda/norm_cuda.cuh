/* Layer norm on the GPU: rows in the registers of a warp, shared by both passes. */
#ifndef SES_KERNEL_NORM_CUDA_CUH
#define SES_KERNEL_NORM_CUDA_CUH

#include "reduce_cuda.cuh"

void ses_cuda_norm_bwd(ses_kernels *k, bool is_bf16);

static inline ses_rng_key key_of(const ses_dropout_spec *d)
{
    ses_rng_key none = { 0, 0, 0 };
    return d ? d->key : none;
}

/* One row per warp, K vectors of 16 bytes per lane, of which the first FULL always exist. */
template <int K> struct row_vecs {
    enum { FULL = K <= 4 ? K - 1 : K - 2, BLOCKS = K <= 4 ? 4 : 2 /* per multiprocessor, forward */ };
};

template <class T> __device__ static inline float2 load2(const vec16<T> &p, int i)
{
    return make_float2(p.at[2 * i], p.at[2 * i + 1]);
}
template <> __device__ inline float2 load2(const vec16<bf16> &p, int i)
{
    return __bfloat1622float2(((const __nv_bfloat162 *)p.at)[i]);
}

template <class T> __device__ static inline void store2(vec16<T> &p, int i, float2 v)
{
    p.at[2 * i] = v.x, p.at[2 * i + 1] = v.y;
}
template <> __device__ inline void store2(vec16<bf16> &p, int i, float2 v)
{
    ((__nv_bfloat162 *)p.at)[i] = __float22bfloat162_rn(v);
}

#endif
