/* Attention of bf16 in heads of 64 without biases, where most of the time of most models goes; the manner of
 * attention_mma_cuda.cu with what is known beforehand left out. A warp has 16 rows, a block up to 128.
 * Backwards, sequences of up to 128 tokens are one block a head, which makes each probability once; longer
 * ones are two kernels, one by queries and one by keys, so that nothing is added by two blocks.
 *
 * PLAIN: every query sees every key. DROP: dropout. */
#ifndef SES_KERNEL_ATTENTION_FAST_CUH
#define SES_KERNEL_ATTENTION_FAST_CUH

#include "attention_mma.cuh"

#include <type_traits>

enum { DH = 64, LD = DH + 8, TILE = SIDE * LD, MOST = 128, THREADS = MOST * 2, COLS = DH / 8 };

/* On the host: f(PLAIN, DROP) of these arguments, as types. */
template <class F> static void by_kind(const ses_attn *a, F f)
{
    std::true_type yes;
    std::false_type no;
    bool plain = !a->causal && !a->window, drop = a->dropout > 0;
    if (plain)
        drop ? f(yes, yes) : f(yes, no);
    else
        drop ? f(no, yes) : f(no, no);
}

__device__ static inline int lane_of() { return threadIdx.x % WARP; }
__device__ static inline int warp_of() { return threadIdx.x / WARP; }

/* ---- what a block works on ---- */

struct work {
    ses_attn_part part;
    int len_q, len_k;
    int first; /* row of the block, a query or a key */
};

/* Item `at` of sequences, their heads, their `tiles` of `rows`. */
__device__ static inline work work_of(const ses_attn &a, unsigned at, int tiles, int rows)
{
    unsigned index = at / (unsigned)tiles, heads = (unsigned)a.heads;
    int64_t s = index / heads, q0 = a.cu_seqlens_q[s], k0 = a.cu_seqlens_k[s];
    work w;
    w.len_q = (int)(a.cu_seqlens_q[s + 1] - q0), w.len_k = (int)ses_attn_keys(&a, s);
    w.part = { s, index % heads, q0, w.len_q, k0, w.len_k, 0 };
    w.first = (int)(at % (unsigned)tiles) * rows;
    return w;
}

struct span {
    int begin, end;
};

template <bool PLAIN> __device__ static inline span seen(const ses_attn &a, const work &w, int i)
{
    span none = { 0, 0 }, all = { 0, w.len_k };
    if (i >= w.len_q) return none;
    if (PLAIN) return all;
    ses_attn_view v = ses_attn_sees(&a, w.part, i);
    span s = { (int)v.begin, (int)v.end };
    return s;
}

template <bool PLAIN> __device__ static inline span seen_by(const ses_attn &a, const work &w, int j)
{
    span none = { 0, 0 }, all = { 0, w.len_q };
    if (j >= w.len_k) return none;
    if (PLAIN) return all;
    ses_attn_view v = ses_attn_seen_by(&a, w.part, j);
    span s = { (int)v.begin, (int)v.end };
    return s;
}

/* Rows first .. first + rows - 1 of n; those past them are zero. */
__device__ static inline void load_rows(bf16 *to, const bf16 *x, int64_t row, int first, int rows, int n)
{
    for (int c = threadIdx.x; c < rows * (DH / 8); c += blockDim.x) {
        int r = c / (DH / 8), d = c % (DH / 8) * 8;
        bool in = first + r < n;
        copy16(to + r * LD + d, in ? x + (int64_t)(first + r) * row + d : x, in);
    }
}

__device__ static inline const bf16 *dout_of(const ses_attn &a, const ses_attn_grad &g, const work &w)
{
    return (const bf16 *)(const void *)g.dout + w.part.q0 * a.out_row + w.part.head * a.dim;
}

/* ---- products of a warp's 16 rows ---- */

/* out[16][DH] = w' y: w [n][ld] of which the 16 columns from `col` on are meant, y [n][DH]; n in whole 16. */
__device__ static inline void turned_products(float out[COLS][4], const bf16 *w, int ld, int col,
                                              const bf16 *y, int n)
{
    int lane = lane_of();
    const bf16 *a_at = w + (lane % 8 + lane / 16 * 8) * ld + col + lane / 8 % 2 * 8;
    const bf16 *b_at = y + (lane % 8 + lane / 8 % 2 * 8) * LD + lane / 16 * 8;
#pragma unroll
    for (int d = 0; d < COLS; d++)
#pragma unroll
        for (int e = 0; e < 4; e++) out[d][e] = 0;
    for (int k = 0; k < n; k += 16) {
        uint32_t a[4], b[4];
        load_turned(a, a_at + k * ld);
#pragma unroll
        for (int d = 0; d < DH; d += 16) {
            load_turned(b, b_at + k * LD + d);
            multiply(out[d / 8], a, b[0], b[1]);
            multiply(out[d / 8 + 1], a, b[2], b[3]);
        }
    }
}

/* The warp's 16 rows of a result, times `by`, to rows `first` .. of the n that `at` begins with: through the
 * warp's own 16 rows of shared memory, PITCH apart, where whole packs are simply stored. With a PITCH of DH
 * pack p of row r stands at p ^ r % 8. */
template <int PITCH = LD>
__device__ static inline void put_rows(sink<bf16> to, const float c[COLS][4], bf16 *stage, int first, int n,
                                       int64_t at, int64_t row, const float by[2])
{
    int lane = lane_of(), g = lane / 4, t = lane % 4;
    if (!to.data || first >= n) return;
    if (to.accumulate || to.is_f32) {
#pragma unroll
        for (int d = 0; d < COLS; d++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int i = first + g + e / 2 * 8;
                if (i < n) put(to, at + i * row + d * 8 + 2 * t + e % 2, c[d][e] * by[e / 2]);
            }
        return;
    }
    __syncwarp();
#pragma unroll
    for (int d = 0; d < COLS; d++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            *(uint32_t *)(stage + (g + 8 * h) * PITCH + (PITCH == DH ? d ^ g : d) * 8 + 2 * t) =
                pair(c[d][2 * h] * by[h], c[d][2 * h + 1] * by[h]);
    __syncwarp();
#pragma unroll
    for (int c8 = 0; c8 < 4; c8++) {
        int r = c8 * 4 + lane / 8, p = lane % 8;
        if (first + r < n)
            *(uint4 *)(to.data + at + (int64_t)(first + r) * row + p * 8) =
                *(const uint4 *)(stage + r * PITCH + (PITCH == DH ? p ^ r % 8 : p) * 8);
    }
}

/* ---- a row of scores becomes probabilities ---- */

/* Scores of keys that a row does not see become minus infinity; columns from j0 on. */
template <int N> __device__ static inline void hide(float (&s)[N][4], const span sees[2], int j0)
{
    int t = lane_of() % 4;
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int j = j0 + n * 8 + 2 * t + e % 2;
            if (j < sees[e / 2].begin || j >= sees[e / 2].end) s[n][e] = -INFINITY;
        }
}

/* What dropout takes becomes 0; the scale of the rest is left to the end. */
template <int N>
__device__ static inline void drop_keys(float (&s)[N][4], const ses_attn &a, const int64_t stat[2],
                                        dropout drop, int j0)
{
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int n = 0; n < N; n += 4) {
            uint32_t word[4];
            draw_block(word, a, drop, (uint64_t)stat[h], (uint32_t)(j0 + n * 8), lane_of() % 4);
#pragma unroll
            for (int b = 0; b < 4; b++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (!keeps(word[b], e, drop)) s[n + b][2 * h + e] = 0;
        }
}

/* ---- who sees whom ---- */

/* The keys some row of first .. first + rows - 1 sees, from a whole tile on. */
template <bool PLAIN>
__device__ static inline span seen_by_rows(const ses_attn &a, const work &w, int first, int rows)
{
    int last = min(first + rows, w.len_q) - 1;
    span s = { seen<PLAIN>(a, w, first).begin / SIDE * SIDE, seen<PLAIN>(a, w, last).end };
    return s;
}

__device__ static inline bool sees_all(const span sees[2], int j0, int side = SIDE)
{
    return sees[0].begin <= j0 && sees[0].end >= j0 + side && sees[1].begin <= j0 && sees[1].end >= j0 + side;
}

/* ---- for launching ---- */

static inline int rows_for(int64_t longest)
{
    return longest < MOST ? (int)ceil_div(longest, 16) * 16 : (int)MOST;
}

/* Copies are of 16 bytes: rows and addresses must be whole ones. */
static inline bool fits(const ses_attn *a)
{
    int64_t steps = a->q_row | a->k_row | a->v_row | a->out_row | a->q_head | a->k_head | a->v_head;
    int64_t blocks = a->seqs * a->heads *
                     ceil_div(a->max_seqlen_q > a->max_seqlen_k ? a->max_seqlen_q : a->max_seqlen_k, 16);
    return a->dim == DH && !a->rel_bias && !a->bias && steps % 8 == 0 && blocks < INT32_MAX &&
           a->max_seqlen_q < INT32_MAX / 2 && a->max_seqlen_k < INT32_MAX / 2 && whole_packs(a->q) &&
           whole_packs(a->k) && whole_packs(a->v) && whole_packs(a->out);
}

static inline bool whole_sink(ses_dst s) { return s.is_f32 || whole_packs(s.data); }

static inline bool fits_bwd(const ses_attn *a, const ses_attn_grad *g)
{
    return fits(a) && whole_packs(g->dout) && whole_sink(g->dq) && whole_sink(g->dk) && whole_sink(g->dv);
}

#endif
