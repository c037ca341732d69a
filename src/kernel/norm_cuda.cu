/* Short rows stay in a warp's registers, longer ones of whole packs in a block's; others are a warp's, which
 * reads them again from the cache. */
#include "reduce_cuda.cuh"

#include <type_traits>

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

/* Rows of whole packs: a block takes ROWS of them at a time, a pack a thread, and goes on to the next, so
 * that gain and bias are read once. Threads past the end of a row hold zeros. */
enum { ROWS = 2, MOST_WARPS = 8 };

/* The sums of v[r] over the block, to all its threads; `turn` alternates, so that one barrier is enough. */
__device__ static inline void sum_rows_of(float v[ROWS], float (&part)[2][ROWS][MOST_WARPS], int turn)
{
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        v[r] = warp_sum(v[r]);
        if (lane == 0) part[turn][r][warp] = v[r];
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        v[r] = part[turn][r][0];
        for (int w = 1; w < warps; w++) v[r] += part[turn][r][w];
    }
}

template <class T> __global__ void __launch_bounds__(BLOCK, 3) norm_packs(norm_args<T> f)
{
    enum { N = pack<T>::N };
    __shared__ float part[2][ROWS][MOST_WARPS];
    int64_t j = threadIdx.x * N, step = (int64_t)gridDim.x * ROWS;
    bool mine = j < f.cols;
    float gain[N], bias[N];
#pragma unroll
    for (int k = 0; k < N; k++) gain[k] = mine ? f.gain[j + k] : 0, bias[k] = mine ? f.bias[j + k] : 0;
    for (int64_t first = (int64_t)blockIdx.x * ROWS; first < f.rows; first += step) {
        pack<T> s[ROWS], res[ROWS];
        float mean[ROWS] = {}, square[ROWS] = {};
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            int64_t at = (first + r) * f.cols + j;
            if (!mine || first + r >= f.rows) continue;
            s[r] = *(const pack<T> *)(f.a + at);
            if (f.res) res[r] = *(const pack<T> *)(f.res + at);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            int64_t at = (first + r) * f.cols + j;
            if (!mine || first + r >= f.rows) continue;
            float keep[N];
            if (f.drop.threshold) drop_pack<N>(keep, f.key, at, f.drop);
#pragma unroll
            for (int k = 0; k < N; k++) {
                float v = num(s[r].at[k]);
                if (f.drop.threshold) v = keep[k] > 0 ? v * keep[k] : 0;
                if (f.res) v += num(res[r].at[k]);
                s[r].at[k] = cell<T>(v);
                mean[r] += num(s[r].at[k]);
            }
            if (f.s) *(pack<T> *)(f.s + at) = s[r];
        }
        sum_rows_of(mean, part, 0);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            mean[r] /= (float)f.cols;
            if (!mine || first + r >= f.rows) continue;
#pragma unroll
            for (int k = 0; k < N; k++) {
                float d = num(s[r].at[k]) - mean[r];
                square[r] += d * d;
            }
        }
        sum_rows_of(square, part, 1);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            int64_t row = first + r;
            if (row >= f.rows) continue;
            float rstd = 1 / sqrtf(square[r] / (float)f.cols + f.eps);
            if (f.stat && threadIdx.x == 0) f.stat[2 * row] = mean[r], f.stat[2 * row + 1] = rstd;
            if (!mine) continue;
            pack<T> y;
#pragma unroll
            for (int k = 0; k < N; k++)
                y.at[k] = cell<T>((num(s[r].at[k]) - mean[r]) * rstd * gain[k] + bias[k]);
            *(pack<T> *)(f.y + row * f.cols + j) = y;
        }
    }
}

/* Rows of up to MOST_QUADS times 128 columns: a warp takes PAIR of them at a time, K fours of neighbors a
 * lane, and waits for nobody. */
enum { MOST_QUADS = 4, PAIR = 2, QUAD_COLS = 4 * WARP };

template <class T> struct alignas(4 * sizeof(T)) quad {
    T at[4];
};

template <class T> __device__ static inline void put_quad(sink<T> to, int64_t i, const float *v)
{
    quad<T> out;
    if (to.add) out = *(const quad<T> *)(to.data + i);
#pragma unroll
    for (int k = 0; k < 4; k++) out.at[k] = cell<T>(to.add ? num(out.at[k]) + v[k] : v[k]);
    *(quad<T> *)(to.data + i) = out;
}

/* s of four neighbors from i on, stored where it is wanted. */
template <class T>
__device__ static inline quad<T> quad_sum(const norm_args<T> &f, quad<T> a, quad<T> res, int64_t i)
{
    float keep[4];
    if (f.drop.threshold) drop_pack<4>(keep, f.key, i, f.drop);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float v = num(a.at[k]);
        if (f.drop.threshold) v = keep[k] > 0 ? v * keep[k] : 0;
        if (f.res) v += num(res.at[k]);
        a.at[k] = cell<T>(v);
    }
    if (f.s) *(quad<T> *)(f.s + i) = a;
    return a;
}

template <class T, int K> __global__ void __launch_bounds__(BLOCK, 2) norm_warps(norm_args<T> f)
{
    int lane = threadIdx.x % WARP;
    int64_t first = ((int64_t)blockIdx.x * WARPS + threadIdx.x / WARP) * PAIR;
    float gain[4 * K], bias[4 * K];
#pragma unroll
    for (int k = 0; k < 4 * K; k++) {
        int j = (k / 4 * WARP + lane) * 4 + k % 4;
        gain[k] = f.gain[j], bias[k] = f.bias[j];
    }
    for (; first < f.rows; first += (int64_t)gridDim.x * WARPS * PAIR) {
        quad<T> s[PAIR][K], res[PAIR][K];
        float mean[PAIR] = {}, square[PAIR] = {};
#pragma unroll
        for (int r = 0; r < PAIR; r++)
#pragma unroll
            for (int k = 0; k < K; k++) {
                int64_t at = (first + r) * f.cols + (k * WARP + lane) * 4;
                if (first + r >= f.rows) continue;
                s[r][k] = *(const quad<T> *)(f.a + at);
                if (f.res) res[r][k] = *(const quad<T> *)(f.res + at);
            }
#pragma unroll
        for (int r = 0; r < PAIR; r++) {
            int64_t row = first + r;
            if (row >= f.rows) continue; /* the whole warp */
#pragma unroll
            for (int k = 0; k < 4 * K; k++) {
                if (k % 4 == 0)
                    s[r][k / 4] =
                        quad_sum(f, s[r][k / 4], res[r][k / 4], row * f.cols + (k / 4 * WARP + lane) * 4);
                mean[r] += num(s[r][k / 4].at[k % 4]);
            }
            mean[r] = warp_sum(mean[r]) / (float)f.cols;
#pragma unroll
            for (int k = 0; k < 4 * K; k++) {
                float d = num(s[r][k / 4].at[k % 4]) - mean[r];
                square[r] += d * d;
            }
            float rstd = 1 / sqrtf(warp_sum(square[r]) / (float)f.cols + f.eps);
            put_stat(f, row, mean[r], rstd);
#pragma unroll
            for (int k = 0; k < K; k++) {
                quad<T> y;
#pragma unroll
                for (int i = 0; i < 4; i++)
                    y.at[i] =
                        cell<T>((num(s[r][k].at[i]) - mean[r]) * rstd * gain[4 * k + i] + bias[4 * k + i]);
                *(quad<T> *)(f.y + row * f.cols + (k * WARP + lane) * 4) = y;
            }
        }
    }
}

/* Blocks for so many rows, a few a multiprocessor; 0: not of these columns. */
static unsigned warps_for(const ses_cuda *g, int64_t rows, int64_t cols, bool aligned, int blocks)
{
    int64_t all = ceil_div(rows, WARPS * PAIR), most = (int64_t)g->cores * blocks;
    if (!aligned || cols % QUAD_COLS || cols > MOST_QUADS * QUAD_COLS) return 0;
    return (unsigned)(all < most ? all : most);
}

/* f(K) for the K of so many columns. */
template <class F> static void by_quads(int64_t cols, F f)
{
    switch (cols / QUAD_COLS) {
    case 1: return f(std::integral_constant<int, 1>());
    case 2: return f(std::integral_constant<int, 2>());
    case 3: return f(std::integral_constant<int, 3>());
    default: return f(std::integral_constant<int, 4>());
    }
}

/* How a kernel over packs is launched; threads 0: not of these columns. */
struct by_packs {
    unsigned blocks, threads;
};

template <class T> static by_packs packs_for(const ses_cuda *g, int64_t rows, int64_t cols, bool aligned)
{
    int64_t warps = ceil_div(cols, (int64_t)WARP * pack<T>::N), all = ceil_div(rows, ROWS);
    by_packs none = { 0, 0 };
    if (!aligned || cols % pack<T>::N || warps > MOST_WARPS) return none;
    int64_t most = g->cores * (24 / warps); /* what their registers allow a multiprocessor */
    by_packs p = { (unsigned)(all < most ? all : most), (unsigned)(warps * WARP) };
    return p;
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
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    by_packs p = packs_for<T>(x->cuda, rows, cols, aligned);
    unsigned warps = warps_for(x->cuda, rows, cols, aligned, 2);
    if (warps)
        by_quads(cols, [&](auto K) { norm_warps<T, decltype(K)::value><<<warps, BLOCK, 0, stream>>>(f); });
    else if (p.threads)
        norm_packs<T><<<p.blocks, p.threads, 0, stream>>>(f);
    else
        norm_rows<T><<<(unsigned)ceil_div(rows, WARPS), BLOCK, 0, stream>>>(f);
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

/* As norm_packs; on the way a thread adds up its columns for gain and bias. */
template <class T> __global__ void __launch_bounds__(BLOCK, 3) norm_bwd_packs(norm_grad<T> b)
{
    enum { N = pack<T>::N };
    __shared__ float part[2][ROWS][MOST_WARPS], part_x[2][ROWS][MOST_WARPS];
    int64_t j = threadIdx.x * N, step = (int64_t)gridDim.x * ROWS;
    bool mine = j < b.cols;
    float gain[N];
    float2 sum[N] = {};
    int turn = 0;
#pragma unroll
    for (int k = 0; k < N; k++) gain[k] = mine ? b.gain[j + k] : 0;
    for (int64_t first = (int64_t)blockIdx.x * ROWS; first < b.rows; first += step, turn ^= 1) {
        pack<T> dy[ROWS], s[ROWS];
        float mean[ROWS], rstd[ROWS], g_sum[ROWS] = {}, gx_sum[ROWS] = {};
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            int64_t row = first + r, at = row * b.cols + j;
            if (row >= b.rows) continue;
            mean[r] = b.stat[2 * row], rstd[r] = b.stat[2 * row + 1];
            if (mine) dy[r] = *(const pack<T> *)(b.dy + at), s[r] = *(const pack<T> *)(b.s + at);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (!mine || first + r >= b.rows) continue;
#pragma unroll
            for (int k = 0; k < N; k++) {
                float d = num(dy[r].at[k]), g = product_of(d, gain[k]);
                float xhat = (num(s[r].at[k]) - mean[r]) * rstd[r];
                g_sum[r] += g;
                gx_sum[r] += g * xhat;
                sum[k] = plus(sum[k], make_float2(d * xhat, d));
            }
        }
        sum_rows_of(g_sum, part, turn);
        sum_rows_of(gx_sum, part_x, turn);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            int64_t at = (first + r) * b.cols + j;
            if (!mine || first + r >= b.rows) continue;
            float ds[N], g_mean = g_sum[r] / (float)b.cols, gx_mean = gx_sum[r] / (float)b.cols;
#pragma unroll
            for (int k = 0; k < N; k++) {
                float g = product_of(num(dy[r].at[k]), gain[k]);
                ds[k] = rstd[r] * (g - g_mean - (num(s[r].at[k]) - mean[r]) * rstd[r] * gx_mean);
            }
            if (b.dres.data) put_pack(b.dres, at, ds);
            if (!b.da.data) continue;
            if (b.drop.threshold) {
                float keep[N];
                drop_pack<N>(keep, b.key, at, b.drop);
#pragma unroll
                for (int k = 0; k < N; k++) ds[k] *= keep[k];
            }
            put_pack(b.da, at, ds);
        }
    }
    for (int k = 0; k < N && mine && b.part; k++) b.part[blockIdx.x * b.cols + j + k] = sum[k];
}

/* As norm_warps; at the end the warps of a block add up their columns for gain and bias. */
template <class T, int K> __global__ void __launch_bounds__(BLOCK, 2) norm_bwd_warps(norm_grad<T> b)
{
    __shared__ float2 sums[WARPS][K * QUAD_COLS];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64_t first = ((int64_t)blockIdx.x * WARPS + warp) * PAIR;
    float gain[4 * K];
    float2 sum[4 * K] = {};
#pragma unroll
    for (int k = 0; k < 4 * K; k++) gain[k] = b.gain[(k / 4 * WARP + lane) * 4 + k % 4];
    for (; first < b.rows; first += (int64_t)gridDim.x * WARPS * PAIR) {
        quad<T> dy[PAIR][K], s[PAIR][K];
#pragma unroll
        for (int r = 0; r < PAIR; r++)
#pragma unroll
            for (int k = 0; k < K; k++) {
                int64_t at = (first + r) * b.cols + (k * WARP + lane) * 4;
                if (first + r >= b.rows) continue;
                dy[r][k] = *(const quad<T> *)(b.dy + at), s[r][k] = *(const quad<T> *)(b.s + at);
            }
#pragma unroll
        for (int r = 0; r < PAIR; r++) {
            int64_t row = first + r;
            if (row >= b.rows) continue; /* the whole warp */
            float mean = b.stat[2 * row], rstd = b.stat[2 * row + 1], g_sum = 0, gx_sum = 0;
#pragma unroll
            for (int k = 0; k < 4 * K; k++) {
                float d = num(dy[r][k / 4].at[k % 4]), g = product_of(d, gain[k]);
                float xhat = (num(s[r][k / 4].at[k % 4]) - mean) * rstd;
                g_sum += g;
                gx_sum += g * xhat;
                sum[k] = plus(sum[k], make_float2(d * xhat, d));
            }
            float g_mean = warp_sum(g_sum) / (float)b.cols, gx_mean = warp_sum(gx_sum) / (float)b.cols;
#pragma unroll
            for (int k = 0; k < K; k++) {
                int64_t at = row * b.cols + (k * WARP + lane) * 4;
                float ds[4], keep[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    float g = product_of(num(dy[r][k].at[i]), gain[4 * k + i]);
                    ds[i] = rstd * (g - g_mean - (num(s[r][k].at[i]) - mean) * rstd * gx_mean);
                }
                if (b.dres.data) put_quad(b.dres, at, ds);
                if (!b.da.data) continue;
                if (b.drop.threshold) drop_pack<4>(keep, b.key, at, b.drop);
#pragma unroll
                for (int i = 0; i < 4; i++)
                    if (b.drop.threshold) ds[i] *= keep[i];
                put_quad(b.da, at, ds);
            }
        }
    }
    if (!b.part) return;
#pragma unroll
    for (int k = 0; k < 4 * K; k++) sums[warp][(k / 4 * WARP + lane) * 4 + k % 4] = sum[k];
    __syncthreads();
    for (int j = threadIdx.x; j < K * QUAD_COLS; j += BLOCK) {
        float2 total = sums[0][j];
        for (int w = 1; w < WARPS; w++) total = plus(total, sums[w][j]);
        b.part[blockIdx.x * b.cols + j] = total;
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
    by_packs p = packs_for<T>(x->cuda, rows, cols, aligned);
    unsigned warps = warps_for(x->cuda, rows, cols, aligned, 2), blocks = warps ? warps : p.blocks;
    if (!blocks) return bwd_by_rows<T>(x, b, dgain, dbias);
    bool sums = dgain || dbias;
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    if (sums) b.part = (float2 *)scratch_lock(x->cuda, (size_t)(blocks * cols) * sizeof *b.part);
    if (sums && !b.part) return;
    if (warps)
        by_quads(cols,
                 [&](auto K) { norm_bwd_warps<T, decltype(K)::value><<<warps, BLOCK, 0, stream>>>(b); });
    else
        norm_bwd_packs<T><<<p.blocks, p.threads, 0, stream>>>(b);
    launched(x->cuda);
    if (!sums) return;
    add_strips2(x, b.part, blocks, cols, dgain, dbias);
    scratch_unlock(x->cuda);
}

void ses_cuda_norm(ses_kernels *k, bool narrow)
{
    k->norm = narrow ? norm<bf16> : norm<float>;
    k->norm_bwd = narrow ? norm_bwd<bf16> : norm_bwd<float>;
}
