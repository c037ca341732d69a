/* Attention of bf16 on tensor cores (mma m16n8k16): what its kernels share.
 *
 * Fragments, for lane 4 g + t: A [16, 16] holds rows g and g + 8, columns 2 t, 2 t + 1 and those + 8;
 * B [16, 8] rows 2 t, 2 t + 1 and those + 8 of column g; C [16, 8] columns 2 t, 2 t + 1 of rows g and g + 8.
 * Two neighboring C are one A: probabilities go into the next product as they are. */
#ifndef SES_KERNEL_ATTENTION_MMA_CUH
#define SES_KERNEL_ATTENTION_MMA_CUH

#include "attention_cuda.cuh"

static const float log2_e = 1.44269504088896340736f;

/* ---- to shared memory: rows are 8 numbers longer than DH, so that they meet all banks ---- */

__device__ static inline void copy16(bf16 *to, const bf16 *from, bool in)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    int bytes = in ? 16 : 0; /* the rest is zeros */
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

__device__ static inline void load_turned(uint32_t r[4], const bf16 *at)
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

/* C's two neighbors n and n + 1 as an A. */
__device__ static inline void fragment(uint32_t w[4], const float low[4], const float high[4])
{
    w[0] = pair(low[0], low[1]), w[1] = pair(low[2], low[3]);
    w[2] = pair(high[0], high[1]), w[3] = pair(high[2], high[3]);
}

/* ---- products of a warp's 16 rows, of DH columns, in shared memory with rows of DH + 8 ---- */

/* c[16][8 N] = x y' for x the warp's rows and y rows 0 .. 8 N - 1; those from n_rows on do not count. */
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

/* out[16][DH] += w y, w of 16 columns a fragment, of which those from n_cols on are zero. */
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
            load_turned(b, b_at + k * 16 * LD + n);
            multiply(out[n / 8], w[k], b[0], b[1]);
            multiply(out[n / 8 + 1], w[k], b[2], b[3]);
        }
    }
}

/* ---- rows of a quad of lanes ---- */

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

/* ---- a row of scores becomes probabilities: to the base 2 ---- */

__device__ static inline float power2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Scores, times scale, become exponentials; what was summed up shrinks. max is of the scores as they come. */
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
              shrink = power2(__fmul_rn(max[h], scale) - base);
        max[h] = top;
        sum[h] *= shrink;
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int e = 2 * h; e < 2 * h + 2; e++)
                s[n][e] = power2(fmaf(s[n][e], scale, -base)), sum[h] += s[n][e];
#pragma unroll
        for (int d = 0; d < D; d++) out[d][2 * h] *= shrink, out[d][2 * h + 1] *= shrink;
    }
}

/* For the way back, of a row whose exponentials less base sum up to sum, 0: it sees nothing. */
__device__ static inline void put_lse(const ses_attn &a, int64_t stat, float base, float sum)
{
    bool seen = sum > 0;
    float log = log2f(sum), lse = seen ? (base + log) / log2_e : -INFINITY;
    float lacks = seen && fabsf(lse) > large ? base - __fmul_rn(lse, log2_e) + log : 0;
    a.lse[stat] = lse;
    if (a.lse_lo) a.lse_lo[stat] = lacks / log2_e;
}

/* On the way back: lse, infinite where nothing is seen, and the factor, 1 for most, that makes of
 * power2(S - lse) a probability where scores are large. */
__device__ static inline float lse_of(const ses_attn &a, int64_t stat)
{
    float lse = a.lse[stat];
    return lse == -INFINITY ? INFINITY : __fmul_rn(lse, log2_e);
}

__device__ static inline float mend_of(const ses_attn &a, int64_t stat)
{
    return power2(-rest_of(a, stat) * log2_e);
}

enum { SIDE = 64 }; /* rows of a tile */

/* What is known of a tile's queries, where they are columns. */
struct column_stats {
    float lse[SIDE], mend[SIDE], delta[SIDE];
};

/* Of the part's queries from i0 on, one a thread; returns what the thread's is mended by. */
__device__ static inline float load_columns(column_stats *to, const ses_attn &a, const ses_attn_grad &g,
                                            const ses_attn_part &p, int64_t i0)
{
    int c = threadIdx.x;
    bool there = i0 + c < p.len_q;
    int64_t stat = ses_attn_stat(&a, p, i0 + c);
    if (c >= SIDE) return 1;
    to->lse[c] = there ? lse_of(a, stat) : INFINITY;
    to->delta[c] = there ? g.delta[stat] : 0;
    return to->mend[c] = there ? mend_of(a, stat) : 1;
}

/* ---- dropout: see ses_dropout_swizzle ---- */

/* As the kernels take it: what is added to Philox's key in each round stands beside the other arguments,
 * where it costs no instruction. */
struct dropout {
    uint32_t threshold;
    float scale;
    uint32_t key[SES_DROPOUT_ROUNDS][2];
};

static inline dropout dropout_of(const ses_attn *a)
{
    dropping d = dropping_of(a->dropout);
    dropout x = { d.threshold, d.scale, {} };
    for (uint32_t r = 0; r < SES_DROPOUT_ROUNDS; r++) {
        x.key[r][0] = (uint32_t)a->rng_key.seed + r * 0x9E3779B9u;
        x.key[r][1] = (uint32_t)(a->rng_key.seed >> 32) + r * 0xBB67AE85u;
    }
    return x;
}

/* The block of draws in which the row with this entry of lse, `stat`, has those of columns 2 c, 2 c + 1 of
 * each 8 of the 32 keys from j0 on: word b decides on columns 8 b + .... As ses_philox_rounds. */
__device__ static inline void draw_block(uint32_t word[4], const ses_attn &a, const dropout &drop,
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

/* Whether the first or second of two neighbors is kept. */
__device__ static inline bool keeps(uint32_t word, int second, const dropout &drop)
{
    return (second ? word >> 16 : word & 0xffff) >= drop.threshold;
}

/* With keys as rows: the words for keys `key` and `key` + 8, whose neighbors in a block are 4 lanes off, of
 * queries stat and stat + 1: word[query][key]. Each of the two lanes draws for one query. */
__device__ static inline void draw_keys(uint32_t word[2][2], const ses_attn &a, const dropout &drop,
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
