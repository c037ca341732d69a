/* Attention in f32 arithmetic for heads of up to 256 columns: a warp a query (backwards also a warp a key),
 * 32 keys at a time, lane j scoring key j. Sums of a row over its keys are online: when a greater score
 * comes, what stands is scaled down. Nothing is added by two warps, so the same run gives the same bits. */
#include "attention_cuda.cuh"

enum { TILE = WARP }; /* keys, or queries, in shared memory at a time */

/* Rows of shared memory are an odd number of words apart: lanes that read one column each of 32 rows meet 32
 * banks. */
__device__ __host__ static inline int padded(int64_t dim) { return (int)(dim | 1); }

/* rows first .. first + 31 of x (of n) to shared memory as floats; rows past n are zero. */
template <class T>
__device__ static inline void load_tile(float *to, const T *x, int64_t row, int64_t first, int64_t n,
                                        int64_t dim)
{
    int pad = padded(dim);
    for (int i = threadIdx.x; i < TILE * dim; i += blockDim.x) {
        int r = i / (int)dim, d = i % (int)dim;
        to[r * pad + d] = first + r < n ? num(x[(first + r) * row + d]) : 0;
    }
}

/* One row of x, to shared memory of the warp's own. */
template <class T> __device__ static inline void load_row(float *to, const T *x, int64_t dim)
{
    for (int d = threadIdx.x % WARP; d < dim; d += WARP) to[d] = num(x[d]);
    __syncwarp();
}

__device__ static inline float dot(const float *x, const float *y, int64_t dim)
{
    float sum = 0;
    for (int d = 0; d < dim; d++) sum += x[d] * y[d];
    return sum;
}

__device__ static inline float keep(const ses_attn &a, const ses_attn_part &p, dropping drop, int64_t i,
                                    int64_t j)
{
    if (a.dropout <= 0) return 1;
    return kept(a.rng_key, ses_attn_draw(&a, p, i, j), drop.threshold, drop.scale);
}

/* Everywhere with the same bits. */
template <class T>
__device__ static inline float score_of(const ses_attn &a, const ses_attn_part &p, float product, int64_t i,
                                        int64_t j)
{
    return fmaf(a.scale, product, extra<T>(a, p, i, j));
}

/* Probabilities, once the row's lse is known; zero where nothing is seen. */
template <class T>
__device__ static inline void put_probs(const ses_attn &a, const ses_attn_part &p, int64_t i,
                                        ses_attn_view sees, float lse, float rest, const float *q)
{
    T *to = (T *)(void *)a.probs + p.probs + i * p.len_k;
    const T *k = head_of<T>(a.k, a.k_row, a.k_head, p.k0, a, p.head);
    for (int64_t j = threadIdx.x % WARP; j < p.len_k; j += WARP) {
        float sum = 0;
        bool seen = j >= sees.begin && j < sees.end;
        for (int64_t d = 0; seen && d < a.dim; d++) sum += q[d] * num(k[j * a.k_row + d]);
        to[j] = cell<T>(seen ? expf(score_of<T>(a, p, sum, i, j) - lse - rest) : 0);
    }
}

template <class T, int R>
__global__ void __launch_bounds__(BLOCK) attend(ses_attn a, dropping drop, int64_t tiles)
{
    extern __shared__ float shared[];
    int pad = padded(a.dim), warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    float *k_tile = shared, *v_tile = k_tile + TILE * pad, *q = v_tile + TILE * pad + warp * pad;
    ses_attn_part p = part_of(a, blockIdx.x / tiles);
    int64_t first = blockIdx.x % tiles * WARPS, i = first + warp;
    if (first >= p.len_q) return;
    int64_t rows = p.len_q - first < WARPS ? p.len_q - first : WARPS;
    bool mine = warp < rows;
    const T *k = head_of<T>(a.k, a.k_row, a.k_head, p.k0, a, p.head);
    const T *v = head_of<T>(a.v, a.v_row, a.v_head, p.k0, a, p.head);
    if (mine) load_row(q, head_of<T>(a.q, a.q_row, a.q_head, p.q0 + i, a, p.head), a.dim);
    ses_attn_view all = seen_by_block(a, p, first, rows), sees = { 0, 0 };
    if (mine) sees = ses_attn_sees(&a, p, i);
    float max = -INFINITY, sum = 0, out[R] = { 0 };
    for (int64_t j0 = all.begin; j0 < all.end; j0 += TILE) {
        __syncthreads();
        load_tile(k_tile, k, a.k_row, j0, p.len_k, a.dim);
        load_tile(v_tile, v, a.v_row, j0, p.len_k, a.dim);
        __syncthreads();
        if (!mine) continue;
        int64_t j = j0 + lane;
        bool seen = j >= sees.begin && j < sees.end;
        float s = seen ? score_of<T>(a, p, dot(q, k_tile + lane * pad, a.dim), i, j) : -INFINITY;
        float top = fmaxf(max, warp_max(s));
        if (top == -INFINITY) continue; /* nothing yet */
        float shrink = expf(max - top), prob = seen ? expf(s - top) : 0;
        sum = sum * shrink + warp_sum(prob);
        max = top;
        if (seen) prob *= keep(a, p, drop, i, j);
        for (int r = 0; r < R; r++) out[r] *= shrink;
        for (int n = 0; n < TILE; n++) {
            float w = __shfl_sync(0xffffffffu, prob, n);
            for (int r = 0; r < R; r++)
                if (lane + r * WARP < a.dim) out[r] += w * v_tile[n * pad + lane + r * WARP];
        }
    }
    if (!mine) return;
    float lse = sum > 0 ? max + logf(sum) : -INFINITY, rest = sum > 0 ? max - lse + logf(sum) : 0;
    T *to = (T *)(void *)a.out + (p.q0 + i) * a.out_row + p.head * a.dim;
    for (int r = 0; r < R; r++)
        if (lane + r * WARP < a.dim) to[lane + r * WARP] = cell<T>(sum > 0 ? out[r] / sum : 0);
    if (a.lse && lane == 0) a.lse[ses_attn_stat(&a, p, i)] = lse;
    if (a.lse_lo && lane == 0) a.lse_lo[ses_attn_stat(&a, p, i)] = rest;
    if (a.probs) put_probs<T>(a, p, i, sees, lse, rest, q);
}

/* P = exp(S - lse - rest), out = (P keep) v; delta_i = sum_j P_ij dP_ij = dout_i . out_i
 * dS_ij = P_ij (keep_ij dout_i . v_j - delta_i)
 * Where scores are large delta is the sum itself, of dP as rounded as it is: a query that sees one key alone
 * gets a dS of exactly 0, which its keys, as large, would make something of. */

/* A warp's query backwards; of the keys the tiles that are in shared memory. */
struct query {
    ses_attn_part p;
    int64_t i;
    bool mine; /* the warp has one */
    ses_attn_view sees;
    const float *q, *dout, *k_tile, *v_tile;
    float lse, rest;
};

/* P and dP of the key j, which is the lane's. */
template <class T> __device__ static inline float prob_at(const ses_attn &a, const query &x, int64_t j)
{
    if (!x.mine || j < x.sees.begin || j >= x.sees.end) return 0;
    float product = dot(x.q, x.k_tile + threadIdx.x % WARP * padded(a.dim), a.dim);
    return expf(score_of<T>(a, x.p, product, x.i, j) - x.lse - x.rest);
}

__device__ static inline float slope_at(const ses_attn &a, const query &x, dropping drop, int64_t j)
{
    float through = dot(x.dout, x.v_tile + threadIdx.x % WARP * padded(a.dim), a.dim);
    return __fmul_rn(keep(a, x.p, drop, x.i, j), through);
}

template <class T, int R>
__global__ void __launch_bounds__(BLOCK)
    attend_bwd_queries(ses_attn a, ses_attn_grad g, dropping drop, int64_t tiles)
{
    extern __shared__ float shared[];
    int pad = padded(a.dim), warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    float *k_tile = shared, *v_tile = k_tile + TILE * pad;
    float *q = v_tile + TILE * pad + 2 * warp * pad, *dout = q + pad;
    ses_attn_part p = part_of(a, blockIdx.x / tiles);
    int64_t first = blockIdx.x % tiles * WARPS, i = first + warp;
    if (first >= p.len_q) return;
    int64_t rows = p.len_q - first < WARPS ? p.len_q - first : WARPS;
    const T *k = head_of<T>(a.k, a.k_row, a.k_head, p.k0, a, p.head);
    const T *v = head_of<T>(a.v, a.v_row, a.v_head, p.k0, a, p.head);
    sink<T> dbias = sink_of<T>(g.dbias), to = sink_of<T>(g.dq);
    ses_attn_view all = seen_by_block(a, p, first, rows);
    query x = { p, i, warp < rows, { 0, 0 }, q, dout, k_tile, v_tile, 0, 0 };
    int64_t stat = ses_attn_stat(&a, p, i);
    float delta = 0, sum = 0, dq[R] = { 0 };
    if (x.mine) {
        int64_t at = (p.q0 + i) * a.out_row + p.head * a.dim;
        load_row(q, head_of<T>(a.q, a.q_row, a.q_head, p.q0 + i, a, p.head), a.dim);
        load_row(dout, (const T *)(const void *)g.dout + at, a.dim);
        for (int d = lane; d < a.dim; d += WARP)
            delta += dout[d] * num(((const T *)(const void *)a.out)[at + d]);
        delta = warp_sum(delta);
        x.sees = ses_attn_sees(&a, p, i), x.lse = a.lse[stat], x.rest = rest_of(a, stat);
    }
    if (dbias.data) all.begin = 0, all.end = p.len_k; /* zeros, too, are written */
    auto load = [&](int64_t j0) {
        __syncthreads();
        load_tile(k_tile, k, a.k_row, j0, p.len_k, a.dim);
        load_tile(v_tile, v, a.v_row, j0, p.len_k, a.dim);
        __syncthreads();
    };
    bool wild = x.mine && isfinite(x.lse) && fabsf(x.lse) > large;
    for (int64_t j = __syncthreads_or(wild) ? all.begin : all.end; j < all.end; j += TILE) {
        load(j);
        float prob = prob_at<T>(a, x, j + lane);
        if (prob != 0) sum += prob * slope_at(a, x, drop, j + lane);
    }
    if (wild) delta = warp_sum(sum);
    if (x.mine && lane == 0) g.delta[stat] = delta;
    for (int64_t j = all.begin; j < all.end; j += TILE) {
        load(j);
        if (!x.mine) continue;
        float prob = prob_at<T>(a, x, j + lane);
        float ds = prob != 0 ? prob * (slope_at(a, x, drop, j + lane) - delta) : 0;
        if (dbias.data && j + lane < p.len_k) put(dbias, p.probs + i * p.len_k + j + lane, ds);
        for (int n = 0; n < TILE; n++) {
            float w = __shfl_sync(0xffffffffu, ds, n);
            for (int r = 0; r < R; r++)
                if (lane + r * WARP < a.dim) dq[r] += w * k_tile[n * pad + lane + r * WARP];
        }
    }
    if (!x.mine || !to.data) return;
    int64_t at = (p.q0 + i) * a.q_row + p.head * ses_attn_head(a.q_head, &a);
    for (int r = 0; r < R; r++)
        if (lane + r * WARP < a.dim) put(to, at + lane + r * WARP, a.scale * dq[r]);
}

/* A warp a key: 32 queries at a time. Needs g.delta. */
template <class T, int R>
__global__ void __launch_bounds__(BLOCK)
    attend_bwd_keys(ses_attn a, ses_attn_grad g, dropping drop, int64_t tiles)
{
    extern __shared__ float shared[];
    int pad = padded(a.dim), warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    float *q_tile = shared, *dout_tile = q_tile + TILE * pad;
    float *k = dout_tile + TILE * pad + 2 * warp * pad, *v = k + pad;
    ses_attn_part p = part_of(a, blockIdx.x / tiles);
    int64_t first = blockIdx.x % tiles * WARPS, j = first + warp;
    if (first >= p.len_k) return;
    int64_t rows = p.len_k - first < WARPS ? p.len_k - first : WARPS;
    bool mine = warp < rows;
    const T *q = head_of<T>(a.q, a.q_row, a.q_head, p.q0, a, p.head);
    const T *dout = (const T *)(const void *)g.dout + p.q0 * a.out_row + p.head * a.dim;
    if (mine) load_row(k, head_of<T>(a.k, a.k_row, a.k_head, p.k0 + j, a, p.head), a.dim);
    if (mine) load_row(v, head_of<T>(a.v, a.v_row, a.v_head, p.k0 + j, a, p.head), a.dim);
    int64_t begin = ses_attn_seen_by(&a, p, first).begin, end = ses_attn_seen_by(&a, p, first + rows - 1).end;
    ses_attn_view by = { 0, 0 };
    if (mine) by = ses_attn_seen_by(&a, p, j);
    float dk[R] = { 0 }, dv[R] = { 0 };
    for (int64_t i0 = begin; i0 < end; i0 += TILE) {
        __syncthreads();
        load_tile(q_tile, q, a.q_row, i0, p.len_q, a.dim);
        load_tile(dout_tile, dout, a.out_row, i0, p.len_q, a.dim);
        __syncthreads();
        if (!mine) continue;
        int64_t i = i0 + lane;
        float ds = 0, prob = 0;
        if (i >= by.begin && i < by.end) {
            int64_t stat = ses_attn_stat(&a, p, i);
            float s = score_of<T>(a, p, dot(q_tile + lane * pad, k, a.dim), i, j);
            float whole = expf(s - a.lse[stat] - rest_of(a, stat)), stays = keep(a, p, drop, i, j);
            ds = whole * (__fmul_rn(stays, dot(dout_tile + lane * pad, v, a.dim)) - g.delta[stat]);
            prob = whole * stays;
        }
        for (int n = 0; n < TILE; n++) {
            float wk = __shfl_sync(0xffffffffu, ds, n), wv = __shfl_sync(0xffffffffu, prob, n);
            for (int r = 0; r < R; r++)
                if (lane + r * WARP < a.dim) {
                    dk[r] += wk * q_tile[n * pad + lane + r * WARP];
                    dv[r] += wv * dout_tile[n * pad + lane + r * WARP];
                }
        }
    }
    if (!mine) return;
    sink<T> to_k = sink_of<T>(g.dk), to_v = sink_of<T>(g.dv);
    int64_t at_k = (p.k0 + j) * a.k_row + p.head * ses_attn_head(a.k_head, &a);
    int64_t at_v = (p.k0 + j) * a.v_row + p.head * ses_attn_head(a.v_head, &a);
    for (int r = 0; r < R; r++) {
        if (lane + r * WARP >= a.dim) continue;
        if (to_k.data) put(to_k, at_k + lane + r * WARP, a.scale * dk[r]);
        if (to_v.data) put(to_v, at_v + lane + r * WARP, dv[r]);
    }
}

/* dS of query i and key j of the part, alone. */
template <class T>
__device__ static inline float slope(const ses_attn &a, const ses_attn_grad &g, const ses_attn_part &p,
                                     dropping drop, int64_t i, int64_t j)
{
    const T *q = head_of<T>(a.q, a.q_row, a.q_head, p.q0 + i, a, p.head);
    const T *k = head_of<T>(a.k, a.k_row, a.k_head, p.k0 + j, a, p.head);
    const T *v = head_of<T>(a.v, a.v_row, a.v_head, p.k0 + j, a, p.head);
    const T *dout = (const T *)(const void *)g.dout + (p.q0 + i) * a.out_row + p.head * a.dim;
    int64_t stat = ses_attn_stat(&a, p, i);
    float s = 0, dp = 0;
    for (int64_t d = 0; d < a.dim; d++) s += num(q[d]) * num(k[d]), dp += num(dout[d]) * num(v[d]);
    float prob = expf(score_of<T>(a, p, s, i, j) - a.lse[stat] - rest_of(a, stat));
    return prob * (__fmul_rn(keep(a, p, drop, i, j), dp) - g.delta[stat]);
}

/* ddist: a block a distance and head, over all sequences, since they share it. */
template <class T> __global__ void attend_bwd_distances(ses_attn a, ses_attn_grad g, dropping drop)
{
    int64_t row = blockIdx.x / a.heads, head = blockIdx.x % a.heads, before = 0;
    float sum = 0;
    for (int64_t s = 0; s < a.seqs; s++) {
        ses_attn_part p = { s,
                            head,
                            a.cu_seqlens_q[s],
                            a.cu_seqlens_q[s + 1] - a.cu_seqlens_q[s],
                            a.cu_seqlens_k[s],
                            ses_attn_keys(&a, s),
                            0 };
        p.probs = before * a.heads + head * p.len_q * p.len_k;
        before += p.len_q * p.len_k;
        for (int64_t i = threadIdx.x; i < p.len_q; i += blockDim.x) {
            int64_t j = row - (a.max_seqlen_k - 1) + i + p.len_k - p.len_q;
            ses_attn_view sees = ses_attn_sees(&a, p, i);
            if (j >= sees.begin && j < sees.end) sum += slope<T>(a, g, p, drop, i, j);
        }
    }
    sum = block_sum(sum);
    sink<T> to = sink_of<T>(g.drel_bias);
    if (threadIdx.x == 0) put(to, row * a.heads + head, sum);
}

/* ---- launching: by the number of registers a lane needs for its share of the head's columns ---- */

static size_t shared_bytes(const ses_attn *a, int rows_a_warp)
{
    return (size_t)(2 * TILE + rows_a_warp * WARPS) * (size_t)padded(a->dim) * sizeof(float);
}

template <class T, int R> static void forward(ses_cuda *g, const ses_attn *a)
{
    int64_t tiles = ceil_div(a->max_seqlen_q, WARPS);
    size_t bytes = shared_bytes(a, 1);
    allow_shared(g, attend<T, R>, bytes);
    attend<T, R><<<(unsigned)(a->seqs * a->heads * tiles), BLOCK, bytes, ses_cuda_stream(g)>>>(
        *a, dropping_of(a->dropout), tiles);
    launched(g);
}

template <class T> static void distances(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad)
{
    unsigned blocks = (unsigned)((2 * a->max_seqlen_k - 1) * a->heads);
    if (!grad->drel_bias.data) return;
    attend_bwd_distances<T><<<blocks, BLOCK, 0, ses_cuda_stream(g)>>>(*a, *grad, dropping_of(a->dropout));
    launched(g);
}

template <class T, int R> static void backward(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad)
{
    int64_t q_tiles = ceil_div(a->max_seqlen_q, WARPS), k_tiles = ceil_div(a->max_seqlen_k, WARPS),
            parts = a->seqs * a->heads;
    size_t bytes = shared_bytes(a, 2);
    cudaStream_t stream = ses_cuda_stream(g);
    dropping drop = dropping_of(a->dropout);
    allow_shared(g, attend_bwd_queries<T, R>, bytes);
    allow_shared(g, attend_bwd_keys<T, R>, bytes);
    attend_bwd_queries<T, R><<<(unsigned)(parts * q_tiles), BLOCK, bytes, stream>>>(*a, *grad, drop, q_tiles);
    launched(g);
    if (grad->dk.data || grad->dv.data)
        attend_bwd_keys<T, R>
            <<<(unsigned)(parts * k_tiles), BLOCK, bytes, stream>>>(*a, *grad, drop, k_tiles);
    launched(g);
    distances<T>(g, a, grad);
}

static const char *const too_wide = "attention: heads of more than 256 columns have no CUDA kernel";

/* Ways on tensor cores: the first that takes the arguments does it, else what stands above. */
static const struct way {
    bool (*forward)(ses_cuda *g, const ses_attn *a);
    bool (*backward)(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad);
} ways[] = {
    { attention_wgmma, attention_wgmma_bwd },
    { attention_fast, attention_fast_bwd },
    { attention_mma, attention_mma_bwd },
};

template <class T> static void attention(ses_exec *x, const ses_attn *a)
{
    if (a->seqs * a->heads * a->max_seqlen_q <= 0) return;
    for (const way &w : ways)
        if (sizeof(T) < sizeof(float) && w.forward(x->cuda, a)) return;
    if (a->dim > 256) return fail(x->cuda, too_wide);
    if (a->dim <= 32) return forward<T, 1>(x->cuda, a);
    if (a->dim <= 64) return forward<T, 2>(x->cuda, a);
    if (a->dim <= 128) return forward<T, 4>(x->cuda, a);
    return forward<T, 8>(x->cuda, a);
}

template <class T> static void attention_bwd(ses_exec *x, const ses_attn *a, const ses_attn_grad *g)
{
    if (a->seqs * a->heads * a->max_seqlen_q <= 0) return;
    for (const way &w : ways)
        if (sizeof(T) < sizeof(float) && w.backward(x->cuda, a, g)) return distances<T>(x->cuda, a, g);
    if (a->dim > 256) return fail(x->cuda, too_wide);
    if (a->dim <= 32) return backward<T, 1>(x->cuda, a, g);
    if (a->dim <= 64) return backward<T, 2>(x->cuda, a, g);
    if (a->dim <= 128) return backward<T, 4>(x->cuda, a, g);
    return backward<T, 8>(x->cuda, a, g);
}

void ses_cuda_attention(ses_kernels *k, bool narrow)
{
    k->attention = narrow ? attention<bf16> : attention<float>;
    k->attention_bwd = narrow ? attention_bwd<bf16> : attention_bwd<float>;
}
