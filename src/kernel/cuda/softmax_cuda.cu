/* A block a row. A thread writes only columns it alone reads after the sums, so y may be a. */
#include "cuda_common.cuh"

template <class T> __global__ void softmax_rows(T *y, const T *a, int64_t cols, bool log_of)
{
    y += blockIdx.x * cols, a += blockIdx.x * cols;
    float max = -INFINITY, sum = 0;
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) max = fmaxf(max, num(a[j]));
    max = block_max(max);
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) sum += expf(num(a[j]) - max);
    sum = block_sum(sum);
    float less = logf(sum);
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
        y[j] = cell<T>(log_of ? num(a[j]) - max - less : expf(num(a[j]) - max) / sum);
}

template <class T, bool LOG>
static void softmax(ses_exec *x, ses_real *y, const ses_real *a, int64_t rows, int64_t cols)
{
    if (rows <= 0) return;
    softmax_rows<T><<<(unsigned)rows, row_threads(cols), 0, ses_cuda_stream(x->cuda)>>>(
        cells<T>(y), cells<T>(a), cols, LOG);
    launched(x->cuda);
}

/* da = y (dy - sum(dy y)); of the logarithm dy - exp(y) sum(dy) */
template <class T>
__global__ void softmax_bwd_rows(sink<T> da, const T *dy, const T *y, int64_t cols, bool log_of)
{
    int64_t at = blockIdx.x * cols;
    float sum = 0;
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
        sum += log_of ? num(dy[at + j]) : num(dy[at + j]) * num(y[at + j]);
    sum = block_sum(sum);
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
        float d = num(dy[at + j]), v = num(y[at + j]);
        put(da, at + j, log_of ? d - expf(v) * sum : v * (d - sum));
    }
}

template <class T, bool LOG>
static void softmax_bwd(ses_exec *x, ses_dst da, const ses_real *dy, const ses_real *y, int64_t rows,
                        int64_t cols)
{
    if (!da.data || rows <= 0) return;
    softmax_bwd_rows<T><<<(unsigned)rows, row_threads(cols), 0, ses_cuda_stream(x->cuda)>>>(
        sink_of<T>(da), cells<T>(dy), cells<T>(y), cols, LOG);
    launched(x->cuda);
}

template <class T> static void fill(ses_kernels *k)
{
    k->softmax = softmax<T, false>, k->softmax_bwd = softmax_bwd<T, false>;
    k->log_softmax = softmax<T, true>, k->log_softmax_bwd = softmax_bwd<T, true>;
}

void ses_cuda_softmax(ses_kernels *k, bool narrow) { narrow ? fill<bf16>(k) : fill<float>(k); }
