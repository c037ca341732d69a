#include "reduce_cuda.cuh"

template <class T> static void col_sum(ses_exec *x, ses_sink y, const ses_real *a, int64_t rows, int64_t cols)
{
    const T *from = cells<T>(a);
    sum_columns(x, sink_of<T>(y), rows, cols,
                [=] __device__(int64_t row, int64_t j) { return num(from[row * cols + j]); });
}

enum { PARTS = 1024 };

__global__ void square_parts(double *part, const ses_real *a, int64_t n)
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

/* The one kernel that waits for the GPU: its result is the host's. */
static double sum_squares(ses_exec *x, const ses_real *a, int64_t n)
{
    double part[PARTS], sum = 0;
    double *on_gpu = (double *)scratch_lock(x->cuda, sizeof part);
    if (!on_gpu) return NAN;
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    square_parts<<<PARTS, BLOCK, 0, stream>>>(on_gpu, a, n);
    launched(x->cuda);
    ses_cuda_note(x->cuda, cudaMemcpyAsync(part, on_gpu, sizeof part, cudaMemcpyDeviceToHost, stream));
    ses_cuda_note(x->cuda, cudaStreamSynchronize(stream));
    scratch_unlock(x->cuda);
    for (int i = 0; i < PARTS; i++) sum += part[i];
    return sum;
}

void ses_cuda_reduce(ses_kernels *k, bool narrow)
{
    k->col_sum = narrow ? col_sum<bf16> : col_sum<float>;
    k->sum_squares = sum_squares;
}
