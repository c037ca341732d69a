/* Softmax and log-softmax: one block per row. After the sums a thread writes only the columns it reads, so y
 * may be a. */
#include "cuda_common.cuh"

template <class T> __global__ void softmax_rows(T *y, const T *a, int64_t cols, bool is_log)
{
    y += blockIdx.x * cols, a += blockIdx.x * cols;
    float max = -INFINITY, sum = 0;
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) max = fmaxf(max, to_float(a[j]));
    max = block_max(max);
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) sum += expf(to_float(a[j]) - max);
    sum = block_sum(sum);
    float log_sum = logf(sum);
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
        y[j] = from_float<T>(is_log ? to_float(a[j]) - max - log_sum : expf(to_float(a[j]) - max) / sum);
}

template <class T, bool LOG>
static void softmax(ses_exec *x, ses_real *y, const ses_real *a, int64_t rows, int64_t cols)
{
    if (rows <= 0) return;
    softmax_rows<T><<<(unsigned)rows, row_threads(cols), 0, ses_cuda_stream(x->cuda)>>>(
        elems<T>(y), elems<T>(a), cols, LOG);
    check_launch(x->cuda);
}

/* softmax: da = y (dy - sum(dy y)); log-softmax: da = dy - exp(y) sum(dy) */
template <class T>
__global__ void softmax_bwd_rows(dst<T> da, const T *dy, const T *y, int64_t cols, bool is_log)
{
    int64_t at = blockIdx.x * cols;
    float sum = 0;
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
        sum += is_log ? to_float(dy[at + j]) : to_float(dy[at + j]) * to_float(y[at + j]);
    sum = block_sum(sum);
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
        float d = to_float(dy[at + j]), v = to_float(y[at + j]);
        store(da, at + j, is_log ? d - expf(v) * sum : v * (d - sum));
    }
}

template <class T, bool LOG>
static void softmax_bwd(ses_exec *x, ses_dst da, const ses_real *dy, const ses_real *y, int64_t rows,
                        int64_t cols)
{
    if (!da.data || rows <= 0) return;
    softmax_bwd_rows<T><<<(unsigned)rows, row_threads(cols), 0, ses_cuda_stream(x->cuda)>>>(
        dst_of<T>(da), elems<T>(dy), elems<T>(y), cols, LOG);
    check_launch(x->cuda);
}

template <class T> static void fill(ses_kernels *k)
{
    k->softmax = softmax<T, false>, k->softmax_bwd = softmax_bwd<T, false>;
    k->log_softmax = softmax<T, true>, k->log_softmax_bwd = softmax_bwd<T, true>;
}

void ses_cuda_softmax(ses_kernels *k, bool is_bf16) { is_bf16 ? fill<bf16>(k) : fill<float>(k); }
