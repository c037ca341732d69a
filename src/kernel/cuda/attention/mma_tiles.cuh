/* Blocks of 128 threads that work on tiles of 64 rows, 16 per warp, with products on tensor cores. */
#ifndef SES_KERNEL_MMA_TILES_CUH
#define SES_KERNEL_MMA_TILES_CUH

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

/* Biases of one query's, or one key's, scores, added before scaling: of the pair `step` pairs ahead in a
 * row or column of scores. */
struct bias_line {
    const bf16 *bias, *rel; /* NULL: none */
    int64_t bias_step, rel_step;
    float scale; /* 1 / the scale of scores */
};

/* Keys from j on of query i, or queries from i on of key j. */
__device__ static inline bias_line bias_from(const ses_attn &a, const ses_attn_seq_head &p, int64_t i,
                                             int64_t j, bool of_key)
{
    bias_line x = { NULL, NULL, of_key ? p.len_k : 1, of_key ? -a.heads : a.heads, 1 / (float)a.scale };
    if (a.bias) x.bias = (const bf16 *)(const void *)a.bias + p.probs + i * p.len_k + j;
    if (a.rel_bias)
        x.rel = (const bf16 *)(const void *)a.rel_bias + ses_attn_rel_row(&a, p, i, j) * a.heads + p.head;
    return x;
}

__device__ static inline float bias_at(const bias_line &x, int step)
{
    float sum = 0;
    if (x.bias) sum += to_float(x.bias[step * x.bias_step]);
    if (x.rel) sum += to_float(x.rel[step * x.rel_step]);
    return sum * x.scale;
}

/* Adds the biases to unscaled scores; -infinity for masked keys. */
__device__ static inline void finish_scores(float s[TILES][4], const ses_attn &a, const ses_attn_seq_head &p,
                                            const two_rows &r, int64_t j0)
{
    int t = threadIdx.x % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        bool all = r.visible[h].begin <= j0 && r.visible[h].end >= j0 + SIDE, biased = a.rel_bias || a.bias;
        if (all && !biased) continue;
        bias_line line = bias_from(a, p, r.i[h], j0 + 2 * t, false);
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int e = 2 * h; e < 2 * h + 2; e++) {
                int step = n * 8 + e % 2;
                int64_t j = j0 + 2 * t + step;
                bool key_range = all || (j >= r.visible[h].begin && j < r.visible[h].end);
                if (!key_range)
                    s[n][e] = -INFINITY;
                else if (biased)
                    s[n][e] += bias_at(line, step);
            }
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

/* ---- rows of relative positions ---- */

/* Rows of r of the distances e0 .. e0 + 63 between the tokens of a pair; of distances from `end` on:
 * zeros. */
template <int DH>
__device__ static inline void load_distances(bf16 *to, const ses_relative &a, const ses_rel_seq_head &p,
                                             int64_t e0, int64_t end)
{
    enum { PACKS = DH / 8 };
    const bf16 *r = (const bf16 *)(const void *)a.r;
    for (int at = threadIdx.x; at < SIDE * PACKS; at += THREADS) {
        int c = at / PACKS, d = at % PACKS * 8;
        int64_t e = e0 + c, row = (p.reversed ? -e : e) + a.max_seqlen_k - 1;
        bool in = e < end && d < a.dim && row >= 0 && row < 2 * a.max_seqlen_k - 1;
        copy16(to + c * shape<DH>::LD + d, in ? r + (a.dist_to_row[row] * a.heads + p.head) * a.dim + d : r,
               in);
    }
}

#endif
