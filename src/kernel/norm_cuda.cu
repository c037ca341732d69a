/* A warp a row. Rows of whole packs, up to 4 a lane, stay in registers; others are read again from the
 * cache. */
#include "reduce_cuda.cuh"

template <class T> struct norm_args {
    T *y, *s;
    float *stat;
    const T *a, *res;
    const float *gain, *bias;
    int64_t rows, cols;
    float eps;
    dropping drop; /* of a */
    ses_key key;
};

static ses_key key_of(const ses_drop *d)
{
    ses_key none = { 0, 0, 0 };
    return d ? d->key : none;
}

/* s as it is or would be stored: the result is the same with and without storing it. */
template <class T> __device__ static inline float sum_at(const norm_args<T> &f, int64_t i)
{
    float a = num(f.a[i]);
    if (f.drop.threshold) a *= kept(f.key, (uint64_t)i, f.drop.threshold, f.drop.scale);
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

/* P packs a lane at most; lanes past the end hold nothing. */
template <class T, int P> __global__ void norm_packs(norm_args<T> f)
{
    enum { N = pack<T>::N };
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    int lane = threadIdx.x % WARP;
    if (row >= f.rows) return;
    int64_t at = row * f.cols;
    float v[P][N], sum = 0, squares = 0;
    for (int p = 0; p < P; p++) {
        int64_t j = (int64_t)(p * WARP + lane) * N;
        if (j >= f.cols) break;
        pack<T> a = *(const pack<T> *)(f.a + at + j), r;
        if (f.res) r = *(const pack<T> *)(f.res + at + j);
        if (f.drop.threshold) {
            float keep[N];
            drop_pack<N>(keep, f.key, at + j, f.drop);
            for (int k = 0; k < N; k++)
                a.at[k] = cell<T>(keep[k] * num(a.at[k]) + (f.res ? num(r.at[k]) : 0));
        } else if (f.res) {
            for (int k = 0; k < N; k++) a.at[k] = cell<T>(num(a.at[k]) + num(r.at[k]));
        }
        if (f.s) *(pack<T> *)(f.s + at + j) = a;
        for (int k = 0; k < N; k++) v[p][k] = num(a.at[k]), sum += v[p][k];
    }
    float mean = warp_sum(sum) / (float)f.cols;
    for (int p = 0; p < P; p++) {
        if ((int64_t)(p * WARP + lane) * N >= f.cols) break;
        for (int k = 0; k < N; k++) squares += (v[p][k] - mean) * (v[p][k] - mean);
    }
    float rstd = 1 / sqrtf(warp_sum(squares) / (float)f.cols + f.eps);
    for (int p = 0; p < P; p++) {
        int64_t j = (int64_t)(p * WARP + lane) * N;
        if (j >= f.cols) break;
        pack<T> y;
        for (int k = 0; k < N; k++)
            y.at[k] = cell<T>((v[p][k] - mean) * rstd * f.gain[j + k] + f.bias[j + k]);
        *(pack<T> *)(f.y + at + j) = y;
    }
    put_stat(f, row, mean, rstd);
}

/* Packs a lane needs for so many columns; 0: not by packs. */
template <class T> static int64_t packs_a_lane(int64_t cols, bool aligned)
{
    int64_t n = ceil_div(cols, (int64_t)WARP * pack<T>::N);
    return aligned && cols % pack<T>::N == 0 && n <= 4 ? n : 0;
}

template <class T>
static void norm(ses_exec *x, ses_real *y, ses_real *s, ses_real *stat, const ses_real *a,
                 const ses_real *res, const ses_real *gain, const ses_real *bias, int64_t rows, int64_t cols,
                 double eps, const ses_drop *drop)
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
    unsigned blocks = (unsigned)ceil_div(rows, WARPS);
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    switch (packs_a_lane<T>(cols, aligned)) {
    case 1: norm_packs<T, 1><<<blocks, BLOCK, 0, stream>>>(f); break;
    case 2: norm_packs<T, 2><<<blocks, BLOCK, 0, stream>>>(f); break;
    case 3: norm_packs<T, 3><<<blocks, BLOCK, 0, stream>>>(f); break;
    case 4: norm_packs<T, 4><<<blocks, BLOCK, 0, stream>>>(f); break;
    default: norm_rows<T><<<blocks, BLOCK, 0, stream>>>(f);
    }
    launched(x->cuda);
}

template <class T> struct norm_grad {
    sink<T> da, dres;
    const T *dy, *s;
    const float *stat, *gain;
    int64_t rows, cols;
    dropping drop; /* of what da is the gradient of */
    ses_key key;
    float2 *part; /* NULL, or [blocks][cols]: each block's sums for the gradients of gain and bias */
};

/* A product that stays one: contracted into the subtraction that follows, a row of one column would not give
 * 0. */
__device__ static inline float product_of(float dy, float gain) { return __fmul_rn(dy, gain); }

/* With g = dy gain and xhat = (s - mean) rstd: ds = rstd (g - mean(g) - xhat mean(g xhat)). */
template <class T> __global__ void norm_bwd_rows(norm_grad<T> b)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    int lane = threadIdx.x % WARP;
    if (row >= b.rows) return;
    int64_t at = row * b.cols;
    float mean = b.stat[2 * row], rstd = b.stat[2 * row + 1], g_sum = 0, gx_sum = 0;
    for (int64_t j = lane; j < b.cols; j += WARP) {
        float g = product_of(num(b.dy[at + j]), b.gain[j]);
        g_sum += g;
        gx_sum += g * (num(b.s[at + j]) - mean) * rstd;
    }
    float g_mean = warp_sum(g_sum) / (float)b.cols, gx_mean = warp_sum(gx_sum) / (float)b.cols;
    for (int64_t j = lane; j < b.cols; j += WARP) {
        float g = product_of(num(b.dy[at + j]), b.gain[j]), xhat = (num(b.s[at + j]) - mean) * rstd;
        float ds = rstd * (g - g_mean - xhat * gx_mean), keep = 1;
        if (b.drop.threshold) keep = kept(b.key, (uint64_t)(at + j), b.drop.threshold, b.drop.scale);
        if (b.dres.data) put(b.dres, at + j, ds);
        if (b.da.data) put(b.da, at + j, keep * ds);
    }
}

template <class T> __device__ static inline void put_pack(sink<T> to, int64_t i, const float *v)
{
    enum { N = pack<T>::N };
    pack<T> out;
    if (to.add) out = *(const pack<T> *)(to.data + i);
    for (int k = 0; k < N; k++) out.at[k] = cell<T>(to.add ? num(out.at[k]) + v[k] : v[k]);
    *(pack<T> *)(to.data + i) = out;
}

/* The warps' sums one after the other, so that their order is fixed, to the block's row of part. */
template <class T, int P>
__device__ static inline void put_sums(const norm_grad<T> &b, const float2 (&sum)[P][pack<T>::N])
{
    enum { N = pack<T>::N };
    __shared__ float2 total[P * WARP * N];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (int w = 0; w < WARPS; w++) {
        if (warp == w)
#pragma unroll
            for (int p = 0; p < P; p++)
#pragma unroll
                for (int k = 0; k < N; k++) {
                    float2 &to = total[(p * WARP + lane) * N + k], from = sum[p][k];
                    to = w ? plus(to, from) : from;
                }
        __syncthreads();
    }
    for (int64_t j = threadIdx.x; j < b.cols; j += BLOCK) b.part[blockIdx.x * b.cols + j] = total[j];
}

/* P packs a lane; a warp takes every so many rows, so that it can add up for gain and bias on its way. */
template <class T, int P> __global__ void __launch_bounds__(BLOCK, 2) norm_bwd_packs(norm_grad<T> b)
{
    enum { N = pack<T>::N };
    int lane = threadIdx.x % WARP;
    float2 sum[P][N] = {};
    int64_t step = (int64_t)gridDim.x * WARPS;
    for (int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP; row < b.rows; row += step) {
        int64_t at = row * b.cols;
        float mean = b.stat[2 * row], rstd = b.stat[2 * row + 1], g_sum = 0, gx_sum = 0;
        pack<T> dy[P], s[P];
#pragma unroll
        for (int p = 0; p < P; p++) {
            int64_t j = (int64_t)(p * WARP + lane) * N;
            if (j < b.cols)
                dy[p] = *(const pack<T> *)(b.dy + at + j), s[p] = *(const pack<T> *)(b.s + at + j);
        }
#pragma unroll
        for (int p = 0; p < P; p++) {
            int64_t j = (int64_t)(p * WARP + lane) * N;
            if (j >= b.cols) break;
#pragma unroll
            for (int k = 0; k < N; k++) {
                float d = num(dy[p].at[k]), g = product_of(d, b.gain[j + k]);
                float xhat = (num(s[p].at[k]) - mean) * rstd;
                g_sum += g;
                gx_sum += g * xhat;
                sum[p][k] = plus(sum[p][k], make_float2(d * xhat, d));
            }
        }
        float g_mean = warp_sum(g_sum) / (float)b.cols, gx_mean = warp_sum(gx_sum) / (float)b.cols;
#pragma unroll
        for (int p = 0; p < P; p++) {
            int64_t j = (int64_t)(p * WARP + lane) * N;
            if (j >= b.cols) break;
            float ds[N];
#pragma unroll
            for (int k = 0; k < N; k++) {
                float g = product_of(num(dy[p].at[k]), b.gain[j + k]), xhat = (num(s[p].at[k]) - mean) * rstd;
                ds[k] = rstd * (g - g_mean - xhat * gx_mean);
            }
            if (b.dres.data) put_pack(b.dres, at + j, ds);
            if (!b.da.data) continue;
            if (b.drop.threshold) {
                float keep[N];
                drop_pack<N>(keep, b.key, at + j, b.drop);
#pragma unroll
                for (int k = 0; k < N; k++) ds[k] *= keep[k];
            }
            put_pack(b.da, at + j, ds);
        }
    }
    if (b.part) put_sums<T, P>(b, sum);
}

template <class T>
static void launch_packs(const norm_grad<T> &b, int64_t packs, unsigned blocks, cudaStream_t stream)
{
    switch (packs) {
    case 1: norm_bwd_packs<T, 1><<<blocks, BLOCK, 0, stream>>>(b); break;
    case 2: norm_bwd_packs<T, 2><<<blocks, BLOCK, 0, stream>>>(b); break;
    case 3: norm_bwd_packs<T, 3><<<blocks, BLOCK, 0, stream>>>(b); break;
    default: norm_bwd_packs<T, 4><<<blocks, BLOCK, 0, stream>>>(b);
    }
}

/* Two passes: the sums over rows come first, for da may be dy. */
template <class T> static void bwd_by_rows(ses_exec *x, const norm_grad<T> &b, float *dgain, float *dbias)
{
    const T *dy = b.dy, *s = b.s;
    const float *stat = b.stat;
    int64_t cols = b.cols;
    if (dgain || dbias)
        sum_columns2(x, dgain, dbias, b.rows, cols, [=] __device__(int64_t row, int64_t j) {
            float d = num(dy[row * cols + j]);
            return make_float2(d * (num(s[row * cols + j]) - stat[2 * row]) * stat[2 * row + 1], d);
        });
    if (!b.da.data && !b.dres.data) return;
    norm_bwd_rows<T><<<(unsigned)ceil_div(b.rows, WARPS), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(b);
    launched(x->cuda);
}

template <class T>
static void norm_bwd(ses_exec *x, ses_sink da, ses_sink dres, ses_real *dgain, ses_real *dbias,
                     const ses_real *dy, const ses_real *s, const ses_real *stat, const ses_real *gain,
                     int64_t rows, int64_t cols, const ses_drop *drop)
{
    norm_grad<T> b = { sink_of<T>(da),
                       sink_of<T>(dres),
                       cells<T>(dy),
                       cells<T>(s),
                       stat,
                       gain,
                       rows,
                       cols,
                       dropping_of(drop ? drop->rate : 0),
                       key_of(drop),
                       NULL };
    if (rows <= 0) return;
    bool aligned = whole_packs(da.data) && whole_packs(dres.data) && whole_packs(dy) && whole_packs(s) &&
                   !(da.data && da.wide) && !(dres.data && dres.wide);
    int64_t packs = packs_a_lane<T>(cols, aligned);
    if (!packs) return bwd_by_rows<T>(x, b, dgain, dbias);
    int64_t all = ceil_div(rows, WARPS), most = 2 * (int64_t)x->cuda->cores, blocks = all < most ? all : most;
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    if (!dgain && !dbias) {
        launch_packs<T>(b, packs, (unsigned)blocks, stream);
        launched(x->cuda);
        return;
    }
    b.part = (float2 *)scratch_lock(x->cuda, (size_t)(blocks * cols) * sizeof *b.part);
    if (!b.part) return;
    launch_packs<T>(b, packs, (unsigned)blocks, stream);
    launched(x->cuda);
    add_strips2(x, b.part, blocks, cols, dgain, dbias);
    scratch_unlock(x->cuda);
}

void ses_cuda_norm(ses_kernels *k, bool narrow)
{
    k->norm = narrow ? norm<bf16> : norm<float>;
    k->norm_bwd = narrow ? norm_bwd<bf16> : norm_bwd<float>;
}
