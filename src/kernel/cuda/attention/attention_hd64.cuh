/* bf16 attention with head size 64 and without biases: the common case of most models. It works like
 * attention_mma_cuda.cu, specialized at compile time. A warp has 16 rows, a block up to 128. In the backward
 * pass, sequences of up to 128 tokens are one block per head, which computes each probability once. Longer
 * sequences use two kernels, one over queries and one over keys, so that no two blocks add to the same
 * element.
 *
 * PLAIN: every query attends to every key. DROP: dropout. */
#ifndef SES_KERNEL_ATTENTION_HD64_CUH
#define SES_KERNEL_ATTENTION_HD64_CUH

#include "attention_mma.cuh"

#include <type_traits>

enum { DH = 64, LD = DH + 8, TILE = SIDE * LD, MAX_ROWS = 128, THREADS = MAX_ROWS * 2, COLS = DH / 8 };

/* Host: calls f(PLAIN, DROP) with these arguments as types. */
template <class F> static void dispatch(const ses_attn *a, F f)
{
    std::true_type yes;
    std::false_type no;
    bool plain = !ses_attn_masked(a), drop = a->dropout > 0;
    if (plain)
        drop ? f(yes, yes) : f(yes, no);
    else
        drop ? f(no, yes) : f(no, no);
}

__device__ static inline int lane_of() { return threadIdx.x % WARP; }
__device__ static inline int warp_of() { return threadIdx.x / WARP; }

/* ---- work items ---- */

struct work {
    ses_attn_seq_head part;
    int len_q, len_k;
    int first; /* first query or key of the block */
};

/* Work item `at`, in the order sequence, head, tile of `rows` rows. */
__device__ static inline work work_of(const ses_attn &a, unsigned at, int tiles, int rows)
{
    unsigned index = at / (unsigned)tiles, heads = (unsigned)a.heads;
    int64_t s = index / heads, q0 = a.cu_seqlens_q[s], k0 = a.cu_seqlens_k[s];
    work w;
    w.len_q = (int)(a.cu_seqlens_q[s + 1] - q0), w.len_k = (int)ses_attn_key_count(&a, s);
    w.part = { s, index % heads, q0, w.len_q, k0, w.len_k, 0 };
    w.first = (int)(at % (unsigned)tiles) * rows;
    return w;
}

struct span {
    int begin, end;
};

template <bool PLAIN> __device__ static inline span key_range(const ses_attn &a, const work &w, int i)
{
    span none = { 0, 0 }, all = { 0, w.len_k };
    if (i >= w.len_q) return none;
    if (PLAIN) return all;
    ses_attn_range v = ses_attn_key_range(&a, w.part, i);
    span s = { (int)v.begin, (int)v.end };
    return s;
}

template <bool PLAIN> __device__ static inline span query_range(const ses_attn &a, const work &w, int j)
{
    span none = { 0, 0 }, all = { 0, w.len_q };
    if (j >= w.len_k) return none;
    if (PLAIN) return all;
    ses_attn_range v = ses_attn_query_range(&a, w.part, j);
    span s = { (int)v.begin, (int)v.end };
    return s;
}

/* Rows first .. first + rows - 1 of the n rows of x; rows past n are zero. */
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

/* out[16][DH] = w' y, for the 16 columns of w [n][ld] from `col` on and y [n][DH]; n is a multiple of 16. */
__device__ static inline void transposed_products(float out[COLS][4], const bf16 *w, int ld, int col,
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
        load_transposed(a, a_at + k * ld);
#pragma unroll
        for (int d = 0; d < DH; d += 16) {
            load_transposed(b, b_at + k * LD + d);
            multiply(out[d / 8], a, b[0], b[1]);
            multiply(out[d / 8 + 1], a, b[2], b[3]);
        }
    }
}

/* Stores the warp's 16 rows of a result, times `by`, to rows first .. of the n rows that start at element
 * `at`. Plain stores go through 16 rows of shared memory, PITCH apart, to write 16 bytes at a time. If PITCH
 * is DH, vector p of row r is at p ^ r % 8 (swizzled). */
template <int PITCH = LD>
__device__ static inline void store_rows(dst<bf16> to, const float c[COLS][4], bf16 *stage, int first, int n,
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
                if (i < n) store(to, at + i * row + d * 8 + 2 * t + e % 2, c[d][e] * by[e / 2]);
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

/* ---- softmax ---- */

/* Sets the scores of masked keys to -infinity; columns start at j0. */
template <int N> __device__ static inline void mask_scores(float (&s)[N][4], const span visible[2], int j0)
{
    int t = lane_of() % 4;
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int j = j0 + n * 8 + 2 * t + e % 2;
            if (j < visible[e / 2].begin || j >= visible[e / 2].end) s[n][e] = -INFINITY;
        }
}

/* Sets dropped probabilities to 0. The kept ones are scaled at the end. */
template <int N>
__device__ static inline void drop_scores(float (&s)[N][4], const ses_attn &a, const int64_t stat[2],
                                          attn_dropout drop, int j0)
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
                    if (!is_kept(word[b], e, drop)) s[n + b][2 * h + e] = 0;
        }
}

/* ---- masks ---- */

/* Keys that any of the queries first .. first + rows - 1 attends to, from a tile boundary on. */
template <bool PLAIN>
__device__ static inline span rows_key_range(const ses_attn &a, const work &w, int first, int rows)
{
    int last = min(first + rows, w.len_q) - 1;
    span s = { key_range<PLAIN>(a, w, first).begin / SIDE * SIDE, key_range<PLAIN>(a, w, last).end };
    return s;
}

__device__ static inline bool all_visible(const span visible[2], int j0, int side = SIDE)
{
    return visible[0].begin <= j0 && visible[0].end >= j0 + side && visible[1].begin <= j0 &&
           visible[1].end >= j0 + side;
}

/* ---- launching ---- */

static inline int rows_for(int64_t max_len)
{
    return max_len < MAX_ROWS ? (int)ceil_div(max_len, 16) * 16 : (int)MAX_ROWS;
}

/* Copies move 16 bytes: strides and addresses must be multiples of 16 bytes. */
static inline bool fits(const ses_attn *a)
{
    int64_t steps = a->q_row | a->k_row | a->v_row | a->out_row | a->q_head | a->k_head | a->v_head;
    int64_t blocks = a->seqs * a->heads *
                     ceil_div(a->max_seqlen_q > a->max_seqlen_k ? a->max_seqlen_q : a->max_seqlen_k, 16);
    return a->dim == DH && !a->rel_bias && !a->bias && steps % 8 == 0 && blocks < INT32_MAX &&
           a->max_seqlen_q < INT32_MAX / 2 && a->max_seqlen_k < INT32_MAX / 2 && aligned16(a->q) &&
           aligned16(a->k) && aligned16(a->v) && aligned16(a->out);
}

static inline bool aligned_dst(ses_dst s) { return s.is_f32 || aligned16(s.data); }

static inline bool fits_bwd(const ses_attn *a, const ses_attn_grad *g)
{
    return fits(a) && aligned16(g->dout) && aligned_dst(g->dq) && aligned_dst(g->dk) && aligned_dst(g->dv);
}

#endif
