/* Sums over rows and over all elements in a fixed order: rows are split into strips depending on their number
 * only, one block sums each strip, and the sums of the strips are added in order. */
#ifndef SES_KERNEL_REDUCE_CUDA_CUH
#define SES_KERNEL_REDUCE_CUDA_CUH

#include "cuda_common.cuh"

static inline dst<float> accumulating(float *y)
{
    dst<float> to = { y, true, true };
    return to;
}

enum { STRIP_COLS = WARP, STRIP_LANES = BLOCK / WARP, MAX_STRIPS = 256 };

__device__ static inline float plus(float a, float b) { return a + b; }
__device__ static inline float2 plus(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }

/* part[strip][j] = sum of value(row, j) over the rows of the strip. A block has 32 columns and 8 rows at a
 * time. */
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

/* Adds the sums of the strips of column j and calls take(j, sum). */
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

/* Calls take(j, sum over all rows of value(row, j)) for each column. */
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
    check_launch(x->cuda);
    strip_totals<R><<<across, BLOCK, 0, stream>>>(part, strips, cols, take);
    check_launch(x->cuda);
    scratch_unlock(x->cuda);
}

/* Adds the sums of the 8 threads that have the same N columns, and stores the strip's sums. */
template <int N> __device__ static inline void store_strip(float *part, int64_t cols, const float (&sum)[N])
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

/* part[strip][j .. j + N - 1] = sums over the rows of the strip of the v that value(row, j, v) sets. N
 * columns per thread, a warp of adjacent vectors, 8 rows at a time. cols is a multiple of N. */
template <class T, class F>
__global__ void strip_vecs(float *part, int64_t rows, int64_t cols, int64_t strip, F value)
{
    enum { N = vec16<T>::N };
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
    store_strip<N>(part, cols, sum);
}

/* Rows in strips and memory for their sums; part NULL: nothing to do. */
struct strips {
    float *part;
    int64_t rows, count;
    dim3 grid; /* launch grid of strip_vecs and act_strips */
};

template <class T> static strips strips_lock(ses_exec *x, int64_t rows, int64_t cols)
{
    strips s = { NULL, ceil_div(rows, MAX_STRIPS) > 64 ? ceil_div(rows, MAX_STRIPS) : 64, 0, dim3(1) };
    if (rows <= 0 || cols <= 0) return s;
    while (ceil_div(rows, s.rows) > 1 && ceil_div(rows, s.rows) * cols > 4 << 20) s.rows *= 2;
    s.count = ceil_div(rows, s.rows);
    s.grid = dim3((unsigned)ceil_div(cols, WARP * vec16<T>::N), (unsigned)s.count);
    s.part = (float *)scratch_lock(x->cuda, (size_t)(s.count * cols) * sizeof *s.part);
    return s;
}

/* Queues the sums of the strips, added to y, and unlocks the scratch memory. */
template <class T> static void strips_unlock(ses_exec *x, dst<T> y, strips s, int64_t cols)
{
    check_launch(x->cuda);
    auto take = [=] __device__(int64_t j, float sum) { store(y, j, sum); };
    strip_totals<float><<<(unsigned)ceil_div(cols, STRIP_COLS), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(
        s.part, s.count, cols, take);
    check_launch(x->cuda);
    scratch_unlock(x->cuda);
}

/* y += sums over all rows, N columns at a time as in strip_vecs. */
template <class T, class F> static void sum_vecs(ses_exec *x, dst<T> y, int64_t rows, int64_t cols, F value)
{
    strips s = strips_lock<T>(x, rows, cols);
    if (!s.part) return;
    strip_vecs<T><<<s.grid, BLOCK, 0, ses_cuda_stream(x->cuda)>>>(s.part, rows, cols, s.rows, value);
    strips_unlock(x, y, s, cols);
}

/* Adds pairs of strip sums to y and z; either may be NULL. */
static __global__ void add_pair_sums(const float2 *part, int64_t strips, int64_t cols, float *y, float *z)
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
    add_pair_sums<<<(unsigned)ceil_div(cols, WARP), WARP * WARP, 0, ses_cuda_stream(x->cuda)>>>(part, strips,
                                                                                                cols, y, z);
    check_launch(x->cuda);
}

/* y[j] += sum over all rows of value(row, j). */
template <class T, class F>
static void sum_columns(ses_exec *x, dst<T> y, int64_t rows, int64_t cols, F value)
{
    sum_rows<float>(x, rows, cols, value, [=] __device__(int64_t j, float sum) { store(y, j, sum); });
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

/* Sum of value(i) for i < n, returned to every thread of a single block. */
template <class F> __device__ static inline double block_total(int64_t n, F value)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += value(i);
    return block_sum(sum);
}

enum { PARTIALS = 1024 };

/* Partial sums of squares of a, one per block. */
static __global__ void square_partials(double *part, const ses_real *a, int64_t n)
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

/* Sums of squares of consecutive parts of `size` elements, one per block. */
static __global__ void square_parts(double *part, const ses_real *a, int64_t n, int64_t size)
{
    double sum = 0;
    int64_t begin = (int64_t)blockIdx.x * size, end = begin + size < n ? begin + size : n;
#pragma unroll 4
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        float v = a[i];
        sum += (double)v * v;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

#endif
