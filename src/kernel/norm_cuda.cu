/* A warp a row; the sums over rows for the gain's and the bias's gradients are reduce_cuda.cuh's. */
#include "reduce_cuda.cuh"

struct norm_args {
    ses_real *y, *s, *stat;
    const ses_real *a, *res, *gain, *bias;
    int64_t rows, cols;
    float eps;
};

__device__ static inline float sum_at(const norm_args &f, int64_t i)
{
    return f.res ? f.a[i] + f.res[i] : f.a[i];
}

__global__ void norm_rows(norm_args f)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    int lane = threadIdx.x % WARP;
    if (row >= f.rows) return;
    int64_t at = row * f.cols;
    float sum = 0, squares = 0;
    for (int64_t j = lane; j < f.cols; j += WARP) sum += sum_at(f, at + j);
    float mean = warp_sum(sum) / (float)f.cols;
    for (int64_t j = lane; j < f.cols; j += WARP) {
        float d = sum_at(f, at + j) - mean;
        squares += d * d;
    }
    float rstd = 1 / sqrtf(warp_sum(squares) / (float)f.cols + f.eps);
    for (int64_t j = lane; j < f.cols; j += WARP) {
        float s = sum_at(f, at + j);
        if (f.s) f.s[at + j] = s;
        f.y[at + j] = (s - mean) * rstd * f.gain[j] + f.bias[j];
    }
    if (f.stat && lane == 0) {
        f.stat[2 * row] = mean;
        f.stat[2 * row + 1] = rstd;
    }
}

void ses_k_norm_cuda(ses_exec *x, ses_real *y, ses_real *s, ses_real *stat, const ses_real *a,
                     const ses_real *res, const ses_real *gain, const ses_real *bias, int64_t rows,
                     int64_t cols, double eps)
{
    norm_args f = { y, s, stat, a, res, gain, bias, rows, cols, (float)eps };
    if (rows <= 0) return;
    norm_rows<<<(unsigned)ceil_div(rows, WARPS), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(f);
    launched(x->cuda);
}

struct norm_grad {
    sink<ses_real> da, dres;
    const ses_real *dy, *s, *stat, *gain;
    int64_t rows, cols;
};

/* A product that stays one: contracted into the subtraction that follows, a row of one column would not give
 * 0. */
__device__ static inline float slope_at(const norm_grad &b, int64_t i, int64_t j)
{
    return __fmul_rn(b.dy[i], b.gain[j]);
}

/* With g = dy gain and xhat = (s - mean) rstd: ds = rstd (g - mean(g) - xhat mean(g xhat)). */
__global__ void norm_bwd_rows(norm_grad b)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    int lane = threadIdx.x % WARP;
    if (row >= b.rows) return;
    int64_t at = row * b.cols;
    float mean = b.stat[2 * row], rstd = b.stat[2 * row + 1], g_sum = 0, gx_sum = 0;
    for (int64_t j = lane; j < b.cols; j += WARP) {
        float g = slope_at(b, at + j, j);
        g_sum += g;
        gx_sum += g * (b.s[at + j] - mean) * rstd;
    }
    float g_mean = warp_sum(g_sum) / (float)b.cols, gx_mean = warp_sum(gx_sum) / (float)b.cols;
    for (int64_t j = lane; j < b.cols; j += WARP) {
        float g = slope_at(b, at + j, j), xhat = (b.s[at + j] - mean) * rstd;
        float ds = rstd * (g - g_mean - xhat * gx_mean);
        if (b.da.data) put(b.da, at + j, ds);
        if (b.dres.data) put(b.dres, at + j, ds);
    }
}

void ses_k_norm_bwd_cuda(ses_exec *x, ses_sink da, ses_sink dres, ses_real *dgain, ses_real *dbias,
                         const ses_real *dy, const ses_real *s, const ses_real *stat, const ses_real *gain,
                         int64_t rows, int64_t cols)
{
    if (rows <= 0) return;
    if (dbias) ses_k_col_sum_cuda(x, dbias, dy, rows, cols);
    if (dgain)
        sum_columns(x, dgain, rows, cols, [=] __device__(int64_t row, int64_t j) {
            return dy[row * cols + j] * (s[row * cols + j] - stat[2 * row]) * stat[2 * row + 1];
        });
    if (!da.data && !dres.data) return;
    norm_grad b = { sink_of<ses_real>(da), sink_of<ses_real>(dres), dy, s, stat, gain, rows, cols };
    norm_bwd_rows<<<(unsigned)ceil_div(rows, WARPS), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(b);
    launched(x->cuda);
}
