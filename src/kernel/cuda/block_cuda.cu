/* CUDA kernels of block: sums over and factors of the blocks of a matrix. */
#include "cuda_common.cuh"

/* A warp per block: its threads take the elements in turn. The order of the sum depends on the sizes only. */
__global__ void block_dots(float *sum, const float *a, const float *b, ses_block_grid g, int64_t n)
{
    int64_t k = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / WARP, across = ses_block_grid_cols(&g);
    int lane = threadIdx.x % WARP;
    if (k >= n) return;
    int64_t r0 = k / across * g.block_rows, c0 = k % across * g.block_cols;
    int64_t rows = g.rows - r0 < g.block_rows ? g.rows - r0 : g.block_rows;
    int64_t cols = g.cols - c0 < g.block_cols ? g.cols - c0 : g.block_cols;
    double s = 0;
    for (int64_t i = lane; i < rows * cols; i += WARP) {
        int64_t at = (r0 + i / cols) * g.ld + c0 + i % cols;
        s += (double)a[at] * (double)b[at];
    }
    for (int d = WARP / 2; d > 0; d /= 2) s += __shfl_down_sync(0xffffffffu, s, d);
    if (lane == 0) sum[k] = (float)((double)sum[k] + s);
}

static void block_dot(ses_exec *x, ses_real *sum, const ses_real *a, const ses_real *b, ses_block_grid g)
{
    enum { SMALL = 16 };
    int64_t across = ses_block_grid_cols(&g), n = ses_block_grid_rows(&g) * across;
    if (n <= 0) return;
    if (g.block_rows * g.block_cols <= SMALL) { /* a thread per block */
        for_each(x, n, [=] __device__(int64_t k) {
            int64_t r0 = k / across * g.block_rows, c0 = k % across * g.block_cols;
            double s = 0;
            for (int64_t r = r0; r < r0 + g.block_rows && r < g.rows; r++)
                for (int64_t c = c0; c < c0 + g.block_cols && c < g.cols; c++)
                    s += (double)a[r * g.ld + c] * (double)b[r * g.ld + c];
            sum[k] = (float)((double)sum[k] + s);
        });
        return;
    }
    block_dots<<<(unsigned)ceil_div(n, WARPS), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(sum, a, b, g, n);
    check_launch(x->cuda);
}

static void block_scale(ses_exec *x, ses_real *y, const ses_real *a, const ses_real *factor, ses_block_grid g)
{
    int64_t across = ses_block_grid_cols(&g);
    for_each(x, g.rows * g.cols, [=] __device__(int64_t i) {
        int64_t r = i / g.cols, c = i % g.cols, at = r * g.ld + c;
        y[at] = a[at] * factor[r / g.block_rows * across + c / g.block_cols];
    });
}

void ses_cuda_block(ses_kernels *k) { k->block_dot = block_dot, k->block_scale = block_scale; }
