/* Sums down the rows and over everything, in a fixed order: rows are cut into strips by their number alone,
 * each strip is summed by one block, and the strips' sums are added in their order. */
#ifndef SES_KERNEL_REDUCE_CUDA_CUH
#define SES_KERNEL_REDUCE_CUDA_CUH

#include "cuda_common.cuh"

static inline sink<float> added(float *y)
{
    sink<float> to = { y, true, true };
    return to;
}

enum { STRIP_COLS = WARP, STRIP_LANES = BLOCK / WARP, MAX_STRIPS = 256 };

__device__ static inline float plus(float a, float b) { return a + b; }
__device__ static inline float2 plus(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }

/* part[strip][j] = sum of value(row, j) over the rows of the strip. Block: 32 columns, 8 rows at a time. */
template <class R, class F>
__global__ void strip_sums(R *part, int64_t rows, int64_t cols, int64_t strip, F value)
{
    __shared__ R sums[STRIP_LANES][STRIP_COLS];
    int64_t j = (int64_t)blockIdx.x * STRIP_COLS + threadIdx.x % WARP;
    int lane = threadIdx.x / WARP;
    int64_t begin = blockIdx.y * strip, end = begin + strip < rows ? begin + strip : rows;
    R sum = {};
    if (j < cols)
        for (int64_t row = begin + lane; row < end; row += STRIP_LANES) sum = plus(sum, value(row, j));
    sums[lane][threadIdx.x % WARP] = sum;
    __syncthreads();
    if (lane != 0 || j >= cols) return;
    for (int i = 1; i < STRIP_LANES; i++) sum = plus(sum, sums[i][threadIdx.x]);
    part[blockIdx.y * cols + j] = sum;
}

/* The strips' sums of column j, to f(j, sum). */
template <class R, class F> __global__ void strip_totals(const R *part, int64_t strips, int64_t cols, F take)
{
    __shared__ R sums[STRIP_LANES][STRIP_COLS];
    int64_t j = (int64_t)blockIdx.x * STRIP_COLS + threadIdx.x % WARP;
    int lane = threadIdx.x / WARP;
    R sum = {};
    if (j < cols)
        for (int64_t i = lane; i < strips; i += STRIP_LANES) sum = plus(sum, part[i * cols + j]);
    sums[lane][threadIdx.x % WARP] = sum;
    __syncthreads();
    if (lane != 0 || j >= cols) return;
    for (int i = 1; i < STRIP_LANES; i++) sum = plus(sum, sums[i][threadIdx.x]);
    take(j, sum);
}

/* take(j, sum of value(row, j) over all rows) for each column. */
template <class R, class F, class G>
static void sum_rows(ses_exec *x, int64_t rows, int64_t cols, F value, G take)
{
    if (rows <= 0 || cols <= 0) return;
    int64_t strip = ceil_div(rows, MAX_STRIPS) > 64 ? ceil_div(rows, MAX_STRIPS) : 64;
    while (ceil_div(rows, strip) > 1 && ceil_div(rows, strip) * cols > 4 << 20) strip *= 2;
    int64_t strips = ceil_div(rows, strip);
    R *part = (R *)scratch_lock(x->cuda, (size_t)(strips * cols) * sizeof *part);
    if (!part) return;
    unsigned across = (unsigned)ceil_div(cols, STRIP_COLS);
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    strip_sums<R><<<dim3(across, (unsigned)strips), BLOCK, 0, stream>>>(part, rows, cols, strip, value);
    launched(x->cuda);
    strip_totals<R><<<across, BLOCK, 0, stream>>>(part, strips, cols, take);
    launched(x->cuda);
    scratch_unlock(x->cuda);
}

/* The block's threads have summed rows of their strip for N columns each: the 8 that have the same columns
 * together. */
template <int N> __device__ static inline void strip_end(float *part, int64_t cols, const float (&sum)[N])
{
    __shared__ float sums[STRIP_LANES][WARP * N];
    int lane = threadIdx.x % WARP, across = threadIdx.x / WARP;
#pragma unroll
    for (int k = 0; k < N; k++) sums[across][k * WARP + lane] = sum[k];
    __syncthreads();
    int64_t first = (int64_t)blockIdx.x * WARP * N;
    for (int i = threadIdx.x; i < WARP * N; i += BLOCK) {
        int at = i % N * WARP + i / N;
        float total = 0;
        for (int r = 0; r < STRIP_LANES; r++) total += sums[r][at];
        if (first + i < cols) part[blockIdx.y * cols + first + i] = total;
    }
}

/* part[strip][j .. j + N - 1] = the sums over the rows of the strip of what value(row, j, v) leaves in v: N
 * columns a thread, a warp of them side by side, 8 rows at a time. cols is a multiple of N. */
template <class T, class F>
__global__ void strip_packs(float *part, int64_t rows, int64_t cols, int64_t strip, F value)
{
    enum { N = pack<T>::N };
    int lane = threadIdx.x % WARP, across = threadIdx.x / WARP;
    int64_t j = ((int64_t)blockIdx.x * WARP + lane) * N;
    int64_t begin = blockIdx.y * strip, end = begin + strip < rows ? begin + strip : rows;
    float sum[N] = {};
    if (j < cols) {
#pragma unroll 4
        for (int64_t row = begin + across; row < end; row += STRIP_LANES) {
            float v[N];
            value(row, j, v);
#pragma unroll
            for (int k = 0; k < N; k++) sum[k] += v[k];
        }
    }
    strip_end<N>(part, cols, sum);
}

/* Rows cut into strips, and room for what each sums up to; part NULL: nothing to do. */
struct strips {
    float *part;
    int64_t each, number;
    dim3 grid; /* of strip_packs and its like */
};

template <class T> static strips strips_lock(ses_exec *x, int64_t rows, int64_t cols)
{
    strips s = { NULL, ceil_div(rows, MAX_STRIPS) > 64 ? ceil_div(rows, MAX_STRIPS) : 64, 0, dim3(1) };
    if (rows <= 0 || cols <= 0) return s;
    while (ceil_div(rows, s.each) > 1 && ceil_div(rows, s.each) * cols > 4 << 20) s.each *= 2;
    s.number = ceil_div(rows, s.each);
    s.grid = dim3((unsigned)ceil_div(cols, WARP * pack<T>::N), (unsigned)s.number);
    s.part = (float *)scratch_lock(x->cuda, (size_t)(s.number * cols) * sizeof *s.part);
    return s;
}

/* The strips are summed, or queued to be: to y, which adds, their sums. */
template <class T> static void strips_unlock(ses_exec *x, sink<T> y, strips s, int64_t cols)
{
    launched(x->cuda);
    auto take = [=] __device__(int64_t j, float sum) { put(y, j, sum); };
    strip_totals<float><<<(unsigned)ceil_div(cols, STRIP_COLS), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(
        s.part, s.number, cols, take);
    launched(x->cuda);
    scratch_unlock(x->cuda);
}

/* To y, which adds: the sums of value over all rows, N columns at a time as in strip_packs. */
template <class T, class F> static void sum_packs(ses_exec *x, sink<T> y, int64_t rows, int64_t cols, F value)
{
    strips s = strips_lock<T>(x, rows, cols);
    if (!s.part) return;
    strip_packs<T><<<s.grid, BLOCK, 0, ses_cuda_stream(x->cuda)>>>(s.part, rows, cols, s.each, value);
    strips_unlock(x, y, s, cols);
}

/* Sums of strips that stand at part, two of them, are added to y and z; either may be NULL. */
static __global__ void add_pairs(const float2 *part, int64_t strips, int64_t cols, float *y, float *z)
{
    __shared__ float2 sums[WARP][WARP + 1];
    int lane = threadIdx.x % WARP, across = threadIdx.x / WARP;
    int64_t j = (int64_t)blockIdx.x * WARP + lane;
    float2 sum = make_float2(0, 0);
    if (j < cols)
        for (int64_t i = across; i < strips; i += WARP) sum = plus(sum, part[i * cols + j]);
    sums[across][lane] = sum;
    __syncthreads();
    if (across || j >= cols) return;
    for (int i = 1; i < WARP; i++) sum = plus(sum, sums[i][lane]);
    if (y) y[j] += sum.x;
    if (z) z[j] += sum.y;
}

static inline void add_strips2(ses_exec *x, const float2 *part, int64_t strips, int64_t cols, float *y,
                               float *z)
{
    add_pairs<<<(unsigned)ceil_div(cols, WARP), WARP * WARP, 0, ses_cuda_stream(x->cuda)>>>(part, strips,
                                                                                            cols, y, z);
    launched(x->cuda);
}

/* To y[j], which adds, the sum over all rows of value(row, j). */
template <class T, class F>
static void sum_columns(ses_exec *x, sink<T> y, int64_t rows, int64_t cols, F value)
{
    sum_rows<float>(x, rows, cols, value, [=] __device__(int64_t j, float sum) { put(y, j, sum); });
}

/* The same for two sums at once; y or z may be NULL. */
template <class F>
static void sum_columns2(ses_exec *x, float *y, float *z, int64_t rows, int64_t cols, F value)
{
    sum_rows<float2>(x, rows, cols, value, [=] __device__(int64_t j, float2 sum) {
        if (y) y[j] += sum.x;
        if (z) z[j] += sum.y;
    });
}

/* The sum of value(i), i below n, to every thread of a single block. */
template <class F> __device__ static inline double block_total(int64_t n, F value)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += value(i);
    return block_sum(sum);
}

enum { PARTS = 1024 };

/* Sums of squares of a, one a block. */
static __global__ void square_parts(double *part, const ses_real *a, int64_t n)
{
    double sum = 0;
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        float v = a[i];
        sum += (double)v * v;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

#endif
