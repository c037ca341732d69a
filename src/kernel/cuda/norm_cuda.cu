/* Layer norm, forward pass. Aligned rows stay in the registers of a warp; other rows are read again from the
 * cache. */
#include "norm_cuda.cuh"

template <class T> struct norm_args {
    T *y, *s;
    float *stat;
    const T *a, *res;
    const float *gain, *bias;
    int64_t rows, cols;
    float eps;
    dropout_params drop; /* dropout of a */
    ses_rng_key key;
};

/* s rounded as it is stored, so that the result is the same whether s is stored or not. */
template <class T> __device__ static inline float sum_at(const norm_args<T> &f, int64_t i)
{
    float a = to_float(f.a[i]);
    float keep = f.drop.threshold ? drop_factor(f.key, (uint64_t)i, f.drop.threshold, f.drop.scale) : 1;
    if (f.drop.threshold) a = keep > 0 ? a * keep : 0;
    return f.res ? to_float(from_float<T>(a + to_float(f.res[i]))) : to_float(from_float<T>(a));
}

template <class T>
__device__ static inline void store_stat(const norm_args<T> &f, int64_t row, float mean, float rstd)
{
    if (!f.stat || threadIdx.x % WARP) return;
    f.stat[2 * row] = mean;
    f.stat[2 * row + 1] = rstd;
}

template <class T> __global__ void norm_rows(norm_args<T> f)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    int lane = threadIdx.x % WARP;
    if (row >= f.rows) return;
    int64_t at = row * f.cols;
    float sum = 0, squares = 0;
    for (int64_t j = lane; j < f.cols; j += WARP) sum += sum_at(f, at + j);
    float mean = warp_sum(sum) / (float)f.cols;
    for (int64_t j = lane; j < f.cols; j += WARP) {
        float d = sum_at(f, at + j) - mean;
        squares += d * d;
    }
    float rstd = 1 / sqrtf(warp_sum(squares) / (float)f.cols + f.eps);
    for (int64_t j = lane; j < f.cols; j += WARP) {
        float s = sum_at(f, at + j);
        if (f.s) f.s[at + j] = from_float<T>(s);
        f.y[at + j] = from_float<T>((s - mean) * rstd * f.gain[j] + f.bias[j]);
    }
    store_stat(f, row, mean, rstd);
}

/* Turns a into s, which starts at element i; returns the sum of its elements. */
template <class T, bool RES, bool DROP>
__device__ static inline float vec_sum(const norm_args<T> &f, vec16<T> &a, const vec16<T> &res, int64_t i)
{
    enum { N = vec16<T>::N };
    float keep[N], sum = 0;
    if (DROP) drop_factors<N>(keep, f.key, i, f.drop);
#pragma unroll
    for (int k = 0; k < N / 2; k++) {
        float2 v = load2(a, k), r = RES ? load2(res, k) : make_float2(0, 0);
        if (DROP) v.x = keep[2 * k] > 0 ? v.x * keep[2 * k] : 0;
        if (DROP) v.y = keep[2 * k + 1] > 0 ? v.y * keep[2 * k + 1] : 0;
        if (RES) v.x += r.x, v.y += r.y;
        if (RES || DROP) store2(a, k, v), v = load2(a, k);
        sum += v.x, sum += v.y;
    }
    if (f.s) *(vec16<T> *)(f.s + i) = a;
    return sum;
}

/* One row per warp: the loads of some warps overlap with the sums of others. */
template <class T, int K, bool RES, bool DROP>
__global__ void __launch_bounds__(BLOCK, row_vecs<K>::BLOCKS) norm_vec(norm_args<T> f)
{
    enum { N = vec16<T>::N, FULL = row_vecs<K>::FULL };
    __shared__ alignas(16) float gain[K * WARP * N], bias[K * WARP * N];
    for (int j = threadIdx.x; j < f.cols; j += BLOCK) gain[j] = f.gain[j], bias[j] = f.bias[j];
    __syncthreads();
    int lane = threadIdx.x % WARP, vecs = (int)f.cols / N;
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP, at = row * f.cols + lane * N;
    if (row >= f.rows) return;
    auto in = [=](int k) { return k < FULL || k * WARP + lane < vecs; };
    vec16<T> s[K], res[K];
#pragma unroll
    for (int k = 0; k < K; k++) {
        if (in(k)) s[k] = *(const vec16<T> *)(f.a + at + k * WARP * N);
        if (RES && in(k)) res[k] = *(const vec16<T> *)(f.res + at + k * WARP * N);
    }
    float mean = 0, square = 0;
#pragma unroll
    for (int k = 0; k < K; k++)
        if (in(k)) mean += vec_sum<T, RES, DROP>(f, s[k], res[k], at + k * WARP * N);
    mean = warp_sum(mean) / (float)f.cols;
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
        for (int i = 0; i < N / 2; i++) {
            float2 d = load2(s[k], i);
            d.x -= mean, d.y -= mean;
            if (in(k)) square += d.x * d.x, square += d.y * d.y;
        }
    float rstd = 1 / sqrtf(warp_sum(square) / (float)f.cols + f.eps);
    store_stat(f, row, mean, rstd);
#pragma unroll
    for (int k = 0; k < K; k++) {
        vec16<T> y;
#pragma unroll
        for (int i = 0; i < N / 2; i++) {
            int j = (k * WARP + lane) * N + 2 * i;
            float2 v = load2(s[k], i), g = *(const float2 *)(gain + j), b = *(const float2 *)(bias + j);
            store2(y, i, make_float2((v.x - mean) * rstd * g.x + b.x, (v.y - mean) * rstd * g.y + b.y));
        }
        if (in(k)) *(vec16<T> *)(f.y + at + k * WARP * N) = y;
    }
}

template <class T, int K> static void launch_vec(cudaStream_t stream, const norm_args<T> &f)
{
    unsigned blocks = (unsigned)ceil_div(f.rows, WARPS);
    if (f.res)
        f.drop.threshold ? norm_vec<T, K, true, true><<<blocks, BLOCK, 0, stream>>>(f)
                         : norm_vec<T, K, true, false><<<blocks, BLOCK, 0, stream>>>(f);
    else
        f.drop.threshold ? norm_vec<T, K, false, true><<<blocks, BLOCK, 0, stream>>>(f)
                         : norm_vec<T, K, false, false><<<blocks, BLOCK, 0, stream>>>(f);
}

/* False: these columns are not supported. */
template <class T> static bool norm_by_vec(cudaStream_t stream, const norm_args<T> &f, bool aligned)
{
    if (!aligned || f.cols % vec16<T>::N) return false;
    switch (ceil_div(f.cols, vec16<T>::N * WARP)) {
    case 1: return launch_vec<T, 1>(stream, f), true;
    case 2: return launch_vec<T, 2>(stream, f), true;
    case 3: return launch_vec<T, 3>(stream, f), true;
    case 4: return launch_vec<T, 4>(stream, f), true;
    case 5:
    case 6: return launch_vec<T, 6>(stream, f), true;
    case 7:
    case 8: return launch_vec<T, 8>(stream, f), true;
    default: return false;
    }
}

template <class T>
static void norm(ses_exec *x, ses_real *y, ses_real *s, ses_real *stat, const ses_real *a,
                 const ses_real *res, const ses_real *gain, const ses_real *bias, int64_t rows, int64_t cols,
                 double eps, const ses_dropout_spec *drop)
{
    norm_args<T> f = { elems<T>(y),
                       elems<T>(s),
                       stat,
                       elems<T>(a),
                       elems<T>(res),
                       gain,
                       bias,
                       rows,
                       cols,
                       (float)eps,
                       dropout_params_of(drop ? drop->rate : 0),
                       key_of(drop) };
    if (rows <= 0) return;
    bool aligned = aligned16(y) && aligned16(s) && aligned16(a) && aligned16(res);
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    if (!norm_by_vec(stream, f, aligned))
        norm_rows<T><<<(unsigned)ceil_div(rows, WARPS), BLOCK, 0, stream>>>(f);
    check_launch(x->cuda);
}

void ses_cuda_norm(ses_kernels *k, bool is_bf16)
{
    k->norm = is_bf16 ? norm<bf16> : norm<float>;
    ses_cuda_norm_bwd(k, is_bf16);
}
