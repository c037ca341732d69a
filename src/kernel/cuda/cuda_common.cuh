/* Shared by all *_cuda.cu: launching, loads and stores, sums over a warp or a block. Sums have a fixed order
 * and use no atomics, so repeated runs give the same bits.
 *
 * Kernels are templates over the element type T, float or bf16, with the signatures of kernel.h: a ses_real
 * pointer points to T, except for the arguments that kernels.def lists as always f32. Arithmetic is float. */
#ifndef SES_KERNEL_CUDA_COMMON_CUH
#define SES_KERNEL_CUDA_COMMON_CUH

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

typedef struct ses_blas ses_blas; /* see gemm_cuda.cuh */

struct ses_cuda {
    int index, sm_count, major; /* major: of the compute capability */
    bool autotune_eagerly;      /* see ses_device_options */
    cudaStream_t stream;
    pthread_mutex_t lock; /* protects scratch and cuBLASLt */
    int failed;           /* first failed launch or copy, a cudaError_t; atomic */
    const char *message;  /* message, if the error is not from the CUDA runtime; atomic */
    void *scratch;        /* see scratch_lock */
    size_t scratch_size;
    ses_blas *blas;
    uint64_t free_epoch; /* number of times memory was freed; atomic */
    /* Stream capture: launches of the thread `capturer` go to capture_stream. */
    pthread_mutex_t capture_lock;
    cudaStream_t capture_stream;
    pthread_t capturer; /* atomic; 0: no capture */
    bool aborted;       /* the capture cannot become a graph; owned by the capturer */
};

bool ses_blas_open(ses_cuda *g, ses_err *e);
void ses_blas_free(ses_blas *b);

/* Each family sets its kernels in the table, for float or for bf16. */
void ses_cuda_additive(ses_kernels *k, bool is_bf16);
void ses_cuda_attention(ses_kernels *k, bool is_bf16);
void ses_cuda_batch_norm(ses_kernels *k, bool is_bf16);
void ses_cuda_copy_loss(ses_kernels *k, bool is_bf16);
void ses_cuda_crf(ses_kernels *k, bool is_bf16);
void ses_cuda_sample(ses_kernels *k, bool is_bf16);
void ses_cuda_elementwise(ses_kernels *k, bool is_bf16);
void ses_cuda_fake_quantize(ses_kernels *k, bool is_bf16);
void ses_cuda_gather(ses_kernels *k, bool is_bf16);
void ses_cuda_gemm(ses_kernels *k, bool is_bf16);
void ses_cuda_loss(ses_kernels *k, bool is_bf16);
void ses_cuda_teacher_loss(ses_kernels *k, bool is_bf16);
void ses_cuda_muon(ses_kernels *k, bool is_bf16);
void ses_cuda_norm(ses_kernels *k, bool is_bf16);
void ses_cuda_optim(ses_kernels *k);
void ses_cuda_block(ses_kernels *k);
void ses_cuda_glove(ses_kernels *k);
void ses_cuda_word_rounds(ses_kernels *k);
void ses_cuda_reduce(ses_kernels *k, bool is_bf16);
void ses_cuda_relative(ses_kernels *k, bool is_bf16);
void ses_cuda_rms(ses_kernels *k, bool is_bf16);
void ses_cuda_rnn(ses_kernels *k, bool is_bf16);
void ses_cuda_rotary(ses_kernels *k, bool is_bf16);
void ses_cuda_softmax(ses_kernels *k, bool is_bf16);

enum { WARP = 32, BLOCK = 256, WARPS = BLOCK / WARP };

/* Scratch memory for the launches of one kernel. Holds the lock until scratch_unlock, so that no other thread
 * queues work in between. NULL: out of memory; the error is recorded and the kernel does nothing. */
void *scratch_lock(ses_cuda *g, size_t bytes);
void scratch_unlock(ses_cuda *g);
void record_failure(ses_cuda *g, const char *message);

static inline int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }

/* Blocks for n elements in a grid-stride loop. */
static inline unsigned blocks_for(const ses_cuda *g, int64_t n)
{
    int64_t max_blocks = (int64_t)g->sm_count * 16, needed = ceil_div(n, BLOCK);
    return (unsigned)(needed < max_blocks ? needed : max_blocks);
}

/* Threads per row of `cols` columns, for one block per row. */
static inline unsigned row_threads(int64_t cols)
{
    unsigned threads = WARP;
    while (threads < 1024 && threads < cols) threads *= 2;
    return threads;
}

static inline void check_launch(ses_cuda *g) { ses_cuda_record(g, cudaGetLastError()); }

/* f(i) for each i < n, in any order. */
template <class F> __global__ void for_each_kernel(F f, int64_t n)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) f(i);
}

template <class F> static void for_each(ses_exec *x, int64_t n, F f)
{
    if (n <= 0) return;
    for_each_kernel<<<blocks_for(x->cuda, n), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(f, n);
    check_launch(x->cuda);
}

/* f(row, j) for each column of each row; one block per row. */
template <class F> __global__ void for_each_row_kernel(F f, int64_t cols)
{
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) f((int64_t)blockIdx.x, j);
}

template <class F> static void for_each_row(ses_exec *x, int64_t rows, int64_t cols, F f)
{
    if (rows <= 0 || cols <= 0) return;
    unsigned threads = row_threads(cols) < BLOCK ? row_threads(cols) : (unsigned)BLOCK;
    for_each_row_kernel<<<(unsigned)rows, threads, 0, ses_cuda_stream(x->cuda)>>>(f, cols);
    check_launch(x->cuda);
}

typedef __nv_bfloat16 bf16;

__device__ static inline float to_float(float x) { return x; }
__device__ static inline float to_float(bf16 x) { return __bfloat162float(x); }
template <class T> __device__ static inline T from_float(float x);
template <> __device__ inline float from_float<float>(float x) { return x; }
template <> __device__ inline bf16 from_float<bf16>(float x) { return __float2bfloat16(x); }

/* Casts a ses_real pointer to the element type. */
template <class T> static inline T *elems(ses_real *p) { return (T *)(void *)p; }
template <class T> static inline const T *elems(const ses_real *p) { return (const T *)(const void *)p; }

/* ses_dst with elements T; with floats if is_f32. */
template <class T> struct dst {
    T *data;
    bool accumulate, is_f32;
};

template <class T> __host__ __device__ static inline dst<T> dst_of(ses_dst s)
{
    dst<T> to = { (T *)(void *)s.data, s.accumulate, s.is_f32 };
    return to;
}

template <class T> __device__ static inline void store(dst<T> to, int64_t i, float v)
{
    if (to.is_f32) {
        float *as_float = (float *)(void *)to.data;
        as_float[i] = to.accumulate ? as_float[i] + v : v;
    } else {
        to.data[i] = from_float<T>(to.accumulate ? to_float(to.data[i]) + v : v);
    }
}

/* 16 bytes of T, loaded and stored at once. */
template <class T> struct alignas(16) vec16 {
    enum { N = 16 / sizeof(T) };
    T at[N];
};

template <class T> __device__ static inline void store_vec(dst<T> to, int64_t i, const float *v)
{
    vec16<T> out;
    if (to.accumulate) out = *(const vec16<T> *)(to.data + i);
#pragma unroll
    for (int k = 0; k < vec16<T>::N; k++)
        out.at[k] = from_float<T>(to.accumulate ? to_float(out.at[k]) + v[k] : v[k]);
    *(vec16<T> *)(to.data + i) = out;
}

static inline bool aligned16(const void *p) { return (uintptr_t)p % 16 == 0; }

/* to[i] = f(i, a[i], b[i]); b may be NULL. 16 bytes at a time if the addresses are aligned. */
template <class T, class F>
__global__ void map_kernel(dst<T> to, const T *a, const T *b, int64_t n, bool aligned, F f)
{
    enum { N = vec16<T>::N };
    int64_t step = (int64_t)gridDim.x * blockDim.x * N;
    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N; i < n; i += step) {
        if (aligned && i + N <= n) {
            vec16<T> va = *(const vec16<T> *)(a + i), vb = va, out = va;
            if (b) vb = *(const vec16<T> *)(b + i);
            if (to.accumulate) out = *(const vec16<T> *)(to.data + i);
            for (int k = 0; k < N; k++) {
                float v = f(i + k, to_float(va.at[k]), to_float(vb.at[k]));
                out.at[k] = from_float<T>(to.accumulate ? to_float(out.at[k]) + v : v);
            }
            *(vec16<T> *)(to.data + i) = out;
        } else {
            for (int64_t k = i; k < n && k < i + N; k++)
                store(to, k, f(k, to_float(a[k]), b ? to_float(b[k]) : 0));
        }
    }
}

template <class T, class F>
static void map_elems(ses_exec *x, ses_dst to, const ses_real *a, const ses_real *b, int64_t n, F f)
{
    if (n <= 0 || !to.data) return;
    bool aligned = !to.is_f32 && aligned16(to.data) && aligned16(a) && aligned16(b);
    map_kernel<T><<<blocks_for(x->cuda, ceil_div(n, vec16<T>::N)), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(
        dst_of<T>(to), elems<T>(a), elems<T>(b), n, aligned, f);
    check_launch(x->cuda);
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

/* Sum over all threads of a block; returned to every thread. */
template <class R> __device__ static inline R block_sum(R x)
{
    __shared__ R part[WARP];
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    x = warp_sum(x);
    __syncthreads(); /* part may still be in use by the previous call */
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

/* Number of (query, key) pairs in the sequences before s; called by all threads of a block. */
__device__ static inline int64_t pairs_before(int64_t s, const int32_t *cu_seqlens_q,
                                              const int32_t *cu_seqlens_k, const int32_t *len_k)
{
    double sum = 0; /* exact for any size that fits into memory */
    for (int64_t i = threadIdx.x; i < s; i += blockDim.x)
        sum += (double)(cu_seqlens_q[i + 1] - cu_seqlens_q[i]) *
               (len_k ? len_k[i] : cu_seqlens_k[i + 1] - cu_seqlens_k[i]);
    return (int64_t)block_sum(sum);
}

/* Dropout factor of element i: 0 or scale. */
__device__ static inline float drop_factor(ses_rng_key key, uint64_t i, uint32_t threshold, float scale)
{
    return ses_dropout_draw(key, i) >= threshold ? scale : 0;
}

struct dropout_params {
    uint32_t threshold; /* 0: no dropout */
    float scale;
};

static inline dropout_params dropout_params_of(double p)
{
    dropout_params d = { ses_dropout_threshold(p), (float)(p < 1 ? 1 / (1 - p) : 0) };
    return d;
}

/* Dropout factors of elements i .. i + N - 1 from one Philox block; N is 4 or 8 and i a multiple of N. */
template <int N>
__device__ static inline void drop_factors(float keep[N], ses_rng_key key, int64_t i, dropout_params drop)
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
