#include "act_cuda.cuh"
#include "reduce_cuda.cuh"

template <class T>
static void col_sum(ses_exec *x, ses_sink y, const ses_real *a, int64_t rows, int64_t cols, int64_t ld)
{
    enum { N = pack<T>::N };
    const T *from = cells<T>(a);
    if (cols % N == 0 && ld % N == 0 && whole_packs(a)) {
        sum_packs<T>(x, sink_of<T>(y), rows, cols, [=] __device__(int64_t row, int64_t j, float *v) {
            pack<T> p = *(const pack<T> *)(from + row * ld + j);
#pragma unroll
            for (int k = 0; k < N; k++) v[k] = num(p.at[k]);
        });
    } else {
        sum_columns(x, sink_of<T>(y), rows, cols,
                    [=] __device__(int64_t row, int64_t j) { return num(from[row * ld + j]); });
    }
}

template <class T>
static void act_bwd_sum(ses_exec *x, ses_sink da, ses_sink sum, const ses_real *dy, const ses_real *a,
                        int64_t rows, int64_t cols, ses_act act)
{
    enum { N = pack<T>::N };
    T *to = cells<T>(da.data);
    const T *slope_of = cells<T>(dy), *at = cells<T>(a);
    if (cols % N || da.add || da.wide || !whole_packs(da.data) || !whole_packs(dy) || !whole_packs(a)) {
        act_bwd<T>(x, da, dy, a, rows * cols, act);
        return col_sum<T>(x, sum, da.data, rows, cols, cols);
    }
    sum_packs<T>(x, sink_of<T>(sum), rows, cols, [=] __device__(int64_t row, int64_t j, float *v) {
        pack<T> d = *(const pack<T> *)(slope_of + row * cols + j),
                u = *(const pack<T> *)(at + row * cols + j);
#pragma unroll
        for (int k = 0; k < N; k++) {
            d.at[k] = cell<T>(num(d.at[k]) * slope_for<T>(act, num(u.at[k])));
            v[k] = num(d.at[k]);
        }
        *(pack<T> *)(to + row * cols + j) = d;
    });
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
    k->act_bwd_sum = narrow ? act_bwd_sum<bf16> : act_bwd_sum<float>;
    k->sum_squares = sum_squares;
}
