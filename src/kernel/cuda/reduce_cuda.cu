#include "act_cuda.cuh"
#include "reduce_cuda.cuh"

template <class T>
static void col_sum(ses_exec *x, ses_dst y, const ses_real *a, int64_t rows, int64_t cols, int64_t ld)
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

template <class T> struct act_args {
    T *da, *y; /* y may be NULL; each may be an input */
    const T *dy, *a;
    int64_t rows, cols;
    ses_act act;
};

/* As strip_packs, with the activation compiled in (ACT < 0: what f says): one that is asked for at run time,
 * once for each number, takes longer than memory. */
template <class T, int ACT>
__global__ void __launch_bounds__(BLOCK, 4) act_strips(float *part, int64_t strip, act_args<T> f)
{
    enum { N = pack<T>::N };
    ses_act act = ACT < 0 ? f.act : (ses_act)ACT;
    int64_t j = ((int64_t)blockIdx.x * WARP + threadIdx.x % WARP) * N;
    int64_t begin = blockIdx.y * strip, end = begin + strip < f.rows ? begin + strip : f.rows;
    float sum[N] = {};
    for (int64_t row = begin + threadIdx.x / WARP; row < end && j < f.cols; row += STRIP_LANES) {
        int64_t at = row * f.cols + j;
        pack<T> d = *(const pack<T> *)(f.dy + at), u = *(const pack<T> *)(f.a + at);
#pragma unroll
        for (int k = 0; k < N; k++) {
            sloped s = both_for<T>(act, num(u.at[k]));
            d.at[k] = cell<T>(num(d.at[k]) * s.slope);
            u.at[k] = cell<T>(s.value);
            sum[k] += num(d.at[k]);
        }
        *(pack<T> *)(f.da + at) = d;
        if (f.y) *(pack<T> *)(f.y + at) = u;
    }
    strip_end<N>(part, f.cols, sum);
}

template <class T>
static void act_bwd_sum(ses_exec *x, ses_dst da, ses_dst sum, ses_real *y, const ses_real *dy,
                        const ses_real *a, int64_t rows, int64_t cols, ses_act act)
{
    enum { N = pack<T>::N };
    act_args<T> f = { cells<T>(da.data), cells<T>(y), cells<T>(dy), cells<T>(a), rows, cols, act };
    bool packed = whole_packs(da.data) && whole_packs(dy) && whole_packs(a) && whole_packs(y);
    if (cols % N || da.accumulate || da.is_f32 || !packed) {
        act_bwd<T>(x, da, dy, a, rows * cols, act);
        if (y) act_fwd<T>(x, y, a, rows * cols, act);
        return col_sum<T>(x, sum, da.data, rows, cols, cols);
    }
    strips s = strips_lock<T>(x, rows, cols);
    if (!s.part) return;
    auto run = act == SES_ACT_GELU        ? act_strips<T, SES_ACT_GELU>
               : act == SES_ACT_GELU_TANH ? act_strips<T, SES_ACT_GELU_TANH>
                                          : act_strips<T, -1>;
    run<<<s.grid, BLOCK, 0, ses_cuda_stream(x->cuda)>>>(s.part, s.each, f);
    strips_unlock(x, sink_of<T>(sum), s, cols);
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
