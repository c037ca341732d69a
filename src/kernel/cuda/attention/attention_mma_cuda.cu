/* bf16 attention on tensor cores (mma m16n8k16) in the manner of FlashAttention-2 (Dao 2023). A block has 64
 * rows, 16 per warp, and loops over tiles of 64 rows of the other operand, double-buffered in shared memory.
 * Scores and probabilities stay in registers. The backward pass has one kernel for the gradient of the
 * queries and one for the keys: no two blocks add to the same element, so repeated runs give the same
 * bits. */
#include "mma_tiles.cuh"

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

/* Sums of a block's dS along diagonals, for the gradient of rel_bias: entry c belongs to the pairs with j
 * - (i - first) = c - 63. A tile is stored as rows of DIAGONAL_LD numbers, so that a diagonal's threads
 * hit different banks. */
enum { DIAGONAL_LD = SIDE + 1 };

/* Adds the tile of the keys from j0 on. */
__device__ static inline void add_diagonals(float *sums, float *tile, const float s[TILES][4], int64_t j0)
{
    int t = threadIdx.x % 4, g = threadIdx.x % WARP / 4, c = threadIdx.x;
    float *own = tile + (threadIdx.x / WARP * 16 + g) * DIAGONAL_LD + 2 * t, sum = 0;
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) own[e / 2 * 8 * DIAGONAL_LD + n * 8 + e % 2] = s[n][e];
    __syncthreads();
    if (c >= 2 * SIDE - 1) return;
    int low = c < SIDE ? SIDE - 1 - c : 0, high = c < SIDE ? SIDE : 2 * SIDE - 1 - c;
    for (int i = low; i < high; i++) sum += tile[i * DIAGONAL_LD + i + c - (SIDE - 1)];
    sums[j0 + c] += sum;
}

/* drel_bias: the sums of all blocks, [sequence][tile][heads][width], in order. */
__global__ static void attend_diagonals(ses_attn a, const float *sums, dst<bf16> to, int64_t tiles,
                                        int64_t width)
{
    int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, head = blockIdx.y;
    float sum = 0;
    if (row >= 2 * a.max_seqlen_k - 1) return;
    for (int64_t s = 0; s < a.seqs; s++) {
        int64_t len_q = a.cu_seqlens_q[s + 1] - a.cu_seqlens_q[s], len_k = ses_attn_key_count(&a, s);
        for (int64_t tile = 0; tile * SIDE < len_q; tile++) {
            int64_t c = row - (a.max_seqlen_k - 1) + tile * SIDE + len_k - len_q + SIDE - 1;
            if (c >= 0 && c < len_k + SIDE - 1)
                sum += sums[((s * tiles + tile) * a.heads + head) * width + c];
        }
    }
    store(to, row * a.heads + head, sum);
}

/* Stores dS of the tile of the keys from j0 on. */
__device__ static inline void store_pairs(dst<bf16> to, const float s[TILES][4], const ses_attn_seq_head &p,
                                          const two_rows &r, int64_t j0)
{
    int t = threadIdx.x % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        if (r.i[h] >= p.len_q) continue;
        int64_t at = p.probs + r.i[h] * p.len_k + j0 + 2 * t;
        int n_keys = p.len_k - j0 < SIDE ? (int)(p.len_k - j0) : SIDE;
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                if (n * 8 + 2 * t + e < n_keys) store(to, at + n * 8 + e, s[n][2 * h + e]);
    }
}

/* dS_ij = P_ij (M_ij dout_i . v_j - delta_i), P = exp(S - lse - lse_lo); dq = scale dS k. diagonals: see
 * attend_diagonals; NULL: not wanted. */
template <int DH>
__global__ void __launch_bounds__(THREADS, DH <= 64 ? 3 : 1)
    attend_mma_queries(ses_attn a, ses_attn_grad g, attn_dropout drop, int64_t tiles, float *diagonals,
                       int64_t width)
{
    extern __shared__ uint4 shared[];
    bf16 *q = (bf16 *)shared, *dout = q + shape<DH>::TILE, *k = dout + shape<DH>::TILE,
         *v = k + 2 * shape<DH>::TILE;
    float *tile = (float *)(v + 2 * shape<DH>::TILE),
          *sums = tile + SIDE * DIAGONAL_LD; /* with diagonals only */
    ses_attn_seq_head p = seq_head_at(a, blockIdx.x / tiles);
    int64_t first = blockIdx.x % tiles * SIDE;
    if (first >= p.len_q) return;
    for (int c = threadIdx.x; diagonals && c < width; c += THREADS) sums[c] = 0;
    int dim = (int)a.dim;
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
            }
        if (dbias.data) store_pairs(dbias, s, p, r, j0);
        if (diagonals) add_diagonals(sums, tile, s, j0);
        accumulate_tile<DH>(dq, s, k + now * shape<DH>::TILE);
        __syncthreads();
    }
    if (diagonals) diagonals += ((p.seq * tiles + blockIdx.x % tiles) * a.heads + p.head) * width;
    for (int64_t c = threadIdx.x; diagonals && c < p.len_k + SIDE - 1; c += THREADS) diagonals[c] = sums[c];
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
    bool biased = a.rel_bias || a.bias;
    bias_line line[2];
#pragma unroll
    for (int h = 0; h < 2; h++) line[h] = bias_from(a, p, i0 + 2 * t, k.j[h], true);
#pragma unroll
    for (int n = 0; n < TILES; n++) {
        uint32_t word[2][2] = {};
        if (a.dropout > 0)
            draw_keys(word, a, drop, (uint64_t)ses_attn_stat_index(&a, p, i0 + n * 8 + 2 * t),
                      (uint32_t)k.j[0]);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int c = n * 8 + 2 * t + e % 2;
            int64_t i = i0 + c;
            bool key_range = i >= k.by[e / 2].begin && i < k.by[e / 2].end;
            float score = s[n][e], keep_ij = 1;
            if (a.dropout > 0) keep_ij = is_kept(word[e % 2][e / 2], k.j[0] % 2, drop) ? drop.scale : 0;
            if (key_range && biased) score += bias_at(line[e / 2], n * 8 + e % 2);
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
bool attention_mma_fits(const ses_attn *a)
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
    if (!attention_mma_fits(a)) return false;
    a->dim <= 64 ? forward<64>(g, a) : forward<128>(g, a);
    return true;
}

enum { MAX_DIAGONALS = 20000 }; /* sums along diagonals fit into shared memory */

/* Entries of a block's sums along diagonals. */
static int64_t diagonal_count(const ses_attn *a) { return ceil_div(a->max_seqlen_k, SIDE) * SIDE + SIDE; }

/* The gradients of the queries and of both biases. */
template <int DH> static void backward_queries(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad)
{
    int64_t tiles = ceil_div(a->max_seqlen_q, SIDE), parts = a->seqs * a->heads, width = diagonal_count(a);
    size_t bytes = 6 * shape<DH>::TILE * sizeof(bf16);
    cudaStream_t stream = ses_cuda_stream(g);
    float *sums = NULL;
    if (grad->drel_bias.data) {
        sums = (float *)scratch_lock(g, (size_t)(parts * tiles * width) * sizeof *sums);
        if (!sums) return;
        bytes += (size_t)(SIDE * DIAGONAL_LD + width) * sizeof *sums;
    }
    allow_shared(g, attend_mma_queries<DH>, bytes);
    if (grad->dq.data || grad->dbias.data || sums)
        attend_mma_queries<DH><<<(unsigned)(parts * tiles), THREADS, bytes, stream>>>(
            *a, *grad, attn_dropout_of(a), tiles, sums, width);
    check_launch(g);
    if (!sums) return;
    dim3 blocks((unsigned)ceil_div(2 * a->max_seqlen_k - 1, WARP), (unsigned)a->heads);
    attend_diagonals<<<blocks, WARP, 0, stream>>>(*a, sums, dst_of<bf16>(grad->drel_bias), tiles, width);
    check_launch(g);
    scratch_unlock(g);
}

template <int DH> static void backward(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad)
{
    int64_t tiles = ceil_div(a->max_seqlen_k, SIDE);
    size_t bytes = 6 * shape<DH>::TILE * sizeof(bf16);
    cudaStream_t stream = ses_cuda_stream(g);
    attend_delta<8><<<(unsigned)g->sm_count * 8, BLOCK, 0, stream>>>(*a, *grad);
    check_launch(g);
    backward_queries<DH>(g, a, grad);
    allow_shared(g, attend_mma_keys<DH>, bytes);
    if (grad->dk.data || grad->dv.data)
        attend_mma_keys<DH><<<(unsigned)(a->seqs * a->heads * tiles), THREADS, bytes, stream>>>(
            *a, *grad, attn_dropout_of(a), tiles);
    check_launch(g);
}

bool attention_mma_bwd(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad)
{
    ses_attn plain = *a;
    plain.probs = NULL; /* not read by the backward pass */
    if (!attention_mma_fits(&plain) || !aligned16(grad->dout)) return false;
    if (grad->drel_bias.data && diagonal_count(a) > MAX_DIAGONALS) return false;
    a->dim <= 64 ? backward<64>(g, a, grad) : backward<128>(g, a, grad);
    return true;
}
