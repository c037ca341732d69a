/* CUDA kernel of int8 rounding of floats. The factors and products are rounded as on a CPU. */
#include "reduce_cuda.cuh"

#include <float.h>

template <class T> __device__ static inline T rounded(T x, float by, float scale)
{
    return from_float<T>(__fmul_rn(rintf(__fmul_rn(to_float(x), by)), scale));
}

/* 0 if the factor would overflow: the numbers become zeros. */
__device__ static inline float factor_of(float max) { return max > 127 / FLT_MAX ? __fdiv_rn(127, max) : 0; }

/* NaN for a number that is not finite, which fmaxf would skip. */
__device__ static inline float not_finite(float x) { return x - x; }

/* One block per row. */
template <class T> __global__ void fake_rows(T *y, const T *a, int64_t cols)
{
    y += blockIdx.x * cols;
    a += blockIdx.x * cols;
    float max = 0;
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) max = fmaxf(max, fabsf(to_float(a[j])));
    max = block_max(max);
    float bad = (float)block_total(cols, [=](int64_t j) { return (double)not_finite(to_float(a[j])); });
    float by = factor_of(max + bad), scale = __fdiv_rn(max + bad, 127);
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) y[j] = rounded(a[j], by, scale);
}

template <class T>
static void fake_quantize(ses_exec *x, ses_real *y, const ses_real *a, int64_t rows, int64_t cols,
                          bool by_col)
{
    T *to = elems<T>(y);
    const T *from = elems<T>(a);
    if (rows <= 0 || cols <= 0) return;
    if (!by_col) {
        fake_rows<T><<<(unsigned)rows, row_threads(cols), 0, ses_cuda_stream(x->cuda)>>>(to, from, cols);
        check_launch(x->cuda);
        return;
    }
    for_each(x, cols, [=] __device__(int64_t j) {
        float max = 0, bad = 0;
        for (int64_t i = 0; i < rows; i++) {
            float u = to_float(from[i * cols + j]);
            max = fmaxf(max, fabsf(u)), bad += not_finite(u);
        }
        float by = factor_of(max + bad), scale = __fdiv_rn(max + bad, 127);
        for (int64_t i = 0; i < rows; i++) to[i * cols + j] = rounded(from[i * cols + j], by, scale);
    });
}

void ses_cuda_fake_quantize(ses_kernels *k, bool is_bf16)
{
    k->fake_quantize = is_bf16 ? fake_quantize<bf16> : fake_quantize<float>;
}
