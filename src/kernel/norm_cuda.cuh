/* What norms share, forward and back: rows of packs and of fours in the registers of a warp. */
#ifndef SES_KERNEL_NORM_CUDA_CUH
#define SES_KERNEL_NORM_CUDA_CUH

#include "reduce_cuda.cuh"

#include <type_traits>

void ses_cuda_norm_bwd(ses_kernels *k, bool narrow);

static inline ses_key key_of(const ses_drop *d)
{
    ses_key none = { 0, 0, 0 };
    return d ? d->key : none;
}

/* Rows of up to MOST_QUADS times 128 columns: a warp takes PAIR of them at a time, K fours of neighbors a
 * lane, and waits for nobody. */
enum { MOST_QUADS = 4, PAIR = 2, QUAD_COLS = 4 * WARP };

template <class T> struct alignas(4 * sizeof(T)) quad {
    T at[4];
};

template <class T> __device__ static inline void put_quad(sink<T> to, int64_t i, const float *v)
{
    quad<T> out;
    if (to.add) out = *(const quad<T> *)(to.data + i);
#pragma unroll
    for (int k = 0; k < 4; k++) out.at[k] = cell<T>(to.add ? num(out.at[k]) + v[k] : v[k]);
    *(quad<T> *)(to.data + i) = out;
}

/* Blocks for so many rows, a few a multiprocessor; 0: not of these columns. */
static inline unsigned warps_for(const ses_cuda *g, int64_t rows, int64_t cols, bool aligned, int blocks)
{
    int64_t all = ceil_div(rows, WARPS * PAIR), most = (int64_t)g->cores * blocks;
    if (!aligned || cols % QUAD_COLS || cols > MOST_QUADS * QUAD_COLS) return 0;
    return (unsigned)(all < most ? all : most);
}

/* f(K) for the K of so many columns. */
template <class F> static inline void by_quads(int64_t cols, F f)
{
    switch (cols / QUAD_COLS) {
    case 1: return f(std::integral_constant<int, 1>());
    case 2: return f(std::integral_constant<int, 2>());
    case 3: return f(std::integral_constant<int, 3>());
    default: return f(std::integral_constant<int, 4>());
    }
}

/* Longer rows of whole packs: a warp has one, K packs a lane, of which the first FULL are there in any case.
 * Forward a block has as many rows as warps: others' loads pass beside its sums. */
template <int K> struct row_packs {
    enum { FULL = K == 3 ? 0 : K == 4 ? 3 : K - 2, BLOCKS = K <= 4 ? 4 : 2 };
};

template <class T> __device__ static inline float2 two_of(const pack<T> &p, int i)
{
    return make_float2(p.at[2 * i], p.at[2 * i + 1]);
}
template <> __device__ inline float2 two_of(const pack<bf16> &p, int i)
{
    return __bfloat1622float2(((const __nv_bfloat162 *)p.at)[i]);
}

template <class T> __device__ static inline void put_two(pack<T> &p, int i, float2 v)
{
    p.at[2 * i] = v.x, p.at[2 * i + 1] = v.y;
}
template <> __device__ inline void put_two(pack<bf16> &p, int i, float2 v)
{
    ((__nv_bfloat162 *)p.at)[i] = __float22bfloat162_rn(v);
}

#endif
