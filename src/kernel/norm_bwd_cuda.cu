/* The way back through norms: rows of whole packs stay in a warp's registers, where they have room beside the
 * sums for gain and bias, or in a block's; others are read again from the cache. */
#include "norm_cuda.cuh"

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

/* Rows of whole packs: a block takes ROWS of them at a time, a pack a thread, and goes on, so that gain is
 * read once; on the way a thread adds up its columns for gain and bias. Threads past the end hold zeros. */
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

/* ds of a row's pack at element i to where it belongs. */
template <bool DROP>
__device__ static inline void put_grads(const norm_grad<bf16> &b, int64_t i, float (&ds)[8])
{
    float keep[8];
    auto put = [&](sink<bf16> to) {
        pack<bf16> out;
        if (to.add) return put_pack(to, i, ds);
#pragma unroll
        for (int k = 0; k < 4; k++) put_two(out, k, make_float2(ds[2 * k], ds[2 * k + 1]));
        *(pack<bf16> *)(to.data + i) = out;
    };
    if (b.dres.data) put(b.dres);
    if (!b.da.data) return;
    if (DROP) drop_pack<8>(keep, b.key, i, b.drop);
#pragma unroll
    for (int k = 0; k < 8; k++)
        if (DROP) ds[k] *= keep[k];
    put(b.da);
}

/* A row as norm_long has it, but a block stays for many, whose sums for gain and bias its warps add up in the
 * end, one after the other. */
enum { LONG = 3 }; /* packs a lane: for more there are no registers */

template <bool DROP> __global__ void __launch_bounds__(BLOCK, 2) norm_bwd_long(norm_grad<bf16> b)
{
    enum { K = LONG, N = pack<bf16>::N, FULL = row_packs<K>::FULL, COLS = K * WARP * N };
    __shared__ alignas(16) float gain[COLS];
    __shared__ float2 total[COLS];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, packs = (int)b.cols / N;
    auto in = [=](int k) { return k < FULL || k * WARP + lane < packs; };
    float2 sum[K * N] = {};
    for (int j = threadIdx.x; j < b.cols; j += BLOCK) gain[j] = b.gain[j];
    __syncthreads();
    for (int64_t row = (int64_t)blockIdx.x * WARPS + warp; row < b.rows; row += (int64_t)gridDim.x * WARPS) {
        int64_t at = row * b.cols + lane * N;
        pack<bf16> dy[K] = {}, s[K] = {};
#pragma unroll
        for (int k = 0; k < K; k++)
            if (in(k))
                dy[k] = *(const pack<bf16> *)(b.dy + at + k * WARP * N),
                s[k] = *(const pack<bf16> *)(b.s + at + k * WARP * N);
        float mean = b.stat[2 * row], rstd = b.stat[2 * row + 1], g_sum = 0, gx_sum = 0;
        auto each = [&](int k, int i, auto f) { /* f(d, g, xhat, which) of two neighbors */
                                                float2 d = two_of(dy[k], i), x = two_of(s[k], i);
                                                float2 w =
                                                    *(const float2 *)(gain + (k * WARP + lane) * N + 2 * i);
                                                f(d.x, product_of(d.x, w.x), (x.x - mean) * rstd, 2 * i);
                                                f(d.y, product_of(d.y, w.y), (x.y - mean) * rstd, 2 * i + 1);
        };
#pragma unroll
        for (int k = 0; k < K; k++)
#pragma unroll
            for (int i = 0; i < N / 2; i++)
                each(k, i, [&](float d, float g, float xhat, int e) {
                    if (!in(k)) return;
                    g_sum += g;
                    gx_sum += g * xhat;
                    sum[k * N + e] = plus(sum[k * N + e], make_float2(d * xhat, d));
                });
        float g_mean = warp_sum(g_sum) / (float)b.cols, gx_mean = warp_sum(gx_sum) / (float)b.cols;
#pragma unroll
        for (int k = 0; k < K; k++) {
            float ds[N];
#pragma unroll
            for (int i = 0; i < N / 2; i++)
                each(k, i, [&](float, float g, float xhat, int e) {
                    ds[e] = rstd * (g - g_mean - xhat * gx_mean);
                });
            if (in(k)) put_grads<DROP>(b, at + k * WARP * N, ds);
        }
    }
    for (int w = 0; w < WARPS && b.part; w++) {
        __syncthreads();
#pragma unroll
        for (int k = 0; k < K * N; k++) {
            int j = (k / N * WARP + lane) * N + k % N;
            if (w == warp) total[j] = w ? plus(total[j], sum[k]) : sum[k];
        }
    }
    __syncthreads();
    for (int j = threadIdx.x; j < b.cols && b.part; j += BLOCK) b.part[blockIdx.x * b.cols + j] = total[j];
}

/* Blocks for rows as norm_bwd_long takes them; 0: not of these columns. */
template <class T> static unsigned long_for(const ses_cuda *g, int64_t rows, int64_t cols, bool aligned)
{
    int64_t all = ceil_div(rows, WARPS), most = 2 * g->cores;
    if (sizeof(T) != sizeof(bf16) || !aligned || cols % 8 || cols > LONG * WARP * 8) return 0;
    return (unsigned)(all < most ? all : most);
}

static void bwd_by_long_rows(cudaStream_t stream, unsigned blocks, const norm_grad<bf16> &b)
{
    b.drop.threshold ? norm_bwd_long<true><<<blocks, BLOCK, 0, stream>>>(b)
                     : norm_bwd_long<false><<<blocks, BLOCK, 0, stream>>>(b);
}
static void bwd_by_long_rows(cudaStream_t, unsigned, const norm_grad<float> &) {} /* long_for says 0 */

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
    unsigned warps = warps_for(x->cuda, rows, cols, aligned, 2);
    unsigned lengthy = warps ? 0 : long_for<T>(x->cuda, rows, cols, aligned);
    unsigned blocks = warps ? warps : lengthy ? lengthy : p.blocks;
    if (!blocks) return bwd_by_rows<T>(x, b, dgain, dbias);
    bool sums = dgain || dbias;
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    if (sums) b.part = (float2 *)scratch_lock(x->cuda, (size_t)(blocks * cols) * sizeof *b.part);
    if (sums && !b.part) return;
    if (warps)
        by_quads(cols,
                 [&](auto K) { norm_bwd_warps<T, decltype(K)::value><<<warps, BLOCK, 0, stream>>>(b); });
    else if (lengthy)
        bwd_by_long_rows(stream, lengthy, b);
    else
        norm_bwd_packs<T><<<p.blocks, p.threads, 0, stream>>>(b);
    launched(x->cuda);
    if (!sums) return;
    add_strips2(x, b.part, blocks, cols, dgain, dbias);
    scratch_unlock(x->cuda);
}

void ses_cuda_norm_bwd(ses_kernels *k, bool narrow)
{
    k->norm_bwd = narrow ? norm_bwd<bf16> : norm_bwd<float>;
}
