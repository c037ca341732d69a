/* CUDA kernels that sum over rows or over all elements, and act_bwd_sum. */
#include "act_cuda.cuh"
#include "reduce_cuda.cuh"

template <class T>
static void col_sum(ses_exec *x, ses_dst y, const ses_real *a, int64_t rows, int64_t cols, int64_t ld)
{
    enum { N = vec16<T>::N };
    const T *from = elems<T>(a);
    if (cols % N == 0 && ld % N == 0 && aligned16(a)) {
        sum_vecs<T>(x, dst_of<T>(y), rows, cols, [=] __device__(int64_t row, int64_t j, float *v) {
            vec16<T> p = *(const vec16<T> *)(from + row * ld + j);
#pragma unroll
            for (int k = 0; k < N; k++) v[k] = to_float(p.at[k]);
        });
    } else {
        sum_columns(x, dst_of<T>(y), rows, cols,
                    [=] __device__(int64_t row, int64_t j) { return to_float(from[row * ld + j]); });
    }
}

template <class T> struct act_args {
    T *da, *y; /* y may be NULL; both may alias an input */
    const T *dy, *a;
    int64_t rows, cols;
    ses_act act;
};

/* strip_vecs with the activation as a template parameter (ACT < 0: f.act): selecting it at run time per
 * element takes longer than the memory access. */
template <class T, int ACT>
__global__ void __launch_bounds__(BLOCK, 4) act_strips(float *part, int64_t strip, act_args<T> f)
{
    enum { N = vec16<T>::N };
    ses_act act = ACT < 0 ? f.act : (ses_act)ACT;
    int64_t j = ((int64_t)blockIdx.x * WARP + threadIdx.x % WARP) * N;
    int64_t begin = blockIdx.y * strip, end = begin + strip < f.rows ? begin + strip : f.rows;
    float sum[N] = {};
    for (int64_t row = begin + threadIdx.x / WARP; row < end && j < f.cols; row += STRIP_LANES) {
        int64_t at = row * f.cols + j;
        vec16<T> d = *(const vec16<T> *)(f.dy + at), u = *(const vec16<T> *)(f.a + at);
#pragma unroll
        for (int k = 0; k < N; k++) {
            act_value s = value_and_slope<T>(act, to_float(u.at[k]));
            d.at[k] = from_float<T>(to_float(d.at[k]) * s.slope);
            u.at[k] = from_float<T>(s.value);
            sum[k] += to_float(d.at[k]);
        }
        *(vec16<T> *)(f.da + at) = d;
        if (f.y) *(vec16<T> *)(f.y + at) = u;
    }
    store_strip<N>(part, f.cols, sum);
}

template <class T>
static void act_bwd_sum(ses_exec *x, ses_dst da, ses_dst sum, ses_real *y, const ses_real *dy,
                        const ses_real *a, int64_t rows, int64_t cols, ses_act act)
{
    enum { N = vec16<T>::N };
    act_args<T> f = { elems<T>(da.data), elems<T>(y), elems<T>(dy), elems<T>(a), rows, cols, act };
    bool aligned = aligned16(da.data) && aligned16(dy) && aligned16(a) && aligned16(y);
    if (cols % N || da.accumulate || da.is_f32 || !aligned) {
        act_bwd<T>(x, da, dy, a, rows * cols, act);
        if (y) act_fwd<T>(x, y, a, rows * cols, act);
        return col_sum<T>(x, sum, da.data, rows, cols, cols);
    }
    strips s = strips_lock<T>(x, rows, cols);
    if (!s.part) return;
    auto run = act == SES_ACT_GELU        ? act_strips<T, SES_ACT_GELU>
               : act == SES_ACT_GELU_TANH ? act_strips<T, SES_ACT_GELU_TANH>
                                          : act_strips<T, -1>;
    run<<<s.grid, BLOCK, 0, ses_cuda_stream(x->cuda)>>>(s.part, s.rows, f);
    strips_unlock(x, dst_of<T>(sum), s, cols);
}

/* The only kernel that waits for the GPU: its result is used by the host. */
static double sum_squares(ses_exec *x, const ses_real *a, int64_t n)
{
    double part[PARTIALS], sum = 0;
    double *on_gpu = (double *)scratch_lock(x->cuda, sizeof part);
    if (!on_gpu) return NAN;
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    square_partials<<<PARTIALS, BLOCK, 0, stream>>>(on_gpu, a, n);
    check_launch(x->cuda);
    ses_cuda_record(x->cuda, cudaMemcpyAsync(part, on_gpu, sizeof part, cudaMemcpyDeviceToHost, stream));
    ses_cuda_record(x->cuda, cudaStreamSynchronize(stream));
    scratch_unlock(x->cuda);
    for (int i = 0; i < PARTIALS; i++) sum += part[i];
    return sum;
}

static void sum_squares_parts(ses_exec *x, double *part, const ses_real *a, int64_t n, int64_t size)
{
    if (n < 1) return;
    square_parts<<<(unsigned)((n + size - 1) / size), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(part, a, n, size);
    check_launch(x->cuda);
}

void ses_cuda_reduce(ses_kernels *k, bool is_bf16)
{
    k->col_sum = is_bf16 ? col_sum<bf16> : col_sum<float>;
    k->act_bwd_sum = is_bf16 ? act_bwd_sum<bf16> : act_bwd_sum<float>;
    k->sum_squares = sum_squares;
    k->sum_squares_parts = sum_squares_parts;
}
