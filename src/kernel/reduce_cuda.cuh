/* Sums down the rows and over everything, in a fixed order: rows are cut into strips by their number alone,
 * each strip is summed by one block, and the strips' sums are added in their order. */
#ifndef SES_KERNEL_REDUCE_CUDA_CUH
#define SES_KERNEL_REDUCE_CUDA_CUH

#include "cuda.cuh"

enum { STRIP_COLS = WARP, STRIP_LANES = BLOCK / WARP, MAX_STRIPS = 256 };

/* part[strip][j] = sum of value(row, j) over the rows of the strip. Block: 32 columns, 8 rows at a time. */
template <class F> __global__ void strip_sums(float *part, int64_t rows, int64_t cols, int64_t strip, F value)
{
    __shared__ float sums[STRIP_LANES][STRIP_COLS + 1];
    int64_t j = (int64_t)blockIdx.x * STRIP_COLS + threadIdx.x % WARP;
    int lane = threadIdx.x / WARP;
    int64_t begin = blockIdx.y * strip, end = begin + strip < rows ? begin + strip : rows;
    float sum = 0;
    if (j < cols)
        for (int64_t row = begin + lane; row < end; row += STRIP_LANES) sum += value(row, j);
    sums[lane][threadIdx.x % WARP] = sum;
    __syncthreads();
    if (lane != 0 || j >= cols) return;
    for (int i = 1; i < STRIP_LANES; i++) sum += sums[i][threadIdx.x];
    part[blockIdx.y * cols + j] = sum;
}

/* y[j] += the sum over all rows of value(row, j). */
template <class F> static void sum_columns(ses_exec *x, ses_real *y, int64_t rows, int64_t cols, F value)
{
    if (rows <= 0 || cols <= 0) return;
    int64_t strip = ceil_div(rows, MAX_STRIPS) > 64 ? ceil_div(rows, MAX_STRIPS) : 64;
    while (ceil_div(rows, strip) > 1 && ceil_div(rows, strip) * cols > 8 << 20) strip *= 2;
    int64_t strips = ceil_div(rows, strip);
    float *part = (float *)scratch_lock(x->cuda, (size_t)(strips * cols) * sizeof *part);
    if (!part) return;
    dim3 grid((unsigned)ceil_div(cols, STRIP_COLS), (unsigned)strips);
    strip_sums<<<grid, BLOCK, 0, ses_cuda_stream(x->cuda)>>>(part, rows, cols, strip, value);
    launched(x->cuda);
    each(x, cols, [=] __device__(int64_t j) {
        float sum = 0;
        for (int64_t i = 0; i < strips; i++) sum += part[i * cols + j];
        y[j] += sum;
    });
    scratch_unlock(x->cuda);
}

/* The sum of value(i), i below n, to every thread of a single block. */
template <class F> __device__ static inline double block_total(int64_t n, F value)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += value(i);
    return block_sum(sum);
}

#endif
