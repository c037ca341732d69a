/* CUDA kernels of RMS norm: one warp per row. */
#include "reduce_cuda.cuh"

template <class T> struct rms_args {
    T *y;
    float *stat;
    const T *a;
    const float *gain;
    int64_t rows, cols;
    float eps, plus;
};

template <class T> __global__ void rms_rows(rms_args<T> f)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    int lane = threadIdx.x % WARP;
    if (row >= f.rows) return;
    int64_t at = row * f.cols;
    float squares = 0;
    for (int64_t j = lane; j < f.cols; j += WARP) squares += to_float(f.a[at + j]) * to_float(f.a[at + j]);
    float rstd = 1 / sqrtf(warp_sum(squares) / (float)f.cols + f.eps);
    for (int64_t j = lane; j < f.cols; j += WARP)
        f.y[at + j] = from_float<T>(to_float(f.a[at + j]) * rstd * (f.gain[j] + f.plus));
    if (f.stat && lane == 0) f.stat[row] = rstd;
}

template <class T>
static void rms(ses_exec *x, ses_real *y, ses_real *stat, const ses_real *a, const ses_real *gain,
                int64_t rows, int64_t cols, double eps, double plus)
{
    rms_args<T> f = { elems<T>(y), stat, elems<T>(a), gain, rows, cols, (float)eps, (float)plus };
    if (rows <= 0) return;
    rms_rows<T><<<(unsigned)ceil_div(rows, WARPS), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(f);
    check_launch(x->cuda);
}

template <class T> struct rms_grad {
    dst<T> da;
    const T *dy, *a;
    const float *stat, *gain;
    int64_t rows, cols;
    float plus;
};

/* da = rstd (g - xhat mean(g xhat)), g = dy gain, xhat = a rstd. */
template <class T> __global__ void rms_bwd_rows(rms_grad<T> b)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    int lane = threadIdx.x % WARP;
    if (row >= b.rows) return;
    int64_t at = row * b.cols;
    float rstd = b.stat[row], sum = 0;
    for (int64_t j = lane; j < b.cols; j += WARP)
        sum += to_float(b.dy[at + j]) * (b.gain[j] + b.plus) * to_float(b.a[at + j]) * rstd;
    float mean = warp_sum(sum) / (float)b.cols;
    for (int64_t j = lane; j < b.cols; j += WARP)
        store(b.da, at + j,
              rstd * (to_float(b.dy[at + j]) * (b.gain[j] + b.plus) - to_float(b.a[at + j]) * rstd * mean));
}

template <class T>
static void rms_bwd(ses_exec *x, ses_dst da, ses_real *dgain, const ses_real *dy, const ses_real *a,
                    const ses_real *stat, const ses_real *gain, int64_t rows, int64_t cols, double plus)
{
    const T *dys = elems<T>(dy), *as = elems<T>(a);
    if (rows <= 0) return;
    if (dgain)
        sum_columns(x, accumulating(dgain), rows, cols, [=] __device__(int64_t row, int64_t j) {
            return to_float(dys[row * cols + j]) * to_float(as[row * cols + j]) * stat[row];
        });
    if (!da.data) return;
    rms_grad<T> b = { dst_of<T>(da), dys, as, stat, gain, rows, cols, (float)plus };
    rms_bwd_rows<T><<<(unsigned)ceil_div(rows, WARPS), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(b);
    check_launch(x->cuda);
}

void ses_cuda_rms(ses_kernels *k, bool is_bf16)
{
    k->rms = is_bf16 ? rms<bf16> : rms<float>;
    k->rms_bwd = is_bf16 ? rms_bwd<bf16> : rms_bwd<float>;
}
