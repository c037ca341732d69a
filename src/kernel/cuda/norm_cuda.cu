/* Rows of whole packs stay in a warp's registers; others are read again from the cache. */
#include "norm_cuda.cuh"

template <class T> struct norm_args {
    T *y, *s;
    float *stat;
    const T *a, *res;
    const float *gain, *bias;
    int64_t rows, cols;
    float eps;
    dropping drop; /* of a */
    ses_rng_key key;
};

/* s as it is or would be stored: the result is the same with and without storing it. */
template <class T> __device__ static inline float sum_at(const norm_args<T> &f, int64_t i)
{
    float a = num(f.a[i]);
    float keep = f.drop.threshold ? kept(f.key, (uint64_t)i, f.drop.threshold, f.drop.scale) : 1;
    if (f.drop.threshold) a = keep > 0 ? a * keep : 0;
    return f.res ? num(cell<T>(a + num(f.res[i]))) : num(cell<T>(a));
}

template <class T>
__device__ static inline void put_stat(const norm_args<T> &f, int64_t row, float mean, float rstd)
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
        if (f.s) f.s[at + j] = cell<T>(s);
        f.y[at + j] = cell<T>((s - mean) * rstd * f.gain[j] + f.bias[j]);
    }
    put_stat(f, row, mean, rstd);
}

/* a becomes s, which starts at element i; returns the sum of its numbers. */
template <class T, bool RES, bool DROP>
__device__ static inline float pack_sum(const norm_args<T> &f, pack<T> &a, const pack<T> &res, int64_t i)
{
    enum { N = pack<T>::N };
    float keep[N], sum = 0;
    if (DROP) drop_pack<N>(keep, f.key, i, f.drop);
#pragma unroll
    for (int k = 0; k < N / 2; k++) {
        float2 v = two_of(a, k), r = RES ? two_of(res, k) : make_float2(0, 0);
        if (DROP) v.x = keep[2 * k] > 0 ? v.x * keep[2 * k] : 0;
        if (DROP) v.y = keep[2 * k + 1] > 0 ? v.y * keep[2 * k + 1] : 0;
        if (RES) v.x += r.x, v.y += r.y;
        if (RES || DROP) put_two(a, k, v), v = two_of(a, k);
        sum += v.x, sum += v.y;
    }
    if (f.s) *(pack<T> *)(f.s + i) = a;
    return sum;
}

/* A block has as many rows as warps: others' loads pass beside its sums. */
template <class T, int K, bool RES, bool DROP>
__global__ void __launch_bounds__(BLOCK, row_packs<K>::BLOCKS) norm_packs(norm_args<T> f)
{
    enum { N = pack<T>::N, FULL = row_packs<K>::FULL };
    __shared__ alignas(16) float gain[K * WARP * N], bias[K * WARP * N];
    for (int j = threadIdx.x; j < f.cols; j += BLOCK) gain[j] = f.gain[j], bias[j] = f.bias[j];
    __syncthreads();
    int lane = threadIdx.x % WARP, packs = (int)f.cols / N;
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP, at = row * f.cols + lane * N;
    if (row >= f.rows) return;
    auto in = [=](int k) { return k < FULL || k * WARP + lane < packs; };
    pack<T> s[K], res[K];
#pragma unroll
    for (int k = 0; k < K; k++) {
        if (in(k)) s[k] = *(const pack<T> *)(f.a + at + k * WARP * N);
        if (RES && in(k)) res[k] = *(const pack<T> *)(f.res + at + k * WARP * N);
    }
    float mean = 0, square = 0;
#pragma unroll
    for (int k = 0; k < K; k++)
        if (in(k)) mean += pack_sum<T, RES, DROP>(f, s[k], res[k], at + k * WARP * N);
    mean = warp_sum(mean) / (float)f.cols;
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
        for (int i = 0; i < N / 2; i++) {
            float2 d = two_of(s[k], i);
            d.x -= mean, d.y -= mean;
            if (in(k)) square += d.x * d.x, square += d.y * d.y;
        }
    float rstd = 1 / sqrtf(warp_sum(square) / (float)f.cols + f.eps);
    put_stat(f, row, mean, rstd);
#pragma unroll
    for (int k = 0; k < K; k++) {
        pack<T> y;
#pragma unroll
        for (int i = 0; i < N / 2; i++) {
            int j = (k * WARP + lane) * N + 2 * i;
            float2 v = two_of(s[k], i), g = *(const float2 *)(gain + j), b = *(const float2 *)(bias + j);
            put_two(y, i, make_float2((v.x - mean) * rstd * g.x + b.x, (v.y - mean) * rstd * g.y + b.y));
        }
        if (in(k)) *(pack<T> *)(f.y + at + k * WARP * N) = y;
    }
}

template <class T, int K> static void by_kind(cudaStream_t stream, const norm_args<T> &f)
{
    unsigned blocks = (unsigned)ceil_div(f.rows, WARPS);
    if (f.res)
        f.drop.threshold ? norm_packs<T, K, true, true><<<blocks, BLOCK, 0, stream>>>(f)
                         : norm_packs<T, K, true, false><<<blocks, BLOCK, 0, stream>>>(f);
    else
        f.drop.threshold ? norm_packs<T, K, false, true><<<blocks, BLOCK, 0, stream>>>(f)
                         : norm_packs<T, K, false, false><<<blocks, BLOCK, 0, stream>>>(f);
}

/* false: not of these columns. */
template <class T> static bool by_packs(cudaStream_t stream, const norm_args<T> &f, bool aligned)
{
    if (!aligned || f.cols % pack<T>::N) return false;
    switch (ceil_div(f.cols, pack<T>::N * WARP)) {
    case 1: return by_kind<T, 1>(stream, f), true;
    case 2: return by_kind<T, 2>(stream, f), true;
    case 3: return by_kind<T, 3>(stream, f), true;
    case 4: return by_kind<T, 4>(stream, f), true;
    case 5:
    case 6: return by_kind<T, 6>(stream, f), true;
    case 7:
    case 8: return by_kind<T, 8>(stream, f), true;
    default: return false;
    }
}

template <class T>
static void norm(ses_exec *x, ses_real *y, ses_real *s, ses_real *stat, const ses_real *a,
                 const ses_real *res, const ses_real *gain, const ses_real *bias, int64_t rows, int64_t cols,
                 double eps, const ses_dropout_spec *drop)
{
    norm_args<T> f = { cells<T>(y),
                       cells<T>(s),
                       stat,
                       cells<T>(a),
                       cells<T>(res),
                       gain,
                       bias,
                       rows,
                       cols,
                       (float)eps,
                       dropping_of(drop ? drop->rate : 0),
                       key_of(drop) };
    if (rows <= 0) return;
    bool aligned = whole_packs(y) && whole_packs(s) && whole_packs(a) && whole_packs(res);
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    if (!by_packs(stream, f, aligned)) norm_rows<T><<<(unsigned)ceil_div(rows, WARPS), BLOCK, 0, stream>>>(f);
    launched(x->cuda);
}

void ses_cuda_norm(ses_kernels *k, bool narrow)
{
    k->norm = narrow ? norm<bf16> : norm<float>;
    ses_cuda_norm_bwd(k, narrow);
}
