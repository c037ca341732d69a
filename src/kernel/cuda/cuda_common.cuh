/* What every *_cuda.cu shares: launching, loading and storing numbers, sums over a warp or a block. Sums have
 * a fixed order: no atomics, so the same run gives the same bits.
 *
 * Kernels are written once for an element T, float or bf16, and have the signatures of kernel.h: a pointer to
 * reals points to T, but for what kernels.def names as wide, which is float. Arithmetic is float. */
#ifndef SES_KERNEL_CUDA_CUH
#define SES_KERNEL_CUDA_CUH

#include <cuda_bf16.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>

extern "C" {
#include "kernel/attention_chunking.h"
#include "kernel/cuda_context.h"
#include "kernel/kernel.h"
#include "kernel/relative_chunking.h"
}

typedef struct ses_blas ses_blas; /* gemm_cuda.cu */

struct ses_cuda {
    int index, cores, major; /* of the compute capability */
    bool steady;             /* see ses_device_options */
    cudaStream_t stream;
    pthread_mutex_t lock; /* around scratch and the matrix library */
    int failed;           /* the first failure of a launch or a copy; atomic, as is */
    const char *why;      /* in words, where it was none of the runtime's */
    void *scratch;        /* see scratch_lock */
    size_t scratch_size;
    ses_blas *blas;
    uint64_t moves; /* how often memory was given back; atomic */
    /* A graph in the making: what the thread `maker` queues goes to a stream of its own. */
    pthread_mutex_t making;
    cudaStream_t side;
    pthread_t maker; /* atomic, a number here; 0: nobody */
    bool spoiled;    /* the maker's */
};

bool ses_blas_open(ses_cuda *g, ses_err *e);
void ses_blas_free(ses_blas *b);

/* Each family fills in its slots of the table, for float or for bf16. */
void ses_cuda_attention(ses_kernels *k, bool narrow);
void ses_cuda_draw(ses_kernels *k, bool narrow);
void ses_cuda_elementwise(ses_kernels *k, bool narrow);
void ses_cuda_gather(ses_kernels *k, bool narrow);
void ses_cuda_gemm(ses_kernels *k, bool narrow);
void ses_cuda_loss(ses_kernels *k, bool narrow);
void ses_cuda_match(ses_kernels *k, bool narrow);
void ses_cuda_norm(ses_kernels *k, bool narrow);
void ses_cuda_optim(ses_kernels *k);
void ses_cuda_reduce(ses_kernels *k, bool narrow);
void ses_cuda_relative(ses_kernels *k, bool narrow);
void ses_cuda_rms(ses_kernels *k, bool narrow);
void ses_cuda_rotary(ses_kernels *k, bool narrow);
void ses_cuda_softmax(ses_kernels *k, bool narrow);

enum { WARP = 32, BLOCK = 256, WARPS = BLOCK / WARP };

/* Scratch for the launches of one kernel, which nobody else may queue work between: the lock is held until
 * scratch_unlock. NULL when there is no memory: the failure is kept, the kernel does nothing. */
void *scratch_lock(ses_cuda *g, size_t bytes);
void scratch_unlock(ses_cuda *g);
void fail(ses_cuda *g, const char *why);

static inline int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }

/* Blocks for n elements in a loop that strides over the grid. */
static inline unsigned blocks_for(const ses_cuda *g, int64_t n)
{
    int64_t most = (int64_t)g->cores * 16, want = ceil_div(n, BLOCK);
    return (unsigned)(want < most ? want : most);
}

/* Threads for rows of so many columns, one block a row. */
static inline unsigned row_threads(int64_t cols)
{
    unsigned threads = WARP;
    while (threads < 1024 && threads < cols) threads *= 2;
    return threads;
}

static inline void launched(ses_cuda *g) { ses_cuda_note(g, cudaGetLastError()); }

/* f(i) for each i below n, in any order. */
template <class F> __global__ void each_index(F f, int64_t n)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) f(i);
}

template <class F> static void each(ses_exec *x, int64_t n, F f)
{
    if (n <= 0) return;
    each_index<<<blocks_for(x->cuda, n), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(f, n);
    launched(x->cuda);
}

/* f(row, j) for each column of each row, a block a row. */
template <class F> __global__ void each_cell(F f, int64_t cols)
{
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) f((int64_t)blockIdx.x, j);
}

template <class F> static void each_row(ses_exec *x, int64_t rows, int64_t cols, F f)
{
    if (rows <= 0 || cols <= 0) return;
    unsigned threads = row_threads(cols) < BLOCK ? row_threads(cols) : (unsigned)BLOCK;
    each_cell<<<(unsigned)rows, threads, 0, ses_cuda_stream(x->cuda)>>>(f, cols);
    launched(x->cuda);
}

typedef __nv_bfloat16 bf16;

__device__ static inline float num(float x) { return x; }
__device__ static inline float num(bf16 x) { return __bfloat162float(x); }
template <class T> __device__ static inline T cell(float x);
template <> __device__ inline float cell<float>(float x) { return x; }
template <> __device__ inline bf16 cell<bf16>(float x) { return __float2bfloat16(x); }

/* A pointer of kernel.h's as what it points to. */
template <class T> static inline T *cells(ses_real *p) { return (T *)(void *)p; }
template <class T> static inline const T *cells(const ses_real *p) { return (const T *)(const void *)p; }

/* A ses_dst of elements T, or of floats where it is wide. */
template <class T> struct sink {
    T *data;
    bool accumulate, is_f32;
};

template <class T> __host__ __device__ static inline sink<T> sink_of(ses_dst s)
{
    sink<T> to = { (T *)(void *)s.data, s.accumulate, s.is_f32 };
    return to;
}

template <class T> __device__ static inline void put(sink<T> to, int64_t i, float v)
{
    if (to.is_f32) {
        float *wide = (float *)(void *)to.data;
        wide[i] = to.accumulate ? wide[i] + v : v;
    } else {
        to.data[i] = cell<T>(to.accumulate ? num(to.data[i]) + v : v);
    }
}

/* 16 bytes of T, moved at once. */
template <class T> struct alignas(16) pack {
    enum { N = 16 / sizeof(T) };
    T at[N];
};

template <class T> __device__ static inline void put_pack(sink<T> to, int64_t i, const float *v)
{
    pack<T> out;
    if (to.accumulate) out = *(const pack<T> *)(to.data + i);
#pragma unroll
    for (int k = 0; k < pack<T>::N; k++) out.at[k] = cell<T>(to.accumulate ? num(out.at[k]) + v[k] : v[k]);
    *(pack<T> *)(to.data + i) = out;
}

static inline bool whole_packs(const void *p) { return (uintptr_t)p % 16 == 0; }

/* to[i] = f(i, a[i], b[i]); b may be NULL. By packs where the addresses allow it. */
template <class T, class F>
__global__ void map_cells(sink<T> to, const T *a, const T *b, int64_t n, bool packed, F f)
{
    enum { N = pack<T>::N };
    int64_t step = (int64_t)gridDim.x * blockDim.x * N;
    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N; i < n; i += step) {
        if (packed && i + N <= n) {
            pack<T> va = *(const pack<T> *)(a + i), vb = va, out = va;
            if (b) vb = *(const pack<T> *)(b + i);
            if (to.accumulate) out = *(const pack<T> *)(to.data + i);
            for (int k = 0; k < N; k++) {
                float v = f(i + k, num(va.at[k]), num(vb.at[k]));
                out.at[k] = cell<T>(to.accumulate ? num(out.at[k]) + v : v);
            }
            *(pack<T> *)(to.data + i) = out;
        } else {
            for (int64_t k = i; k < n && k < i + N; k++) put(to, k, f(k, num(a[k]), b ? num(b[k]) : 0));
        }
    }
}

template <class T, class F>
static void map(ses_exec *x, ses_dst to, const ses_real *a, const ses_real *b, int64_t n, F f)
{
    if (n <= 0 || !to.data) return;
    bool packed = !to.is_f32 && whole_packs(to.data) && whole_packs(a) && whole_packs(b);
    map_cells<T><<<blocks_for(x->cuda, ceil_div(n, pack<T>::N)), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(
        sink_of<T>(to), cells<T>(a), cells<T>(b), n, packed, f);
    launched(x->cuda);
}

__device__ static inline float warp_sum(float x)
{
    for (int d = WARP / 2; d; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

__device__ static inline double warp_sum(double x)
{
    for (int d = WARP / 2; d; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

__device__ static inline float warp_max(float x)
{
    for (int d = WARP / 2; d; d /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, d));
    return x;
}

/* Over all threads of a block; every thread gets the result. */
template <class R> __device__ static inline R block_sum(R x)
{
    __shared__ R part[WARP];
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    x = warp_sum(x);
    __syncthreads(); /* part may still be read from the last time */
    if (lane == 0) part[warp] = x;
    __syncthreads();
    R sum = lane < (blockDim.x + WARP - 1) / WARP ? part[lane] : R(0);
    return warp_sum(sum);
}

__device__ static inline float block_max(float x)
{
    __shared__ float part[WARP];
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    x = warp_max(x);
    __syncthreads();
    if (lane == 0) part[warp] = x;
    __syncthreads();
    return warp_max(lane < (blockDim.x + WARP - 1) / WARP ? part[lane] : -INFINITY);
}

/* Pairs of a query and a key in the sequences before s; for all threads of a block. */
__device__ static inline int64_t pairs_before(int64_t s, const int32_t *cu_seqlens_q,
                                              const int32_t *cu_seqlens_k, const int32_t *len_k)
{
    double sum = 0; /* exact far beyond what memory holds */
    for (int64_t i = threadIdx.x; i < s; i += blockDim.x)
        sum += (double)(cu_seqlens_q[i + 1] - cu_seqlens_q[i]) *
               (len_k ? len_k[i] : cu_seqlens_k[i + 1] - cu_seqlens_k[i]);
    return (int64_t)block_sum(sum);
}

/* What dropout leaves of element i: 0, or the factor of what is kept. */
__device__ static inline float kept(ses_rng_key key, uint64_t i, uint32_t threshold, float scale)
{
    return ses_dropout_draw(key, i) >= threshold ? scale : 0;
}

struct dropping {
    uint32_t threshold; /* 0: nothing is dropped */
    float scale;
};

static inline dropping dropping_of(double p)
{
    dropping d = { ses_dropout_threshold(p), (float)(p < 1 ? 1 / (1 - p) : 0) };
    return d;
}

/* What dropout leaves of elements i .. i + N - 1, N being 4 or 8 and i a multiple of it: parts of one
 * Philox block. */
template <int N>
__device__ static inline void drop_pack(float keep[N], ses_rng_key key, int64_t i, dropping drop)
{
    uint32_t word[4];
    ses_philox_rounds(word, key, (uint64_t)i >> 3, SES_DROPOUT_ROUNDS);
    if (N == 4 && (i & 4)) word[0] = word[2], word[1] = word[3];
#pragma unroll
    for (int k = 0; k < N; k++) {
        uint32_t draw = k % 2 ? word[k / 2] >> 16 : word[k / 2] & 0xffff;
        keep[k] = draw >= drop.threshold ? drop.scale : 0;
    }
}

#endif
