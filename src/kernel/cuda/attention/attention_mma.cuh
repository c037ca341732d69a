/* bf16 attention on tensor cores (mma m16n8k16): parts shared by its kernels.
 *
 * Fragments of lane 4 g + t: A [16, 16] has rows g, g + 8 and columns 2 t, 2 t + 1, 2 t + 8, 2 t + 9; B [16,
 * 8] has rows 2 t, 2 t + 1, 2 t + 8, 2 t + 9 of column g; C [16, 8] has columns 2 t, 2 t + 1 of rows g, g +
 * 8. Two neighboring C fragments form an A fragment: probabilities are used in the next product without a
 * shuffle. */
#ifndef SES_KERNEL_ATTENTION_MMA_CUH
#define SES_KERNEL_ATTENTION_MMA_CUH

#include "attention_cuda.cuh"

static const float log2_e = 1.44269504088896340736f;

/* ---- copies to shared memory: rows of DH + 8 numbers avoid bank conflicts ---- */

__device__ static inline void copy16(bf16 *to, const bf16 *from, bool in)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    int bytes = in ? 16 : 0; /* 0: fills with zeros */
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(at), "l"(from), "r"(bytes));
}

__device__ static inline void copies_end() { asm volatile("cp.async.commit_group;\n" ::); }
template <int N> __device__ static inline void copies_wait()
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(N));
}

/* ---- products ---- */

__device__ static inline void load_matrices(uint32_t r[4], const bf16 *at)
{
    unsigned p = (unsigned)__cvta_generic_to_shared(at);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(p)
                 : "memory");
}

__device__ static inline void load_transposed(uint32_t r[4], const bf16 *at)
{
    unsigned p = (unsigned)__cvta_generic_to_shared(at);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(p)
                 : "memory");
}

__device__ static inline void multiply(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ static inline uint32_t pair(float low, float high)
{
    __nv_bfloat162 p = __floats2bfloat162_rn(low, high);
    return *(uint32_t *)&p;
}

/* C fragments n and n + 1 as an A fragment. */
__device__ static inline void fragment(uint32_t w[4], const float low[4], const float high[4])
{
    w[0] = pair(low[0], low[1]), w[1] = pair(low[2], low[3]);
    w[2] = pair(high[0], high[1]), w[3] = pair(high[2], high[3]);
}

/* ---- products of a warp's 16 rows of DH columns, with rows of DH + 8 numbers in shared memory ---- */

/* c[16][8 N] = x y' for the warp's rows x and rows 0 .. 8 N - 1 of y; rows from n_rows on are ignored. */
template <int DH, int N>
__device__ static inline void products(float c[N][4], const bf16 *x, const bf16 *y, int n_rows)
{
    enum { LD = DH + 8 };
    int lane = threadIdx.x % WARP;
    const bf16 *a_at = x + (lane % 16) * LD + lane / 16 * 8;
    const bf16 *b_at = y + (lane % 8 + lane / 16 * 8) * LD + lane / 8 % 2 * 8;
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) c[n][e] = 0;
#pragma unroll
    for (int k = 0; k < DH; k += 16) {
        uint32_t a[4], b[4];
        load_matrices(a, a_at + k);
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            if (n * 8 >= n_rows) continue;
            load_matrices(b, b_at + n * 8 * LD + k);
            multiply(c[n], a, b[0], b[1]);
            multiply(c[n + 1], a, b[2], b[3]);
        }
    }
}

/* out[16][DH] += w y, with w in fragments of 16 columns; columns from n_cols on are zero. */
template <int DH, int N>
__device__ static inline void accumulate(float out[DH / 8][4], const uint32_t w[N][4], const bf16 *y,
                                         int n_cols)
{
    enum { LD = DH + 8 };
    int lane = threadIdx.x % WARP;
    const bf16 *b_at = y + (lane % 8 + lane / 8 % 2 * 8) * LD + lane / 16 * 8;
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (k * 16 >= n_cols) continue;
#pragma unroll
        for (int n = 0; n < DH; n += 16) {
            uint32_t b[4];
            load_transposed(b, b_at + k * 16 * LD + n);
            multiply(out[n / 8], w[k], b[0], b[1]);
            multiply(out[n / 8 + 1], w[k], b[2], b[3]);
        }
    }
}

/* ---- reductions over the four lanes of a row ---- */

__device__ static inline float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ static inline float quad_sum(float x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/* ---- softmax in base 2 ---- */

__device__ static inline float power2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Turns scores times scale into exponentials and rescales the sums. max is the maximum of the unscaled
 * scores. */
template <int N, int D>
__device__ static inline void exponentials(float (&s)[N][4], float max[2], float sum[2], float (&out)[D][4],
                                           float scale)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float top = max[h];
#pragma unroll
        for (int n = 0; n < N; n++) top = fmaxf(top, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
        top = quad_max(top);
        float base = top == -INFINITY ? 0 : __fmul_rn(top, scale),
              rescale = power2(__fmul_rn(max[h], scale) - base);
        max[h] = top;
        sum[h] *= rescale;
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int e = 2 * h; e < 2 * h + 2; e++)
                s[n][e] = power2(fmaf(s[n][e], scale, -base)), sum[h] += s[n][e];
#pragma unroll
        for (int d = 0; d < D; d++) out[d][2 * h] *= rescale, out[d][2 * h + 1] *= rescale;
    }
}

/* Stores lse of a row whose exponentials relative to base sum up to sum; sum 0: no visible key. */
__device__ static inline void store_lse(const ses_attn &a, int64_t stat, float base, float sum)
{
    bool key_range = sum > 0;
    float log = log2f(sum), lse = key_range ? (base + log) / log2_e : -INFINITY;
    float lo = key_range && fabsf(lse) > large_lse ? base - __fmul_rn(lse, log2_e) + log : 0;
    a.lse[stat] = lse;
    if (a.lse_lo) a.lse_lo[stat] = lo / log2_e;
}

/* Read by the backward pass: lse in base 2 (infinite without visible keys), and the factor, usually 1, that
 * corrects power2(S - lse) for large scores. */
__device__ static inline float lse_of(const ses_attn &a, int64_t stat)
{
    float lse = a.lse[stat];
    return lse == -INFINITY ? INFINITY : __fmul_rn(lse, log2_e);
}

__device__ static inline float lse_fix_of(const ses_attn &a, int64_t stat)
{
    return power2(-lse_lo_of(a, stat) * log2_e);
}

enum { SIDE = 64 }; /* rows per tile */

/* Statistics of a tile's queries, for kernels in which queries are columns. */
struct column_stats {
    float lse[SIDE], lse_fix[SIDE], delta[SIDE];
};

/* Loads the statistics of the queries from i0 on, one per thread; returns the thread's lse_fix. */
__device__ static inline float load_columns(column_stats *to, const ses_attn &a, const ses_attn_grad &g,
                                            const ses_attn_seq_head &p, int64_t i0)
{
    int c = threadIdx.x;
    bool valid = i0 + c < p.len_q;
    int64_t stat = ses_attn_stat_index(&a, p, i0 + c);
    if (c >= SIDE) return 1;
    to->lse[c] = valid ? lse_of(a, stat) : INFINITY;
    to->delta[c] = valid ? g.delta[stat] : 0;
    return to->lse_fix[c] = valid ? lse_fix_of(a, stat) : 1;
}

/* ---- dropout: see ses_dropout_swizzle ---- */

/* Dropout as a kernel argument: the Philox round keys are precomputed and read as constants at no cost. */
struct attn_dropout {
    uint32_t threshold;
    float scale;
    uint32_t key[SES_DROPOUT_ROUNDS][2];
};

static inline attn_dropout attn_dropout_of(const ses_attn *a)
{
    dropout_params d = dropout_params_of(a->dropout);
    attn_dropout x = { d.threshold, d.scale, {} };
    for (uint32_t r = 0; r < SES_DROPOUT_ROUNDS; r++) {
        x.key[r][0] = (uint32_t)a->rng_key.seed + r * 0x9E3779B9u;
        x.key[r][1] = (uint32_t)(a->rng_key.seed >> 32) + r * 0xBB67AE85u;
    }
    return x;
}

/* Philox block of the row with index `stat` that holds the numbers of columns 2 c, 2 c + 1 of each 8 of the
 * 32 keys from j0 on: word b decides about columns 8 b + .... Computes ses_philox_rounds. */
__device__ static inline void draw_block(uint32_t word[4], const ses_attn &a, const attn_dropout &drop,
                                         uint64_t stat, uint32_t j0, uint32_t c)
{
    uint64_t index = stat * (ses_dropout_row_stride((uint64_t)a.max_seqlen_k) / 8) + j0 / 8 + c;
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32), c2 = a.rng_key.step, c3 = a.rng_key.site;
#pragma unroll
    for (int r = 0; r < SES_DROPOUT_ROUNDS; r++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ drop.key[r][0], c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ drop.key[r][1], c3 = (uint32_t)p0;
    }
    word[0] = c0, word[1] = c1, word[2] = c2, word[3] = c3;
}

/* True if the first or second of two neighbors is kept. */
__device__ static inline bool is_kept(uint32_t word, int second, const attn_dropout &drop)
{
    return (second ? word >> 16 : word & 0xffff) >= drop.threshold;
}

/* Keys as rows: the words for keys `key` and `key` + 8 of queries stat and stat + 1, word[query][key].
 * The neighbor of a key in its block belongs to the lane 4 away; each of the two lanes draws for one
 * query. */
__device__ static inline void draw_keys(uint32_t word[2][2], const ses_attn &a, const attn_dropout &drop,
                                        uint64_t stat, uint32_t key)
{
    uint32_t d[4], odd = key & 1;
    draw_block(d, a, drop, stat + odd, key & ~31u, key / 2 % 4);
    bool high = key & 16;
    uint32_t mine[2] = { high ? d[2] : d[0], high ? d[3] : d[1] };
#pragma unroll
    for (int k = 0; k < 2; k++) {
        uint32_t other = __shfl_xor_sync(0xffffffffu, mine[k], 4);
        word[0][k] = odd ? other : mine[k];
        word[1][k] = odd ? mine[k] : other;
    }
}

#endif
