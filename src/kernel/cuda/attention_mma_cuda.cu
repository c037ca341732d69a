/* bf16 attention on tensor cores (mma m16n8k16) in the manner of FlashAttention-2 (Dao 2023). A block has 64
 * rows, 16 per warp, and loops over tiles of 64 rows of the other operand, double-buffered in shared memory.
 * Scores and probabilities stay in registers. The backward pass has one kernel for the gradient of the
 * queries and one for the keys: no two blocks add to the same element, so repeated runs give the same
 * bits. */
#include "attention_mma.cuh"

enum { THREADS = 128, TILES = SIDE / 8 };

/* ---- tiles in shared memory: rows of DH + 8 numbers avoid bank conflicts ---- */

template <int DH> struct shape {
    enum { LD = DH + 8, TILE = SIDE * LD };
};

/* Rows first .. first + 63 of x; rows past n and columns past dim are zero. */
template <int DH>
__device__ static inline void load_tile(bf16 *to, const bf16 *x, int64_t row, int64_t first, int64_t n,
                                        int dim)
{
    enum { PACKS = DH / 8 };
    for (int c = threadIdx.x; c < SIDE * PACKS; c += THREADS) {
        int r = c / PACKS, d = c % PACKS * 8;
        bool in = first + r < n && d < dim;
        copy16(to + r * shape<DH>::LD + d, in ? x + (first + r) * row + d : x, in);
    }
}

/* Double-buffered tiles of x and y in shared memory: the next pair is loaded while the current one is
 * used. */
template <int DH> struct tile_pairs {
    bf16 *x, *y;
    const bf16 *from_x, *from_y;
    int64_t x_row, y_row, n;
    int dim;
};

template <int DH> __device__ static inline void load_pair(const tile_pairs<DH> &p, int slot, int64_t first)
{
    load_tile<DH>(p.x + slot * shape<DH>::TILE, p.from_x, p.x_row, first, p.n, p.dim);
    load_tile<DH>(p.y + slot * shape<DH>::TILE, p.from_y, p.y_row, first, p.n, p.dim);
}

template <int DH>
__device__ static inline void first_pair(const tile_pairs<DH> &p, int64_t begin, int64_t end)
{
    if (begin < end) load_pair<DH>(p, 0, begin);
    copies_end();
}

/* Starts loading the pair after j0. Returns the slot of the pair at j0, which is valid after the wait. */
template <int DH>
__device__ static inline int next_pair(const tile_pairs<DH> &p, int64_t begin, int64_t j0, int64_t end)
{
    int now = (int)((j0 - begin) / SIDE % 2);
    if (j0 + SIDE < end) load_pair<DH>(p, 1 - now, j0 + SIDE);
    copies_end();
    return now;
}

/* The warp's rows of a tile. */
template <int DH> __device__ static inline const bf16 *own_rows(const bf16 *tile)
{
    return tile + threadIdx.x / WARP * 16 * shape<DH>::LD;
}

/* out[16][DH] += w[16][64] y, with y a tile of DH columns. */
template <int DH>
__device__ static inline void accumulate_tile(float out[DH / 8][4], const float w[TILES][4], const bf16 *y)
{
    uint32_t a[TILES / 2][4];
#pragma unroll
    for (int k = 0; k < TILES / 2; k++) fragment(a[k], w[2 * k], w[2 * k + 1]);
    accumulate<DH, TILES / 2>(out, a, y, SIDE);
}

/* ---- a warp's 16 rows ---- */

/* The lane's rows, g and g + 8 of the warp, as query indices, and the keys they attend to. */
struct two_rows {
    int64_t i[2];
    ses_attn_range visible[2];
};

__device__ static inline two_rows rows_of(const ses_attn &a, const ses_attn_seq_head &p, int64_t first)
{
    two_rows r;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        ses_attn_range none = { 0, 0 };
        r.i[h] = first + threadIdx.x / WARP * 16 + threadIdx.x % WARP / 4 + 8 * h;
        r.visible[h] = r.i[h] < p.len_q ? ses_attn_key_range(&a, p, r.i[h]) : none;
    }
    return r;
}

/* Biases added to a score before scaling. */
__device__ static inline float unscaled_bias(const ses_attn &a, const ses_attn_seq_head &p, int64_t i,
                                             int64_t j)
{
    return score_bias<bf16>(a, p, i, j) / a.scale;
}

/* Adds the biases to unscaled scores; -infinity for masked keys. */
__device__ static inline void finish_scores(float s[TILES][4], const ses_attn &a, const ses_attn_seq_head &p,
                                            const two_rows &r, int64_t j0)
{
    int t = threadIdx.x % 4;
    bool all = !a.rel_bias && !a.bias;
#pragma unroll
    for (int h = 0; h < 2; h++) all &= r.visible[h].begin <= j0 && r.visible[h].end >= j0 + SIDE;
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int64_t j = j0 + n * 8 + 2 * t + e % 2;
            bool key_range = all || (j >= r.visible[e / 2].begin && j < r.visible[e / 2].end);
            if (key_range && (a.rel_bias || a.bias)) s[n][e] += unscaled_bias(a, p, r.i[e / 2], j);
            if (!key_range) s[n][e] = -INFINITY;
        }
}

/* Multiplies probabilities with the dropout factors. */
__device__ static inline void drop_pairs(float w[TILES][4], const ses_attn &a, const ses_attn_seq_head &p,
                                         attn_dropout drop, const two_rows &r, int64_t j0)
{
    if (a.dropout <= 0) return;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        uint64_t stat = (uint64_t)ses_attn_stat_index(&a, p, r.i[h]);
        uint32_t word[4];
#pragma unroll
        for (int n = 0; n < TILES; n++) {
            if (n % 4 == 0) draw_block(word, a, drop, stat, (uint32_t)j0 + n * 8, threadIdx.x % 4);
#pragma unroll
            for (int e = 0; e < 2; e++) w[n][2 * h + e] *= is_kept(word[n % 4], e, drop) ? drop.scale : 0;
        }
    }
}

/* Stores the rows of a block's result, columns below dim. */
template <int DH>
__device__ static inline void store_rows(dst<bf16> to, const float c[DH / 8][4], int64_t first, int64_t n,
                                         int64_t at, int64_t row, int dim, const float by[2])
{
    int t = threadIdx.x % 4, g = threadIdx.x % WARP / 4, warp = threadIdx.x / WARP;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int64_t i = first + warp * 16 + g + 8 * h;
        if (i >= n) continue;
#pragma unroll
        for (int d = 0; d < DH / 8; d++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                if (d * 8 + 2 * t + e < dim)
                    store(to, at + i * row + d * 8 + 2 * t + e, c[d][2 * h + e] * by[h]);
    }
}

/* ---- forward ---- */

template <int DH>
__global__ void __launch_bounds__(THREADS, DH <= 64 ? 3 : 1)
    attend_mma(ses_attn a, attn_dropout drop, int64_t tiles)
{
    extern __shared__ uint4 shared[];
    bf16 *q = (bf16 *)shared, *k = q + shape<DH>::TILE, *v = k + 2 * shape<DH>::TILE;
    ses_attn_seq_head p = seq_head_at(a, blockIdx.x / tiles);
    int64_t first = blockIdx.x % tiles * SIDE;
    if (first >= p.len_q) return;
    int dim = (int)a.dim;
    int64_t rows = p.len_q - first < SIDE ? p.len_q - first : SIDE;
    const bf16 *from_k = head_rows<bf16>(a.k, a.k_row, a.k_head, p.k0, a, p.head);
    const bf16 *from_v = head_rows<bf16>(a.v, a.v_row, a.v_head, p.k0, a, p.head);
    load_tile<DH>(q, head_rows<bf16>(a.q, a.q_row, a.q_head, p.q0, a, p.head), a.q_row, first, p.len_q, dim);
    ses_attn_range all = block_key_range(a, p, first, rows);
    two_rows r = rows_of(a, p, first);
    float max[2] = { -INFINITY, -INFINITY }, sum[2] = { 0, 0 }, out[DH / 8][4] = {};
    int64_t begin = all.begin / SIDE * SIDE;
    tile_pairs<DH> pairs = { k, v, from_k, from_v, a.k_row, a.v_row, p.len_k, dim };
    first_pair<DH>(pairs, begin, all.end);
    for (int64_t j0 = begin; j0 < all.end; j0 += SIDE) {
        int now = next_pair<DH>(pairs, begin, j0, all.end);
        copies_wait<1>();
        __syncthreads();
        float s[TILES][4];
        products<DH, TILES>(s, own_rows<DH>(q), k + now * shape<DH>::TILE, SIDE);
        finish_scores(s, a, p, r, j0);
        exponentials(s, max, sum, out, a.scale * log2_e);
        drop_pairs(s, a, p, drop, r, j0);
        accumulate_tile<DH>(out, s, v + now * shape<DH>::TILE);
        __syncthreads();
    }
    float by[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float total = quad_sum(sum[h]);
        by[h] = total > 0 ? 1 / total : 0;
        if (a.lse && threadIdx.x % 4 == 0 && r.i[h] < p.len_q)
            store_lse(a, ses_attn_stat_index(&a, p, r.i[h]), __fmul_rn(max[h], a.scale * log2_e), total);
    }
    dst<bf16> to = { (bf16 *)(void *)a.out, false, false };
    store_rows<DH>(to, out, first, p.len_q, p.q0 * a.out_row + p.head * a.dim, a.out_row, dim, by);
}

/* ---- backward ---- */

/* delta_i = dout_i . out_i with LANES lanes per row and head. */
template <int LANES> __global__ void attend_delta(ses_attn a, ses_attn_grad g)
{
    int64_t rows = a.cu_seqlens_q[a.seqs], step = (int64_t)gridDim.x * blockDim.x / LANES,
            all = rows * a.heads;
    int lane = threadIdx.x % LANES;
    int64_t first = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
    /* all lanes of a warp stay in the loop */
    for (int64_t at = first; at - first % (WARP / LANES) < all; at += step) {
        float sum = 0;
        int64_t i = at / a.heads, h = at % a.heads, from = i * a.out_row + h * a.dim;
        for (int d = lane * 8; at < all && d < a.dim; d += LANES * 8) {
            vec16<bf16> x = *(const vec16<bf16> *)((const bf16 *)(const void *)a.out + from + d);
            vec16<bf16> y = *(const vec16<bf16> *)((const bf16 *)(const void *)g.dout + from + d);
            for (int k = 0; k < 8; k++) sum += to_float(x.at[k]) * to_float(y.at[k]);
        }
        for (int d = LANES / 2; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
        if (lane == 0 && at < all) g.delta[h * rows + i] = sum;
    }
}

/* dS_ij = P_ij (M_ij dout_i . v_j - delta_i), P = exp(S - lse - lse_lo); dq = scale dS k */
template <int DH>
__global__ void __launch_bounds__(THREADS, DH <= 64 ? 3 : 1)
    attend_mma_queries(ses_attn a, ses_attn_grad g, attn_dropout drop, int64_t tiles)
{
    extern __shared__ uint4 shared[];
    bf16 *q = (bf16 *)shared, *dout = q + shape<DH>::TILE, *k = dout + shape<DH>::TILE,
         *v = k + 2 * shape<DH>::TILE;
    ses_attn_seq_head p = seq_head_at(a, blockIdx.x / tiles);
    int64_t first = blockIdx.x % tiles * SIDE;
    if (first >= p.len_q) return;
    int dim = (int)a.dim, t = threadIdx.x % 4;
    int64_t rows = p.len_q - first < SIDE ? p.len_q - first : SIDE;
    const bf16 *from_k = head_rows<bf16>(a.k, a.k_row, a.k_head, p.k0, a, p.head);
    const bf16 *from_v = head_rows<bf16>(a.v, a.v_row, a.v_head, p.k0, a, p.head);
    load_tile<DH>(q, head_rows<bf16>(a.q, a.q_row, a.q_head, p.q0, a, p.head), a.q_row, first, p.len_q, dim);
    load_tile<DH>(dout, (const bf16 *)(const void *)g.dout + p.q0 * a.out_row + p.head * a.dim, a.out_row,
                  first, p.len_q, dim);
    ses_attn_range all = block_key_range(a, p, first, rows);
    dst<bf16> dbias = dst_of<bf16>(g.dbias);
    /* dbias of masked keys is 0 and is written, too */
    if (dbias.data) all.begin = 0, all.end = p.len_k;
    two_rows r = rows_of(a, p, first);
    float lse[2] = { 0, 0 }, lse_fix[2] = { 0, 0 }, delta[2] = { 0, 0 }, dq[DH / 8][4] = {};
#pragma unroll
    for (int h = 0; h < 2; h++)
        if (r.i[h] < p.len_q) {
            int64_t stat = ses_attn_stat_index(&a, p, r.i[h]);
            lse[h] = lse_of(a, stat), lse_fix[h] = lse_fix_of(a, stat), delta[h] = g.delta[stat];
        }
    int64_t begin = all.begin / SIDE * SIDE;
    tile_pairs<DH> pairs = { k, v, from_k, from_v, a.k_row, a.v_row, p.len_k, dim };
    first_pair<DH>(pairs, begin, all.end);
    for (int64_t j0 = begin; j0 < all.end; j0 += SIDE) {
        int now = next_pair<DH>(pairs, begin, j0, all.end);
        copies_wait<1>();
        __syncthreads();
        float s[TILES][4], dp[TILES][4];
        products<DH, TILES>(s, own_rows<DH>(q), k + now * shape<DH>::TILE, SIDE);
        finish_scores(s, a, p, r, j0);
        products<DH, TILES>(dp, own_rows<DH>(dout), v + now * shape<DH>::TILE, SIDE);
        drop_pairs(dp, a, p, drop, r, j0);
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                float prob = power2(fmaf(s[n][e], a.scale * log2_e, -lse[e / 2])) * lse_fix[e / 2];
                s[n][e] = prob * (dp[n][e] - delta[e / 2]);
                int64_t i = r.i[e / 2], j = j0 + n * 8 + 2 * t + e % 2;
                if (dbias.data && i < p.len_q && j < p.len_k)
                    store(dbias, p.probs + i * p.len_k + j, s[n][e]);
            }
        accumulate_tile<DH>(dq, s, k + now * shape<DH>::TILE);
        __syncthreads();
    }
    if (!g.dq.data) return;
    float by[2] = { a.scale, a.scale };
    int64_t at = p.q0 * a.q_row + p.head * ses_attn_head_stride(a.q_head, &a);
    store_rows<DH>(dst_of<bf16>(g.dq), dq, first, p.len_q, at, a.q_row, dim, by);
}

/* The lane's keys as rows, and the queries that attend to them. */
struct two_keys {
    int64_t j[2];
    ses_attn_range by[2];
};

__device__ static inline two_keys keys_of(const ses_attn &a, const ses_attn_seq_head &p, int64_t first)
{
    two_keys k;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        ses_attn_range none = { 0, 0 };
        k.j[h] = first + threadIdx.x / WARP * 16 + threadIdx.x % WARP / 4 + 8 * h;
        k.by[h] = k.j[h] < p.len_k ? ses_attn_query_range(&a, p, k.j[h]) : none;
    }
    return k;
}

/* Turns s and dp of 16 keys and the 64 queries from i0 on into P M and dS. */
__device__ static inline void key_probs_and_ds(float (&s)[TILES][4], float (&dp)[TILES][4], const ses_attn &a,
                                               const ses_attn_seq_head &p, attn_dropout drop,
                                               const two_keys &k, int64_t i0, const column_stats &stats)
{
    int t = threadIdx.x % 4;
    float scale = a.scale * log2_e;
#pragma unroll
    for (int n = 0; n < TILES; n++) {
        uint32_t word[2][2] = {};
        if (a.dropout > 0)
            draw_keys(word, a, drop, (uint64_t)ses_attn_stat_index(&a, p, i0 + n * 8 + 2 * t),
                      (uint32_t)k.j[0]);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int c = n * 8 + 2 * t + e % 2;
            int64_t i = i0 + c, j = k.j[e / 2];
            bool key_range = i >= k.by[e / 2].begin && i < k.by[e / 2].end;
            float score = s[n][e], keep_ij = 1;
            if (a.dropout > 0) keep_ij = is_kept(word[e % 2][e / 2], k.j[0] % 2, drop) ? drop.scale : 0;
            if (key_range && (a.rel_bias || a.bias)) score += unscaled_bias(a, p, i, j);
            float prob = key_range ? power2(fmaf(score, scale, -stats.lse[c])) * stats.lse_fix[c] : 0;
            dp[n][e] = key_range ? prob * (keep_ij * dp[n][e] - stats.delta[c]) : 0;
            s[n][e] = prob * keep_ij;
        }
    }
}

/* The same with keys as rows: S', dS' [16 keys][64 queries]; dv = (P M)' dout, dk = scale dS' q */
template <int DH>
__global__ void __launch_bounds__(THREADS, DH <= 64 ? 3 : 1)
    attend_mma_keys(ses_attn a, ses_attn_grad g, attn_dropout drop, int64_t tiles)
{
    extern __shared__ uint4 shared[];
    bf16 *k = (bf16 *)shared, *v = k + shape<DH>::TILE, *q = v + shape<DH>::TILE,
         *dout = q + 2 * shape<DH>::TILE;
    __shared__ column_stats stats;
    ses_attn_seq_head p = seq_head_at(a, blockIdx.x / tiles);
    int64_t first = blockIdx.x % tiles * SIDE;
    if (first >= p.len_k) return;
    int dim = (int)a.dim;
    int64_t rows = p.len_k - first < SIDE ? p.len_k - first : SIDE;
    const bf16 *from_q = head_rows<bf16>(a.q, a.q_row, a.q_head, p.q0, a, p.head);
    const bf16 *from_dout = (const bf16 *)(const void *)g.dout + p.q0 * a.out_row + p.head * a.dim;
    load_tile<DH>(k, head_rows<bf16>(a.k, a.k_row, a.k_head, p.k0, a, p.head), a.k_row, first, p.len_k, dim);
    load_tile<DH>(v, head_rows<bf16>(a.v, a.v_row, a.v_head, p.k0, a, p.head), a.v_row, first, p.len_k, dim);
    int64_t begin = ses_attn_query_range(&a, p, first).begin / SIDE * SIDE;
    int64_t end = ses_attn_query_range(&a, p, first + rows - 1).end;
    two_keys own = keys_of(a, p, first);
    float dk[DH / 8][4] = {}, dv[DH / 8][4] = {};
    tile_pairs<DH> pairs = { q, dout, from_q, from_dout, a.q_row, a.out_row, p.len_q, dim };
    first_pair<DH>(pairs, begin, end);
    for (int64_t i0 = begin; i0 < end; i0 += SIDE) {
        int now = next_pair<DH>(pairs, begin, i0, end);
        load_columns(&stats, a, g, p, i0);
        copies_wait<1>();
        __syncthreads();
        float s[TILES][4], dp[TILES][4];
        products<DH, TILES>(s, own_rows<DH>(k), q + now * shape<DH>::TILE, SIDE);
        products<DH, TILES>(dp, own_rows<DH>(v), dout + now * shape<DH>::TILE, SIDE);
        key_probs_and_ds(s, dp, a, p, drop, own, i0, stats);
        accumulate_tile<DH>(dv, s, dout + now * shape<DH>::TILE);
        accumulate_tile<DH>(dk, dp, q + now * shape<DH>::TILE);
        __syncthreads();
    }
    float scale[2] = { a.scale, a.scale }, one[2] = { 1, 1 };
    if (g.dk.data)
        store_rows<DH>(dst_of<bf16>(g.dk), dk, first, p.len_k,
                       p.k0 * a.k_row + p.head * ses_attn_head_stride(a.k_head, &a), a.k_row, dim, scale);
    if (g.dv.data)
        store_rows<DH>(dst_of<bf16>(g.dv), dv, first, p.len_k,
                       p.k0 * a.v_row + p.head * ses_attn_head_stride(a.v_head, &a), a.v_row, dim, one);
}

/* ---- launching ---- */

/* Copies move 16 bytes: head size, strides and addresses must be multiples of 16 bytes. */
static bool fits(const ses_attn *a)
{
    int64_t steps = a->dim | a->q_row | a->k_row | a->v_row | a->out_row | a->q_head | a->k_head | a->v_head;
    return a->dim <= 128 && steps % 8 == 0 && aligned16(a->q) && aligned16(a->k) && aligned16(a->v) &&
           aligned16(a->out) && !a->probs;
}

template <int DH> static void forward(ses_cuda *g, const ses_attn *a)
{
    int64_t tiles = ceil_div(a->max_seqlen_q, SIDE);
    size_t bytes = 5 * shape<DH>::TILE * sizeof(bf16);
    allow_shared(g, attend_mma<DH>, bytes);
    attend_mma<DH><<<(unsigned)(a->seqs * a->heads * tiles), THREADS, bytes, ses_cuda_stream(g)>>>(
        *a, attn_dropout_of(a), tiles);
    check_launch(g);
}

bool attention_mma(ses_cuda *g, const ses_attn *a)
{
    if (!fits(a)) return false;
    a->dim <= 64 ? forward<64>(g, a) : forward<128>(g, a);
    return true;
}

template <int DH> static void backward(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad)
{
    int64_t q_tiles = ceil_div(a->max_seqlen_q, SIDE), k_tiles = ceil_div(a->max_seqlen_k, SIDE),
            parts = a->seqs * a->heads;
    size_t bytes = 6 * shape<DH>::TILE * sizeof(bf16);
    cudaStream_t stream = ses_cuda_stream(g);
    attn_dropout drop = attn_dropout_of(a);
    attend_delta<8><<<(unsigned)g->sm_count * 8, BLOCK, 0, stream>>>(*a, *grad);
    check_launch(g);
    allow_shared(g, attend_mma_queries<DH>, bytes);
    allow_shared(g, attend_mma_keys<DH>, bytes);
    if (grad->dq.data || grad->dbias.data)
        attend_mma_queries<DH>
            <<<(unsigned)(parts * q_tiles), THREADS, bytes, stream>>>(*a, *grad, drop, q_tiles);
    check_launch(g);
    if (grad->dk.data || grad->dv.data)
        attend_mma_keys<DH>
            <<<(unsigned)(parts * k_tiles), THREADS, bytes, stream>>>(*a, *grad, drop, k_tiles);
    check_launch(g);
}

bool attention_mma_bwd(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad)
{
    ses_attn plain = *a;
    plain.probs = NULL; /* not read by the backward pass */
    if (!fits(&plain) || !aligned16(grad->dout)) return false;
    a->dim <= 64 ? backward<64>(g, a, grad) : backward<128>(g, a, grad);
    return true;
}
