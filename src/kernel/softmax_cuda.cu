/* A block a row. A thread writes only columns it alone reads after the sums, so y may be a. */
#include "cuda.cuh"

__global__ void softmax_rows(ses_real *y, const ses_real *a, int64_t cols, bool log_of)
{
    y += blockIdx.x * cols, a += blockIdx.x * cols;
    float max = -INFINITY, sum = 0;
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) max = fmaxf(max, a[j]);
    max = block_max(max);
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) sum += expf(a[j] - max);
    sum = block_sum(sum);
    float less = logf(sum);
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
        y[j] = log_of ? a[j] - max - less : expf(a[j] - max) / sum;
}

static void softmax(ses_exec *x, ses_real *y, const ses_real *a, int64_t rows, int64_t cols, bool log_of)
{
    if (rows <= 0) return;
    softmax_rows<<<(unsigned)rows, row_threads(cols), 0, ses_cuda_stream(x->cuda)>>>(y, a, cols, log_of);
    launched(x->cuda);
}

void ses_k_softmax_cuda(ses_exec *x, ses_real *y, const ses_real *a, int64_t rows, int64_t cols)
{
    softmax(x, y, a, rows, cols, false);
}

void ses_k_log_softmax_cuda(ses_exec *x, ses_real *y, const ses_real *a, int64_t rows, int64_t cols)
{
    softmax(x, y, a, rows, cols, true);
}

/* da = y (dy - sum(dy y)); of the logarithm dy - exp(y) sum(dy) */
__global__ void softmax_bwd_rows(sink<ses_real> da, const ses_real *dy, const ses_real *y, int64_t cols,
                                 bool log_of)
{
    int64_t at = blockIdx.x * cols;
    float sum = 0;
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
        sum += log_of ? dy[at + j] : dy[at + j] * y[at + j];
    sum = block_sum(sum);
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
        float d = dy[at + j], v = y[at + j];
        put(da, at + j, log_of ? d - expf(v) * sum : v * (d - sum));
    }
}

static void softmax_bwd(ses_exec *x, ses_sink da, const ses_real *dy, const ses_real *y, int64_t rows,
                        int64_t cols, bool log_of)
{
    if (!da.data || rows <= 0) return;
    softmax_bwd_rows<<<(unsigned)rows, row_threads(cols), 0, ses_cuda_stream(x->cuda)>>>(
        sink_of<ses_real>(da), dy, y, cols, log_of);
    launched(x->cuda);
}

void ses_k_softmax_bwd_cuda(ses_exec *x, ses_sink da, const ses_real *dy, const ses_real *y, int64_t rows,
                            int64_t cols)
{
    softmax_bwd(x, da, dy, y, rows, cols, false);
}

void ses_k_log_softmax_bwd_cuda(ses_exec *x, ses_sink da, const ses_real *dy, const ses_real *y, int64_t rows,
                                int64_t cols)
{
    softmax_bwd(x, da, dy, y, rows, cols, true);
}
