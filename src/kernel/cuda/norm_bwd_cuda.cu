/* Layer norm, backward pass. Aligned rows stay in the registers of a warp, longer ones in the registers of a
 * block; other rows are read again from the cache. */
#include "norm_cuda.cuh"

template <class T> struct norm_grad {
    dst<T> da, dres;
    const T *dy, *s;
    const float *stat, *gain;
    int64_t rows, cols;
    dropout_params drop; /* dropout of a, the input of the forward pass */
    ses_rng_key key;
    float2 *part; /* NULL, or [blocks][cols]: partial sums of dgain and dbias per block */
};

/* A product that is not contracted into the following subtraction: otherwise a row of one column would not
 * give 0. */
__device__ static inline float mul_no_fma(float dy, float gain) { return __fmul_rn(dy, gain); }

/* ds = rstd (g - mean(g) - xhat mean(g xhat)), g = dy gain, xhat = (s - mean) rstd. */
template <class T> __global__ void norm_bwd_rows(norm_grad<T> b)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    int lane = threadIdx.x % WARP;
    if (row >= b.rows) return;
    int64_t at = row * b.cols;
    float mean = b.stat[2 * row], rstd = b.stat[2 * row + 1], g_sum = 0, gx_sum = 0;
    for (int64_t j = lane; j < b.cols; j += WARP) {
        float g = mul_no_fma(to_float(b.dy[at + j]), b.gain[j]);
        g_sum += g;
        gx_sum += g * (to_float(b.s[at + j]) - mean) * rstd;
    }
    float g_mean = warp_sum(g_sum) / (float)b.cols, gx_mean = warp_sum(gx_sum) / (float)b.cols;
    for (int64_t j = lane; j < b.cols; j += WARP) {
        float g = mul_no_fma(to_float(b.dy[at + j]), b.gain[j]), xhat = (to_float(b.s[at + j]) - mean) * rstd;
        float ds = rstd * (g - g_mean - xhat * gx_mean), keep = 1;
        if (b.drop.threshold) keep = drop_factor(b.key, (uint64_t)(at + j), b.drop.threshold, b.drop.scale);
        if (b.dres.data) store(b.dres, at + j, ds);
        if (b.da.data) store(b.da, at + j, keep * ds);
    }
}

enum { ROWS = 2, MAX_WARPS = 8 };

/* Block-wide sums of v[r], returned to all threads. `parity` alternates, so that one barrier is enough. */
__device__ static inline void sum_rows_of(float v[ROWS], float (&part)[2][ROWS][MAX_WARPS], int parity)
{
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        v[r] = warp_sum(v[r]);
        if (lane == 0) part[parity][r][warp] = v[r];
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        v[r] = part[parity][r][0];
        for (int w = 1; w < warps; w++) v[r] += part[parity][r][w];
    }
}

/* Launch configuration of norm_bwd_blocks; threads 0: these columns are not supported. */
struct launch_config {
    unsigned blocks, threads;
};

template <class T>
static launch_config block_config(const ses_cuda *g, int64_t rows, int64_t cols, bool aligned)
{
    int64_t warps = ceil_div(cols, (int64_t)WARP * vec16<T>::N), all = ceil_div(rows, ROWS);
    launch_config none = { 0, 0 };
    if (!aligned || cols % vec16<T>::N || warps > MAX_WARPS) return none;
    int64_t max_blocks = g->sm_count * (24 / warps); /* limited by registers */
    launch_config p = { (unsigned)(all < max_blocks ? all : max_blocks), (unsigned)(warps * WARP) };
    return p;
}

/* Aligned rows: a block processes ROWS rows at a time, 16 bytes per thread, and loops, so that gain is read
 * once. A thread also sums its columns for gain and bias. Threads past the end hold zeros. */
template <class T> __global__ void __launch_bounds__(BLOCK, 3) norm_bwd_blocks(norm_grad<T> b)
{
    enum { N = vec16<T>::N };
    __shared__ float part[2][ROWS][MAX_WARPS], part_x[2][ROWS][MAX_WARPS];
    int64_t j = threadIdx.x * N, step = (int64_t)gridDim.x * ROWS;
    bool mine = j < b.cols;
    float gain[N];
    float2 sum[N] = {};
    int parity = 0;
#pragma unroll
    for (int k = 0; k < N; k++) gain[k] = mine ? b.gain[j + k] : 0;
    for (int64_t first = (int64_t)blockIdx.x * ROWS; first < b.rows; first += step, parity ^= 1) {
        vec16<T> dy[ROWS], s[ROWS];
        float mean[ROWS], rstd[ROWS], g_sum[ROWS] = {}, gx_sum[ROWS] = {};
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            int64_t row = first + r, at = row * b.cols + j;
            if (row >= b.rows) continue;
            mean[r] = b.stat[2 * row], rstd[r] = b.stat[2 * row + 1];
            if (mine) dy[r] = *(const vec16<T> *)(b.dy + at), s[r] = *(const vec16<T> *)(b.s + at);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (!mine || first + r >= b.rows) continue;
#pragma unroll
            for (int k = 0; k < N; k++) {
                float d = to_float(dy[r].at[k]), g = mul_no_fma(d, gain[k]);
                float xhat = (to_float(s[r].at[k]) - mean[r]) * rstd[r];
                g_sum[r] += g;
                gx_sum[r] += g * xhat;
                sum[k] = plus(sum[k], make_float2(d * xhat, d));
            }
        }
        sum_rows_of(g_sum, part, parity);
        sum_rows_of(gx_sum, part_x, parity);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            int64_t at = (first + r) * b.cols + j;
            if (!mine || first + r >= b.rows) continue;
            float ds[N], g_mean = g_sum[r] / (float)b.cols, gx_mean = gx_sum[r] / (float)b.cols;
#pragma unroll
            for (int k = 0; k < N; k++) {
                float g = mul_no_fma(to_float(dy[r].at[k]), gain[k]);
                ds[k] = rstd[r] * (g - g_mean - (to_float(s[r].at[k]) - mean[r]) * rstd[r] * gx_mean);
            }
            if (b.dres.data) store_vec(b.dres, at, ds);
            if (!b.da.data) continue;
            if (b.drop.threshold) {
                float keep[N];
                drop_factors<N>(keep, b.key, at, b.drop);
#pragma unroll
                for (int k = 0; k < N; k++) ds[k] *= keep[k];
            }
            store_vec(b.da, at, ds);
        }
    }
    for (int k = 0; k < N && mine && b.part; k++) b.part[blockIdx.x * b.cols + j + k] = sum[k];
}

__device__ static inline float2 mul2(float2 d, float2 gain)
{
    return make_float2(mul_no_fma(d.x, gain.x), mul_no_fma(d.y, gain.y));
}

__device__ static inline float2 xhat_of(const vec16<bf16> &s, int i, float mean, float rstd)
{
    float2 x = load2(s, i);
    return make_float2((x.x - mean) * rstd, (x.y - mean) * rstd);
}

/* Stores ds of eight elements at i to da and dres. */
template <bool DROP>
__device__ static inline void store_grads(const norm_grad<bf16> &b, int64_t i, float (&ds)[8])
{
    float keep[8];
    auto store = [&](dst<bf16> to) {
        vec16<bf16> out;
        if (to.accumulate) return store_vec(to, i, ds);
#pragma unroll
        for (int k = 0; k < 4; k++) store2(out, k, make_float2(ds[2 * k], ds[2 * k + 1]));
        *(vec16<bf16> *)(to.data + i) = out;
    };
    if (b.dres.data) store(b.dres);
    if (!b.da.data) return;
    if (DROP) drop_factors<8>(keep, b.key, i, b.drop);
#pragma unroll
    for (int k = 0; k < 8; k++)
        if (DROP) ds[k] *= keep[k];
    store(b.da);
}

/* Rows as in norm_vec, but a block loops over many rows. Each warp keeps its sums for gain and bias in shared
 * memory, in the order of lanes; the warps' sums are added at the end. */
template <int K, bool DROP> __global__ void __launch_bounds__(BLOCK, 2) norm_bwd_vec(norm_grad<bf16> b)
{
    enum { N = vec16<bf16>::N, FULL = row_vecs<K>::FULL, ELEMS = K * N * WARP };
    extern __shared__ float2 sums[]; /* [WARPS][K N][WARP]; followed by gain, [K N / 2][WARP] */
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, vecs = (int)b.cols / N;
    float2 *gains = sums + WARPS * ELEMS, *gain = gains + lane, *sum = sums + warp * ELEMS + lane;
    auto in = [=](int k) { return k < FULL || k * WARP + lane < vecs; };
    for (int k = 0; k < K * N; k++) sum[k * WARP] = make_float2(0, 0);
    for (int i = threadIdx.x; i < ELEMS / 2; i += BLOCK) {
        int j = (i / WARP / (N / 2) * WARP + i % WARP) * N + i / WARP % (N / 2) * 2;
        gains[i] = j < b.cols ? make_float2(b.gain[j], b.gain[j + 1]) : make_float2(0, 0);
    }
    __syncthreads();
    for (int64_t row = (int64_t)blockIdx.x * WARPS + warp; row < b.rows; row += (int64_t)gridDim.x * WARPS) {
        int64_t at = row * b.cols + lane * N;
        vec16<bf16> dy[K], s[K];
        float mean = b.stat[2 * row], rstd = b.stat[2 * row + 1], g_sum = 0, gx_sum = 0;
#pragma unroll
        for (int k = 0; k < K; k++)
            if (in(k))
                dy[k] = *(const vec16<bf16> *)(b.dy + at + k * WARP * N),
                s[k] = *(const vec16<bf16> *)(b.s + at + k * WARP * N);
#pragma unroll
        for (int k = 0; k < K; k++)
#pragma unroll
            for (int i = 0; i < N / 2 && in(k); i++) {
                float2 d = load2(dy[k], i), x = xhat_of(s[k], i, mean, rstd),
                       g = mul2(d, gain[(k * 4 + i) * WARP]);
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
                float2 g = mul2(load2(dy[k], i), gain[(k * 4 + i) * WARP]), x = xhat_of(s[k], i, mean, rstd);
                ds[2 * i] = rstd * (g.x - g_mean - x.x * gx_mean);
                ds[2 * i + 1] = rstd * (g.y - g_mean - x.y * gx_mean);
            }
            if (in(k)) store_grads<DROP>(b, at + k * WARP * N, ds);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < ELEMS && b.part; i += BLOCK) {
        int j = (i / WARP / N * WARP + i % WARP) * N + i / WARP % N;
        float2 total = sums[i];
        for (int w = 1; w < WARPS; w++) total = plus(total, sums[w * ELEMS + i]);
        if (j < b.cols) b.part[blockIdx.x * b.cols + j] = total;
    }
}

enum { MAX_VECS = 4 }; /* per lane; limited by shared memory */

template <int K> static void launch_bwd_vec(ses_cuda *g, unsigned blocks, const norm_grad<bf16> &b)
{
    size_t bytes = (WARPS * 2 + 1) * K * vec16<bf16>::N / 2 * WARP * sizeof(float2);
    auto *kernel = b.drop.threshold ? norm_bwd_vec<K, true> : norm_bwd_vec<K, false>;
    ses_cuda_record(g, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    kernel<<<blocks, BLOCK, bytes, ses_cuda_stream(g)>>>(b);
}

/* Blocks for these rows; 0: these columns are not supported. */
template <class T> static unsigned vec_blocks_for(const ses_cuda *g, int64_t rows, int64_t cols, bool aligned)
{
    int64_t all = ceil_div(rows, WARPS), max_blocks = 2 * g->sm_count;
    if (sizeof(T) != sizeof(bf16) || !aligned || cols % 8 || cols > MAX_VECS * WARP * 8) return 0;
    return (unsigned)(all < max_blocks ? all : max_blocks);
}

static void bwd_by_vec(ses_cuda *g, unsigned blocks, const norm_grad<bf16> &b)
{
    switch (ceil_div(b.cols, WARP * vec16<bf16>::N)) {
    case 1: return launch_bwd_vec<1>(g, blocks, b);
    case 2: return launch_bwd_vec<2>(g, blocks, b);
    case 3: return launch_bwd_vec<3>(g, blocks, b);
    default: return launch_bwd_vec<4>(g, blocks, b);
    }
}
/* unused: vec_blocks_for returns 0 */
static void bwd_by_vec(ses_cuda *, unsigned, const norm_grad<float> &) {}

/* Two passes. The sums over rows come first, because da may be dy. */
template <class T> static void bwd_by_rows(ses_exec *x, const norm_grad<T> &b, float *dgain, float *dbias)
{
    const T *dy = b.dy, *s = b.s;
    const float *stat = b.stat;
    int64_t cols = b.cols;
    if (dgain || dbias)
        sum_columns2(x, dgain, dbias, b.rows, cols, [=] __device__(int64_t row, int64_t j) {
            float d = to_float(dy[row * cols + j]);
            return make_float2(d * (to_float(s[row * cols + j]) - stat[2 * row]) * stat[2 * row + 1], d);
        });
    if (!b.da.data && !b.dres.data) return;
    norm_bwd_rows<T><<<(unsigned)ceil_div(b.rows, WARPS), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(b);
    check_launch(x->cuda);
}

template <class T>
static void norm_bwd(ses_exec *x, ses_dst da, ses_dst dres, ses_real *dgain, ses_real *dbias,
                     const ses_real *dy, const ses_real *s, const ses_real *stat, const ses_real *gain,
                     int64_t rows, int64_t cols, const ses_dropout_spec *drop)
{
    norm_grad<T> b = { dst_of<T>(da),
                       dst_of<T>(dres),
                       elems<T>(dy),
                       elems<T>(s),
                       stat,
                       gain,
                       rows,
                       cols,
                       dropout_params_of(drop ? drop->rate : 0),
                       key_of(drop),
                       NULL };
    if (rows <= 0) return;
    bool aligned = aligned16(da.data) && aligned16(dres.data) && aligned16(dy) && aligned16(s) &&
                   !(da.data && da.is_f32) && !(dres.data && dres.is_f32);
    launch_config p = block_config<T>(x->cuda, rows, cols, aligned);
    unsigned vecs = vec_blocks_for<T>(x->cuda, rows, cols, aligned), blocks = vecs ? vecs : p.blocks;
    if (!blocks) return bwd_by_rows<T>(x, b, dgain, dbias);
    bool sums = dgain || dbias;
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    if (sums) b.part = (float2 *)scratch_lock(x->cuda, (size_t)(blocks * cols) * sizeof *b.part);
    if (sums && !b.part) return;
    if (vecs)
        bwd_by_vec(x->cuda, vecs, b);
    else
        norm_bwd_blocks<T><<<p.blocks, p.threads, 0, stream>>>(b);
    check_launch(x->cuda);
    if (!sums) return;
    add_strips2(x, b.part, blocks, cols, dgain, dbias);
    scratch_unlock(x->cuda);
}

void ses_cuda_norm_bwd(ses_kernels *k, bool is_bf16)
{
    k->norm_bwd = is_bf16 ? norm_bwd<bf16> : norm_bwd<float>;
}
