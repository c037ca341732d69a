/* The way back through norms: rows of whole packs stay in a warp's registers, longer ones in a block's;
 * others are read again from the cache. */
#include "norm_cuda.cuh"

template <class T> struct norm_grad {
    sink<T> da, dres;
    const T *dy, *s;
    const float *stat, *gain;
    int64_t rows, cols;
    dropping drop; /* of what da is the gradient of */
    ses_rng_key key;
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

/* How norm_bwd_blocks is launched; threads 0: not of these columns. */
struct by_blocks {
    unsigned blocks, threads;
};

template <class T> static by_blocks blocks_of(const ses_cuda *g, int64_t rows, int64_t cols, bool aligned)
{
    int64_t warps = ceil_div(cols, (int64_t)WARP * pack<T>::N), all = ceil_div(rows, ROWS);
    by_blocks none = { 0, 0 };
    if (!aligned || cols % pack<T>::N || warps > MOST_WARPS) return none;
    int64_t most = g->cores * (24 / warps); /* what their registers allow a multiprocessor */
    by_blocks p = { (unsigned)(all < most ? all : most), (unsigned)(warps * WARP) };
    return p;
}

/* Rows of whole packs: a block takes ROWS of them at a time, a pack a thread, and goes on, so that gain is
 * read once; on the way a thread adds up its columns for gain and bias. Threads past the end hold zeros. */
template <class T> __global__ void __launch_bounds__(BLOCK, 3) norm_bwd_blocks(norm_grad<T> b)
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

__device__ static inline float2 times(float2 d, float2 gain)
{
    return make_float2(product_of(d.x, gain.x), product_of(d.y, gain.y));
}

__device__ static inline float2 hat(const pack<bf16> &s, int i, float mean, float rstd)
{
    float2 x = two_of(s, i);
    return make_float2((x.x - mean) * rstd, (x.y - mean) * rstd);
}

/* ds of a row's pack at element i to where it belongs. */
template <bool DROP>
__device__ static inline void put_grads(const norm_grad<bf16> &b, int64_t i, float (&ds)[8])
{
    float keep[8];
    auto put = [&](sink<bf16> to) {
        pack<bf16> out;
        if (to.accumulate) return put_pack(to, i, ds);
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

/* A row as norm_packs has it, but a block stays for many. Sums for gain and bias are kept in shared memory,
 * in the order of lanes, by each warp; in the end the warps' are added up. */
template <int K, bool DROP> __global__ void __launch_bounds__(BLOCK, 2) norm_bwd_packs(norm_grad<bf16> b)
{
    enum { N = pack<bf16>::N, FULL = row_packs<K>::FULL, CELLS = K * N * WARP };
    extern __shared__ float2 sums[]; /* [WARPS][K N][WARP]; behind them gain, [K N / 2][WARP] */
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, packs = (int)b.cols / N;
    float2 *gains = sums + WARPS * CELLS, *gain = gains + lane, *sum = sums + warp * CELLS + lane;
    auto in = [=](int k) { return k < FULL || k * WARP + lane < packs; };
    for (int k = 0; k < K * N; k++) sum[k * WARP] = make_float2(0, 0);
    for (int i = threadIdx.x; i < CELLS / 2; i += BLOCK) {
        int j = (i / WARP / (N / 2) * WARP + i % WARP) * N + i / WARP % (N / 2) * 2;
        gains[i] = j < b.cols ? make_float2(b.gain[j], b.gain[j + 1]) : make_float2(0, 0);
    }
    __syncthreads();
    for (int64_t row = (int64_t)blockIdx.x * WARPS + warp; row < b.rows; row += (int64_t)gridDim.x * WARPS) {
        int64_t at = row * b.cols + lane * N;
        pack<bf16> dy[K], s[K];
        float mean = b.stat[2 * row], rstd = b.stat[2 * row + 1], g_sum = 0, gx_sum = 0;
#pragma unroll
        for (int k = 0; k < K; k++)
            if (in(k))
                dy[k] = *(const pack<bf16> *)(b.dy + at + k * WARP * N),
                s[k] = *(const pack<bf16> *)(b.s + at + k * WARP * N);
#pragma unroll
        for (int k = 0; k < K; k++)
#pragma unroll
            for (int i = 0; i < N / 2 && in(k); i++) {
                float2 d = two_of(dy[k], i), x = hat(s[k], i, mean, rstd),
                       g = times(d, gain[(k * 4 + i) * WARP]);
                float2 *to = sum + (k * N + 2 * i) * WARP;
                g_sum += g.x, g_sum += g.y;
                gx_sum += g.x * x.x, gx_sum += g.y * x.y;
                to[0] = plus(to[0], make_float2(d.x * x.x, d.x));
                to[WARP] = plus(to[WARP], make_float2(d.y * x.y, d.y));
            }
        float g_mean = warp_sum(g_sum) / (float)b.cols, gx_mean = warp_sum(gx_sum) / (float)b.cols;
#pragma unroll
        for (int k = 0; k < K; k++) {
            float ds[N];
#pragma unroll
            for (int i = 0; i < N / 2 && in(k); i++) {
                float2 g = times(two_of(dy[k], i), gain[(k * 4 + i) * WARP]), x = hat(s[k], i, mean, rstd);
                ds[2 * i] = rstd * (g.x - g_mean - x.x * gx_mean);
                ds[2 * i + 1] = rstd * (g.y - g_mean - x.y * gx_mean);
            }
            if (in(k)) put_grads<DROP>(b, at + k * WARP * N, ds);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < CELLS && b.part; i += BLOCK) {
        int j = (i / WARP / N * WARP + i % WARP) * N + i / WARP % N;
        float2 total = sums[i];
        for (int w = 1; w < WARPS; w++) total = plus(total, sums[w * CELLS + i]);
        if (j < b.cols) b.part[blockIdx.x * b.cols + j] = total;
    }
}

enum { MOST_PACKS = 4 }; /* a lane: more have no room */

template <int K> static void bwd_packs(ses_cuda *g, unsigned blocks, const norm_grad<bf16> &b)
{
    size_t bytes = (WARPS * 2 + 1) * K * pack<bf16>::N / 2 * WARP * sizeof(float2);
    auto *kernel = b.drop.threshold ? norm_bwd_packs<K, true> : norm_bwd_packs<K, false>;
    ses_cuda_note(g, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    kernel<<<blocks, BLOCK, bytes, ses_cuda_stream(g)>>>(b);
}

/* Blocks for these rows; 0: not of these columns. */
template <class T> static unsigned packs_for(const ses_cuda *g, int64_t rows, int64_t cols, bool aligned)
{
    int64_t all = ceil_div(rows, WARPS), most = 2 * g->cores;
    if (sizeof(T) != sizeof(bf16) || !aligned || cols % 8 || cols > MOST_PACKS * WARP * 8) return 0;
    return (unsigned)(all < most ? all : most);
}

static void bwd_by_packs(ses_cuda *g, unsigned blocks, const norm_grad<bf16> &b)
{
    switch (ceil_div(b.cols, WARP * pack<bf16>::N)) {
    case 1: return bwd_packs<1>(g, blocks, b);
    case 2: return bwd_packs<2>(g, blocks, b);
    case 3: return bwd_packs<3>(g, blocks, b);
    default: return bwd_packs<4>(g, blocks, b);
    }
}
static void bwd_by_packs(ses_cuda *, unsigned, const norm_grad<float> &) {} /* packs_for says 0 */

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
static void norm_bwd(ses_exec *x, ses_dst da, ses_dst dres, ses_real *dgain, ses_real *dbias,
                     const ses_real *dy, const ses_real *s, const ses_real *stat, const ses_real *gain,
                     int64_t rows, int64_t cols, const ses_dropout_spec *drop)
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
                   !(da.data && da.is_f32) && !(dres.data && dres.is_f32);
    by_blocks p = blocks_of<T>(x->cuda, rows, cols, aligned);
    unsigned packs = packs_for<T>(x->cuda, rows, cols, aligned), blocks = packs ? packs : p.blocks;
    if (!blocks) return bwd_by_rows<T>(x, b, dgain, dbias);
    bool sums = dgain || dbias;
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    if (sums) b.part = (float2 *)scratch_lock(x->cuda, (size_t)(blocks * cols) * sizeof *b.part);
    if (sums && !b.part) return;
    if (packs)
        bwd_by_packs(x->cuda, packs, b);
    else
        norm_bwd_blocks<T><<<p.blocks, p.threads, 0, stream>>>(b);
    launched(x->cuda);
    if (!sums) return;
    add_strips2(x, b.part, blocks, cols, dgain, dbias);
    scratch_unlock(x->cuda);
}

void ses_cuda_norm_bwd(ses_kernels *k, bool narrow)
{
    k->norm_bwd = narrow ? norm_bwd<bf16> : norm_bwd<float>;
}
