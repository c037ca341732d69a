/* Generic CUDA attention with f32 arithmetic, for heads of up to 640 columns (recurrent decoders
 * have one wide head). One warp per query (backward
 * also one warp per key), 32 keys at a time, lane j scoring key j, with an online softmax: the sums are
 * rescaled when the maximum grows. No two warps add to the same element, so repeated runs give the same bits.
 * The kernels for tensor cores are tried first. */
#include "attention_cuda.cuh"
#include "relative_cuda.cuh"

enum { TILE = WARP }; /* keys or queries in shared memory at a time */

/* Rows of shared memory have an odd stride: 32 lanes that read the same column of 32 rows hit 32 banks. */
__device__ __host__ static inline int padded(int64_t dim) { return (int)(dim | 1); }

/* Loads rows first .. first + 31 of the n rows of x to shared memory as floats; rows past n are zero. */
template <class T>
__device__ static inline void load_tile(float *to, const T *x, int64_t row, int64_t first, int64_t n,
                                        int64_t dim)
{
    int pad = padded(dim);
    for (int i = threadIdx.x; i < TILE * dim; i += blockDim.x) {
        int r = i / (int)dim, d = i % (int)dim;
        to[r * pad + d] = first + r < n ? to_float(x[(first + r) * row + d]) : 0;
    }
}

/* Loads one row of x to the warp's own shared memory. */
template <class T> __device__ static inline void load_row(float *to, const T *x, int64_t dim)
{
    for (int d = threadIdx.x % WARP; d < dim; d += WARP) to[d] = to_float(x[d]);
    __syncwarp();
}

__device__ static inline float dot(const float *x, const float *y, int64_t dim)
{
    float sum = 0;
    for (int d = 0; d < dim; d++) sum += x[d] * y[d];
    return sum;
}

__device__ static inline float attn_drop_factor(const ses_attn &a, const ses_attn_seq_head &p,
                                                dropout_params drop, int64_t i, int64_t j)
{
    if (a.dropout <= 0) return 1;
    return drop_factor(a.rng_key, ses_attn_draw_index(&a, p, i, j), drop.threshold, drop.scale);
}

/* One definition for both passes, so that scores have the same bits everywhere. */
template <class T>
__device__ static inline float score_of(const ses_attn &a, const ses_attn_seq_head &p, float product,
                                        int64_t i, int64_t j)
{
    return fmaf(a.scale, product, score_bias<T>(a, p, i, j));
}

/* Stores probabilities when lse of the row is final; 0 for masked keys. */
template <class T>
__device__ static inline void store_probs(const ses_attn &a, const ses_attn_seq_head &p, int64_t i,
                                          ses_attn_range visible, float lse, float lse_lo, const float *q)
{
    T *to = (T *)(void *)a.probs + p.probs + i * p.len_k;
    const T *k = head_rows<T>(a.k, a.k_row, a.k_head, p.k0, a, p.head);
    for (int64_t j = threadIdx.x % WARP; j < p.len_k; j += WARP) {
        float sum = 0;
        bool key_range = j >= visible.begin && j < visible.end;
        for (int64_t d = 0; key_range && d < a.dim; d++) sum += q[d] * to_float(k[j * a.k_row + d]);
        to[j] = from_float<T>(key_range ? expf(score_of<T>(a, p, sum, i, j) - lse - lse_lo) : 0);
    }
}

template <class T, int R>
__global__ void __launch_bounds__(BLOCK) attend(ses_attn a, dropout_params drop, int64_t tiles)
{
    extern __shared__ float shared[];
    int pad = padded(a.dim), warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    float *k_tile = shared, *v_tile = k_tile + TILE * pad, *q = v_tile + TILE * pad + warp * pad;
    ses_attn_seq_head p = seq_head_at(a, blockIdx.x / tiles);
    int64_t first = blockIdx.x % tiles * WARPS, i = first + warp;
    if (first >= p.len_q) return;
    int64_t rows = p.len_q - first < WARPS ? p.len_q - first : WARPS;
    bool active = warp < rows;
    const T *k = head_rows<T>(a.k, a.k_row, a.k_head, p.k0, a, p.head);
    const T *v = head_rows<T>(a.v, a.v_row, a.v_head, p.k0, a, p.head);
    if (active) load_row(q, head_rows<T>(a.q, a.q_row, a.q_head, p.q0 + i, a, p.head), a.dim);
    ses_attn_range all = block_key_range(a, p, first, rows), visible = { 0, 0 };
    if (active) visible = ses_attn_key_range(&a, p, i);
    float max = -INFINITY, sum = 0, out[R] = { 0 };
    for (int64_t j0 = all.begin; j0 < all.end; j0 += TILE) {
        __syncthreads();
        load_tile(k_tile, k, a.k_row, j0, p.len_k, a.dim);
        load_tile(v_tile, v, a.v_row, j0, p.len_k, a.dim);
        __syncthreads();
        if (!active) continue;
        int64_t j = j0 + lane;
        bool key_range = j >= visible.begin && j < visible.end;
        float s = key_range ? score_of<T>(a, p, dot(q, k_tile + lane * pad, a.dim), i, j) : -INFINITY;
        float new_max = fmaxf(max, warp_max(s));
        if (new_max == -INFINITY) continue; /* no visible key yet */
        float rescale = expf(max - new_max), prob = key_range ? expf(s - new_max) : 0;
        sum = sum * rescale + warp_sum(prob);
        max = new_max;
        if (key_range) prob *= attn_drop_factor(a, p, drop, i, j);
        for (int r = 0; r < R; r++) out[r] *= rescale;
        for (int n = 0; n < TILE; n++) {
            float w = __shfl_sync(0xffffffffu, prob, n);
            for (int r = 0; r < R; r++)
                if (lane + r * WARP < a.dim) out[r] += w * v_tile[n * pad + lane + r * WARP];
        }
    }
    if (!active) return;
    float lse = sum > 0 ? max + logf(sum) : -INFINITY, lse_lo = sum > 0 ? max - lse + logf(sum) : 0;
    T *to = (T *)(void *)a.out + (p.q0 + i) * a.out_row + p.head * a.dim;
    for (int r = 0; r < R; r++)
        if (lane + r * WARP < a.dim) to[lane + r * WARP] = from_float<T>(sum > 0 ? out[r] / sum : 0);
    if (a.lse && lane == 0) a.lse[ses_attn_stat_index(&a, p, i)] = lse;
    if (a.lse_lo && lane == 0) a.lse_lo[ses_attn_stat_index(&a, p, i)] = lse_lo;
    if (a.probs) store_probs<T>(a, p, i, visible, lse, lse_lo, q);
}

/* Backward pass, M the dropout factors:
 *     P = exp(S - lse - lse_lo)   out = (P M) v   delta_i = sum_j P_ij dP_ij = dout_i . out_i
 *     dS_ij = P_ij (M_ij dout_i . v_j - delta_i)
 * For large scores delta is computed as sum_j P_ij dP_ij from the rounded dP: a query with one visible key
 * then has dS = 0 exactly. A rounding error in dS would be multiplied by the large keys. */

/* One warp's query in the backward pass, with the tiles of keys and values in shared memory. */
struct query_state {
    ses_attn_seq_head p;
    int64_t i;
    bool active; /* the warp has a query */
    ses_attn_range visible;
    const float *q, *dout, *k_tile, *v_tile;
    float lse, lse_lo;
};

/* P and dP of key j, which belongs to the lane. */
template <class T> __device__ static inline float prob_at(const ses_attn &a, const query_state &x, int64_t j)
{
    if (!x.active || j < x.visible.begin || j >= x.visible.end) return 0;
    float product = dot(x.q, x.k_tile + threadIdx.x % WARP * padded(a.dim), a.dim);
    return expf(score_of<T>(a, x.p, product, x.i, j) - x.lse - x.lse_lo);
}

__device__ static inline float dp_at(const ses_attn &a, const query_state &x, dropout_params drop, int64_t j)
{
    float through = dot(x.dout, x.v_tile + threadIdx.x % WARP * padded(a.dim), a.dim);
    return __fmul_rn(attn_drop_factor(a, x.p, drop, x.i, j), through);
}

template <class T, int R>
__global__ void __launch_bounds__(BLOCK)
    attend_bwd_queries(ses_attn a, ses_attn_grad g, dropout_params drop, int64_t tiles)
{
    extern __shared__ float shared[];
    int pad = padded(a.dim), warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    float *k_tile = shared, *v_tile = k_tile + TILE * pad;
    float *q = v_tile + TILE * pad + 2 * warp * pad, *dout = q + pad;
    ses_attn_seq_head p = seq_head_at(a, blockIdx.x / tiles);
    int64_t first = blockIdx.x % tiles * WARPS, i = first + warp;
    if (first >= p.len_q) return;
    int64_t rows = p.len_q - first < WARPS ? p.len_q - first : WARPS;
    const T *k = head_rows<T>(a.k, a.k_row, a.k_head, p.k0, a, p.head);
    const T *v = head_rows<T>(a.v, a.v_row, a.v_head, p.k0, a, p.head);
    dst<T> dbias = dst_of<T>(g.dbias), to = dst_of<T>(g.dq);
    ses_attn_range all = block_key_range(a, p, first, rows);
    query_state x = { p, i, warp < rows, { 0, 0 }, q, dout, k_tile, v_tile, 0, 0 };
    int64_t stat = ses_attn_stat_index(&a, p, i);
    float delta = 0, sum = 0, dq[R] = { 0 };
    if (x.active) {
        int64_t at = (p.q0 + i) * a.out_row + p.head * a.dim;
        load_row(q, head_rows<T>(a.q, a.q_row, a.q_head, p.q0 + i, a, p.head), a.dim);
        load_row(dout, (const T *)(const void *)g.dout + at, a.dim);
        for (int d = lane; d < a.dim; d += WARP)
            delta += dout[d] * to_float(((const T *)(const void *)a.out)[at + d]);
        delta = warp_sum(delta);
        x.visible = ses_attn_key_range(&a, p, i), x.lse = a.lse[stat], x.lse_lo = lse_lo_of(a, stat);
    }
    /* dbias of masked keys is 0 and is written, too */
    if (dbias.data) all.begin = 0, all.end = p.len_k;
    auto load = [&](int64_t j0) {
        __syncthreads();
        load_tile(k_tile, k, a.k_row, j0, p.len_k, a.dim);
        load_tile(v_tile, v, a.v_row, j0, p.len_k, a.dim);
        __syncthreads();
    };
    bool is_large = x.active && isfinite(x.lse) && fabsf(x.lse) > large_lse;
    for (int64_t j = __syncthreads_or(is_large) ? all.begin : all.end; j < all.end; j += TILE) {
        load(j);
        float prob = prob_at<T>(a, x, j + lane);
        if (prob != 0) sum += prob * dp_at(a, x, drop, j + lane);
    }
    if (is_large) delta = warp_sum(sum);
    if (x.active && lane == 0) g.delta[stat] = delta;
    for (int64_t j = all.begin; j < all.end; j += TILE) {
        load(j);
        if (!x.active) continue;
        float prob = prob_at<T>(a, x, j + lane);
        float ds = prob != 0 ? prob * (dp_at(a, x, drop, j + lane) - delta) : 0;
        if (dbias.data && j + lane < p.len_k) store(dbias, p.probs + i * p.len_k + j + lane, ds);
        for (int n = 0; n < TILE; n++) {
            float w = __shfl_sync(0xffffffffu, ds, n);
            for (int r = 0; r < R; r++)
                if (lane + r * WARP < a.dim) dq[r] += w * k_tile[n * pad + lane + r * WARP];
        }
    }
    if (!x.active || !to.data) return;
    int64_t at = (p.q0 + i) * a.q_row + p.head * ses_attn_head_stride(a.q_head, &a);
    for (int r = 0; r < R; r++)
        if (lane + r * WARP < a.dim) store(to, at + lane + r * WARP, a.scale * dq[r]);
}

/* One warp per key, 32 queries at a time. Needs g.delta. */
template <class T, int R>
__global__ void __launch_bounds__(BLOCK)
    attend_bwd_keys(ses_attn a, ses_attn_grad g, dropout_params drop, int64_t tiles)
{
    extern __shared__ float shared[];
    int pad = padded(a.dim), warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    float *q_tile = shared, *dout_tile = q_tile + TILE * pad;
    float *k = dout_tile + TILE * pad + 2 * warp * pad, *v = k + pad;
    ses_attn_seq_head p = seq_head_at(a, blockIdx.x / tiles);
    int64_t first = blockIdx.x % tiles * WARPS, j = first + warp;
    if (first >= p.len_k) return;
    int64_t rows = p.len_k - first < WARPS ? p.len_k - first : WARPS;
    bool active = warp < rows;
    const T *q = head_rows<T>(a.q, a.q_row, a.q_head, p.q0, a, p.head);
    const T *dout = (const T *)(const void *)g.dout + p.q0 * a.out_row + p.head * a.dim;
    if (active) load_row(k, head_rows<T>(a.k, a.k_row, a.k_head, p.k0 + j, a, p.head), a.dim);
    if (active) load_row(v, head_rows<T>(a.v, a.v_row, a.v_head, p.k0 + j, a, p.head), a.dim);
    int64_t begin = ses_attn_query_range(&a, p, first).begin,
            end = ses_attn_query_range(&a, p, first + rows - 1).end;
    ses_attn_range by = { 0, 0 };
    if (active) by = ses_attn_query_range(&a, p, j);
    float dk[R] = { 0 }, dv[R] = { 0 };
    for (int64_t i0 = begin; i0 < end; i0 += TILE) {
        __syncthreads();
        load_tile(q_tile, q, a.q_row, i0, p.len_q, a.dim);
        load_tile(dout_tile, dout, a.out_row, i0, p.len_q, a.dim);
        __syncthreads();
        if (!active) continue;
        int64_t i = i0 + lane;
        float ds = 0, prob = 0;
        if (i >= by.begin && i < by.end) {
            int64_t stat = ses_attn_stat_index(&a, p, i);
            float s = score_of<T>(a, p, dot(q_tile + lane * pad, k, a.dim), i, j);
            float full_prob = expf(s - a.lse[stat] - lse_lo_of(a, stat)),
                  keep_ij = attn_drop_factor(a, p, drop, i, j);
            ds = full_prob * (__fmul_rn(keep_ij, dot(dout_tile + lane * pad, v, a.dim)) - g.delta[stat]);
            prob = full_prob * keep_ij;
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
    if (!active) return;
    dst<T> to_k = dst_of<T>(g.dk), to_v = dst_of<T>(g.dv);
    int64_t at_k = (p.k0 + j) * a.k_row + p.head * ses_attn_head_stride(a.k_head, &a);
    int64_t at_v = (p.k0 + j) * a.v_row + p.head * ses_attn_head_stride(a.v_head, &a);
    for (int r = 0; r < R; r++) {
        if (lane + r * WARP >= a.dim) continue;
        if (to_k.data) store(to_k, at_k + lane + r * WARP, a.scale * dk[r]);
        if (to_v.data) store(to_v, at_v + lane + r * WARP, dv[r]);
    }
}

/* dS of one query i and one key j. */
template <class T>
__device__ static inline float ds_at(const ses_attn &a, const ses_attn_grad &g, const ses_attn_seq_head &p,
                                     dropout_params drop, int64_t i, int64_t j)
{
    const T *q = head_rows<T>(a.q, a.q_row, a.q_head, p.q0 + i, a, p.head);
    const T *k = head_rows<T>(a.k, a.k_row, a.k_head, p.k0 + j, a, p.head);
    const T *v = head_rows<T>(a.v, a.v_row, a.v_head, p.k0 + j, a, p.head);
    const T *dout = (const T *)(const void *)g.dout + (p.q0 + i) * a.out_row + p.head * a.dim;
    int64_t stat = ses_attn_stat_index(&a, p, i);
    float s = 0, dp = 0;
    for (int64_t d = 0; d < a.dim; d++)
        s += to_float(q[d]) * to_float(k[d]), dp += to_float(dout[d]) * to_float(v[d]);
    float prob = expf(score_of<T>(a, p, s, i, j) - a.lse[stat] - lse_lo_of(a, stat));
    return prob * (__fmul_rn(attn_drop_factor(a, p, drop, i, j), dp) - g.delta[stat]);
}

/* drel_bias: one block per distance and head, summed over all sequences, which share the table. */
template <class T> __global__ void attend_bwd_distances(ses_attn a, ses_attn_grad g, dropout_params drop)
{
    int64_t row = blockIdx.x / a.heads, head = blockIdx.x % a.heads, before = 0;
    float sum = 0;
    for (int64_t s = 0; s < a.seqs; s++) {
        ses_attn_seq_head p = { s,
                                head,
                                a.cu_seqlens_q[s],
                                a.cu_seqlens_q[s + 1] - a.cu_seqlens_q[s],
                                a.cu_seqlens_k[s],
                                ses_attn_key_count(&a, s),
                                0 };
        p.probs = before * a.heads + head * p.len_q * p.len_k;
        before += p.len_q * p.len_k;
        for (int64_t i = threadIdx.x; i < p.len_q; i += blockDim.x) {
            int64_t j = row - (a.max_seqlen_k - 1) + i + p.len_k - p.len_q;
            ses_attn_range visible = ses_attn_key_range(&a, p, i);
            if (j >= visible.begin && j < visible.end) sum += ds_at<T>(a, g, p, drop, i, j);
        }
    }
    sum = block_sum(sum);
    dst<T> to = dst_of<T>(g.drel_bias);
    if (threadIdx.x == 0) store(to, row * a.heads + head, sum);
}

/* ---- launching: R is the number of head columns per lane ---- */

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
        *a, dropout_params_of(a->dropout), tiles);
    check_launch(g);
}

template <class T> static void rel_bias_grad(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad)
{
    unsigned blocks = (unsigned)((2 * a->max_seqlen_k - 1) * a->heads);
    if (!grad->drel_bias.data) return;
    attend_bwd_distances<T>
        <<<blocks, BLOCK, 0, ses_cuda_stream(g)>>>(*a, *grad, dropout_params_of(a->dropout));
    check_launch(g);
}

template <class T, int R> static void backward(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad)
{
    int64_t q_tiles = ceil_div(a->max_seqlen_q, WARPS), k_tiles = ceil_div(a->max_seqlen_k, WARPS),
            parts = a->seqs * a->heads;
    size_t bytes = shared_bytes(a, 2);
    cudaStream_t stream = ses_cuda_stream(g);
    dropout_params drop = dropout_params_of(a->dropout);
    allow_shared(g, attend_bwd_queries<T, R>, bytes);
    allow_shared(g, attend_bwd_keys<T, R>, bytes);
    attend_bwd_queries<T, R><<<(unsigned)(parts * q_tiles), BLOCK, bytes, stream>>>(*a, *grad, drop, q_tiles);
    check_launch(g);
    if (grad->dk.data || grad->dv.data)
        attend_bwd_keys<T, R>
            <<<(unsigned)(parts * k_tiles), BLOCK, bytes, stream>>>(*a, *grad, drop, k_tiles);
    check_launch(g);
    rel_bias_grad<T>(g, a, grad);
}

enum { MAX_HEAD = 640 }; /* R = 20; its tiles fit into the shared memory of a Hopper GPU */
static const char *const too_wide = "attention: heads of more than 640 columns have no CUDA kernel";

/* Kernels for tensor cores in order of preference. The first that supports the arguments is used; otherwise
 * the generic kernels above. */
static const struct impl {
    bool (*forward)(ses_cuda *g, const ses_attn *a);
    bool (*backward)(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad);
} impls[] = {
    { attention_wgmma, attention_wgmma_bwd },
    { attention_hd64, attention_hd64_bwd },
    { attention_mma, attention_mma_bwd },
};

template <class T> static void attention(ses_exec *x, const ses_attn *a);

/* Computes the terms as a bias first. */
static void attention_with_bias(ses_exec *x, const ses_attn *a)
{
    const ses_score_terms *terms = a->terms;
    ses_attn with = *a;
    bf16 *bias = (bf16 *)scratch_lock(x->cuda, (size_t)(terms->pairs * a->heads) * sizeof *bias);
    if (!bias) return;
    with.bias = (const ses_real *)(const void *)bias, with.terms = NULL;
    for (int i = 0; i < terms->n; i++) {
        ses_dst to = { (ses_real *)(void *)bias, i > 0, false };
        relative_bf16(x, &terms->term[i], to);
    }
    attention<bf16>(x, &with);
    scratch_unlock(x->cuda);
}

template <class T> static void attention(ses_exec *x, const ses_attn *a)
{
    if (a->seqs * a->heads * a->max_seqlen_q <= 0) return;
    if (a->terms) {
        if (!attention_terms(x->cuda, a)) attention_with_bias(x, a);
        return;
    }
    for (const impl &w : impls)
        if (sizeof(T) < sizeof(float) && w.forward(x->cuda, a)) return;
    if (a->dim > MAX_HEAD) return record_failure(x->cuda, too_wide);
    if (a->dim <= 32) return forward<T, 1>(x->cuda, a);
    if (a->dim <= 64) return forward<T, 2>(x->cuda, a);
    if (a->dim <= 128) return forward<T, 4>(x->cuda, a);
    if (a->dim <= 256) return forward<T, 8>(x->cuda, a);
    return forward<T, 20>(x->cuda, a);
}

template <class T> static void attention_bwd(ses_exec *x, const ses_attn *a, const ses_attn_grad *g)
{
    if (a->seqs * a->heads * a->max_seqlen_q <= 0) return;
    for (const impl &w : impls)
        if (sizeof(T) < sizeof(float) && w.backward(x->cuda, a, g)) return;
    if (a->dim > MAX_HEAD) return record_failure(x->cuda, too_wide);
    if (a->dim <= 32) return backward<T, 1>(x->cuda, a, g);
    if (a->dim <= 64) return backward<T, 2>(x->cuda, a, g);
    if (a->dim <= 128) return backward<T, 4>(x->cuda, a, g);
    if (a->dim <= 256) return backward<T, 8>(x->cuda, a, g);
    return backward<T, 20>(x->cuda, a, g);
}

void ses_cuda_attention(ses_kernels *k, bool is_bf16)
{
    k->attention = is_bf16 ? attention<bf16> : attention<float>;
    k->attention_bwd = is_bf16 ? attention_bwd<bf16> : attention_bwd<float>;
}
