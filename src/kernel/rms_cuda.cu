#include "reduce_cuda.cuh"

struct rms_args {
    ses_real *y, *stat;
    const ses_real *a, *gain;
    int64_t rows, cols;
    float eps;
};

__global__ void rms_rows(rms_args f)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    int lane = threadIdx.x % WARP;
    if (row >= f.rows) return;
    int64_t at = row * f.cols;
    float squares = 0;
    for (int64_t j = lane; j < f.cols; j += WARP) squares += f.a[at + j] * f.a[at + j];
    float rstd = 1 / sqrtf(warp_sum(squares) / (float)f.cols + f.eps);
    for (int64_t j = lane; j < f.cols; j += WARP) f.y[at + j] = f.a[at + j] * rstd * f.gain[j];
    if (f.stat && lane == 0) f.stat[row] = rstd;
}

void ses_k_rms_cuda(ses_exec *x, ses_real *y, ses_real *stat, const ses_real *a, const ses_real *gain,
                    int64_t rows, int64_t cols, double eps)
{
    rms_args f = { y, stat, a, gain, rows, cols, (float)eps };
    if (rows <= 0) return;
    rms_rows<<<(unsigned)ceil_div(rows, WARPS), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(f);
    launched(x->cuda);
}

struct rms_grad {
    sink<ses_real> da;
    const ses_real *dy, *a, *stat, *gain;
    int64_t rows, cols;
};

/* With g = dy gain and xhat = a rstd: da = rstd (g - xhat mean(g xhat)). */
__global__ void rms_bwd_rows(rms_grad b)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    int lane = threadIdx.x % WARP;
    if (row >= b.rows) return;
    int64_t at = row * b.cols;
    float rstd = b.stat[row], sum = 0;
    for (int64_t j = lane; j < b.cols; j += WARP) sum += b.dy[at + j] * b.gain[j] * b.a[at + j] * rstd;
    float mean = warp_sum(sum) / (float)b.cols;
    for (int64_t j = lane; j < b.cols; j += WARP)
        put(b.da, at + j, rstd * (b.dy[at + j] * b.gain[j] - b.a[at + j] * rstd * mean));
}

void ses_k_rms_bwd_cuda(ses_exec *x, ses_sink da, ses_real *dgain, const ses_real *dy, const ses_real *a,
                        const ses_real *stat, const ses_real *gain, int64_t rows, int64_t cols)
{
    if (rows <= 0) return;
    if (dgain)
        sum_columns(x, dgain, rows, cols, [=] __device__(int64_t row, int64_t j) {
            return dy[row * cols + j] * a[row * cols + j] * stat[row];
        });
    if (!da.data) return;
    rms_grad b = { sink_of<ses_real>(da), dy, a, stat, gain, rows, cols };
    rms_bwd_rows<<<(unsigned)ceil_div(rows, WARPS), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(b);
    launched(x->cuda);
}
