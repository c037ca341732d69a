/* Attention with head size 64 on Hopper, backward pass: P = exp(S - lse - lse_lo), dS = P (M dout v' -
 * delta), delta = dout . out, with the dropout factors M.
 *
 * A block processes one head of one sequence at a time. A step is 128 keys and 128 queries; the steps loop
 * over the keys and, for these keys, over the queries. Warpgroups 0 and 1 have 64 keys each as rows: they
 * compute S' and dP' once and keep dk and dv in registers. Warpgroup 2 loads the data of the next step:
 * tiles, lse, delta. Warpgroup 3 computes dq from dS' and accumulates it over the keys in global memory that
 * belongs to the block. No two blocks add to the same element, so repeated runs give the same bits.
 * Warpgroups 2 and 3 also draw the dropout numbers of the next step, each for half of the keys. */
#include "attention_wgmma.cuh"

enum { BWD_THREADS = 4 * WARPGROUP, HALF = 64, NONE = INT32_MAX };

/* Named barriers. Several barriers of one kind alternate with the step number. */
enum {
    FULL = 1,           /* two: data of a step is loaded */
    FREE = 3,           /* two: the queries of a step may be overwritten */
    DS_READY = 5,       /* two: dS' is stored */
    DS_FREE = 7,        /* two: dS' may be overwritten */
    DONE = 9,           /* three: dq of a step is done */
    GROUP_BARRIER = 12, /* one within each of the warpgroups 0 to 2 */
    KNOWN = 15,         /* with barrier 0: the next step is in the ring */
    THREE_GROUPS = 3 * WARPGROUP,
    TWO_GROUPS = 2 * WARPGROUP
};
/* Steps that may be in use; buffers for k, which warpgroup 3 needs longer. */
enum { RING = 4, K_BUFFERS = 3 };

struct step {
    work w;
    int i0, j0;
    int k_buf, v_buf;      /* buffer of the keys in k and in v */
    bool first_q, last_q;  /* first and last queries of these keys */
    bool first_k, last_k;  /* first and last keys of these queries */
    bool any_visible, end; /* a query attends to a key; no work is left */
};

struct smem {
    bf16 *k, *v, *q, *dout, *ds, *stage;
    /* [2][4][ROWS]: bit 4 c + b + 16 e of a word is key 8 b + 2 c + e of 32 keys of a query */
    uint32_t *drop_bits;
    float *lse, *lse_fix, *delta;
    int4 *any_fix; /* [2]: per loading warp, whether lse_fix of any of its 32 queries is not 1 */
};
enum {
    SMEM_BYTES =
        (13 * TILE_ELEMS + 64 * DH) * sizeof(bf16) + 2 * (4 + 3) * ROWS * sizeof(float) + 2 * sizeof(int4)
};

#ifdef SES_WGMMA
__device__ static inline int known_barrier(int n) { return n % 2 ? 0 : (int)KNOWN; }

__device__ static inline smem smem_of(uint4 *shared)
{
    smem r;
    r.k = aligned_tiles(shared), r.v = r.k + K_BUFFERS * TILE_ELEMS, r.q = r.v + 2 * TILE_ELEMS,
    r.dout = r.q + 2 * TILE_ELEMS;
    r.ds = r.dout + 2 * TILE_ELEMS, r.stage = r.ds + 4 * TILE_ELEMS;
    r.drop_bits = (uint32_t *)(r.stage + 64 * DH);
    r.lse = (float *)(r.drop_bits + 2 * 4 * ROWS), r.lse_fix = r.lse + 2 * ROWS,
    r.delta = r.lse_fix + 2 * ROWS;
    r.any_fix = (int4 *)(r.delta + 2 * ROWS);
    return r;
}

/* ---- steps ---- */

struct step_iter {
    step t;
    unsigned part;
    int next; /* next block of queries */
};

template <bool PLAIN>
__device__ static inline int next_queries(const ses_attn &a, const work &w, int j0, int i)
{
    for (; i < w.len_q; i += ROWS) {
        span s = key_tiles<PLAIN>(a, w, i);
        if (s.begin <= j0 && j0 < s.end) return i;
    }
    return NONE;
}

template <bool PLAIN> __device__ static inline void next_step(step_iter &x, const ses_attn &a, unsigned parts)
{
    step &t = x.t;
    t.first_q = x.next == NONE;
    if (t.first_q && t.j0 + ROWS < t.w.len_k) {
        t.j0 += ROWS;
    } else if (t.first_q) {
        t.j0 = 0;
        do {
            x.part += gridDim.x;
            t.end = x.part >= parts;
            if (t.end) return;
            t.w = work_of(a, x.part, 1, ROWS);
        } while (!t.w.len_q && !t.w.len_k);
    }
    if (t.first_q)
        t.k_buf = (t.k_buf + 1) % K_BUFFERS, t.v_buf ^= 1, x.next = next_queries<PLAIN>(a, t.w, t.j0, 0);
    t.any_visible = x.next != NONE, t.i0 = t.any_visible ? x.next : 0;
    x.next = t.any_visible ? next_queries<PLAIN>(a, t.w, t.j0, t.i0 + ROWS) : (int)NONE;
    t.last_q = x.next == NONE;
    span s = key_tiles<PLAIN>(a, t.w, t.i0);
    t.first_k = s.begin == t.j0, t.last_k = t.j0 + ROWS >= s.end;
}

/* ---- warpgroups 2 and 3 ---- */

/* Dropout bits of the thread's query i for 64 keys from j0 on. */
__device__ static inline void draw_bits(uint32_t *to, const ses_attn &a, attn_dropout drop, int64_t stat,
                                        int j0)
{
    /* two numbers per word, compared in parallel below their top bits */
    const uint32_t tops = 0x80008000u;
    bool low = drop.threshold < 0x8000;
    uint32_t min_draw = (drop.threshold - (low ? 0 : 0x8000)) * 0x10001u, either = low ? ~0u : 0;
#pragma unroll
    for (int b32 = 0; b32 < 2; b32++) {
        uint32_t bits = 0;
#pragma unroll
        for (int c = 0; c < 4; c++) {
            uint32_t word[4];
            draw_block(word, a, drop, (uint64_t)stat, (uint32_t)(j0 + b32 * 32), (uint32_t)c);
#pragma unroll
            for (int b = 0; b < 4; b++) {
                uint32_t w = word[b], y = (w | tops) - min_draw;
                bits = bits >> 1 | (((w & y) | (either & (w | y))) & tops);
            }
        }
        to[b32 * ROWS] = bits;
    }
}

/* Loads the part of out that a lane needs for delta (8 lanes per query), early enough to hide the latency. */
enum { PASSES = ROWS / (WARPGROUP / 8) };
__device__ static inline void load_out_rows(uint4 out_regs[PASSES], const ses_attn &a, const step &t,
                                            int thread)
{
    const bf16 *out = (const bf16 *)(const void *)a.out + t.w.part.q0 * a.out_row + t.w.part.head * a.dim;
#pragma unroll
    for (int c = 0; c < PASSES; c++) {
        int i = t.i0 + c * (WARPGROUP / 8) + thread / 8;
        out_regs[c] =
            i < t.w.len_q ? *(const uint4 *)(out + i * a.out_row + thread % 8 * 8) : make_uint4(0, 0, 0, 0);
    }
}

/* Stores delta of the 128 queries, times `by`, to shared memory, and unscaled for later steps: one per
 * thread. */
__device__ static inline void store_delta(float *to, const ses_attn &a, const ses_attn_grad &g, const step &t,
                                          const uint4 out_regs[PASSES], const bf16 *dout, float by,
                                          int thread)
{
    static_assert(PASSES == 8, "as many passes as lanes per query");
    float own = 0;
#pragma unroll
    for (int c = 0; c < PASSES; c++) {
        int r = c * (WARPGROUP / 8) + thread / 8;
        vec16<bf16> x = *(const vec16<bf16> *)&out_regs[c],
                    y = *(const vec16<bf16> *)(dout + swizzled(r, thread % 8));
        float sum = 0;
#pragma unroll
        for (int e = 0; e < 8; e++) sum += to_float(x.at[e]) * to_float(y.at[e]);
#pragma unroll
        for (int d = 1; d < 8; d *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
        if (c == thread % 8) own = sum;
    }
    int r = thread % 8 * (WARPGROUP / 8) + thread / 8;
    to[r] = own * by;
    if (t.i0 + r < t.w.len_q) g.delta[ses_attn_stat_index(&a, t.w.part, t.i0 + r)] = own;
}

template <bool DROP>
__device__ static inline void load_step(const smem &m, const ses_attn &a, const ses_attn_grad &g,
                                        const attn_dropout &drop, const step &t, int stage, int thread)
{
    const work &w = t.w;
    if (t.first_q) {
        load_tile<WARPGROUP>(m.k + t.k_buf * TILE_ELEMS,
                             head_rows<bf16>(a.k, a.k_row, a.k_head, w.part.k0, a, w.part.head), a.k_row,
                             t.j0, w.len_k, thread);
        load_tile<WARPGROUP>(m.v + t.v_buf * TILE_ELEMS,
                             head_rows<bf16>(a.v, a.v_row, a.v_head, w.part.k0, a, w.part.head), a.v_row,
                             t.j0, w.len_k, thread);
    }
    load_tile<WARPGROUP>(m.q + stage * TILE_ELEMS,
                         head_rows<bf16>(a.q, a.q_row, a.q_head, w.part.q0, a, w.part.head), a.q_row, t.i0,
                         w.len_q, thread);
    load_tile<WARPGROUP>(m.dout + stage * TILE_ELEMS, dout_of(a, g, w), a.out_row, t.i0, w.len_q, thread);
    copies_end();
    int i = t.i0 + thread;
    int64_t stat = ses_attn_stat_index(&a, w.part, i);
    bool valid = t.any_visible && i < w.len_q, first = t.any_visible && t.first_k;
    float lse = valid ? lse_of(a, stat) : INFINITY, lse_fix = valid ? lse_fix_of(a, stat) : 1,
          delta = valid && !first ? g.delta[stat] : 0, by = DROP && drop.scale > 0 ? 1 / drop.scale : 1;
    uint4 out_regs[PASSES];
    if (first) load_out_rows(out_regs, a, t, thread);
    if (DROP) draw_bits(m.drop_bits + stage * 4 * ROWS + thread, a, drop, stat, t.j0);
    m.lse[stage * ROWS + thread] = lse, m.lse_fix[stage * ROWS + thread] = lse_fix;
    int any_fix = __any_sync(0xffffffffu, lse_fix != 1);
    if (thread % WARP == 0) ((int *)(m.any_fix + stage))[thread / WARP] = any_fix;
    copies_wait<0>();
    if (first) {
        barrier_wait(GROUP_BARRIER + 2, WARPGROUP); /* dout is complete */
        store_delta(m.delta + stage * ROWS, a, g, t, out_regs, m.dout + stage * TILE_ELEMS, by, thread);
    } else {
        m.delta[stage * ROWS + thread] = delta * by;
    }
    fence_for_wgmma();
}

/* dq += dS k. After the last keys dq is stored, times scale. sums: the block's partial sums, 64 queries after
 * another. */
__device__ static inline void accumulate_dq(const smem &m, const ses_attn &a, const ses_attn_grad &g,
                                            const step &t, float4 *sums, int stage, float scale, int thread)
{
    float by[2] = { scale, scale };
    for (int half = 0; half < 2; half++) {
        int i0 = t.i0 + half * HALF, first = i0 + thread / WARP * 16;
        if (i0 >= t.w.len_q) break;
        uint64_t at_ds = descriptor(m.ds + (stage * 2 + half) * TILE_ELEMS),
                 at_k = descriptor(m.k + t.k_buf * TILE_ELEMS);
        float4 *sum = sums + i0 / HALF * COLS * WARPGROUP + thread, old[COLS];
        float c[COLS][4];
        products_begin();
#pragma unroll
        for (int n = 0; n < ROWS / 16; n++) multiply_transposed(c, at_ds + n * DOWN, at_k + n * DOWN, n > 0);
        products_end();
#pragma unroll
        for (int d = 0; d < COLS; d++) old[d] = t.first_k ? make_float4(0, 0, 0, 0) : sum[d * WARPGROUP];
        products_wait<0>(c);
#pragma unroll
        for (int d = 0; d < COLS; d++) {
            c[d][0] += old[d].x, c[d][1] += old[d].y, c[d][2] += old[d].z, c[d][3] += old[d].w;
            if (!t.last_k) sum[d * WARPGROUP] = make_float4(c[d][0], c[d][1], c[d][2], c[d][3]);
        }
        if (t.last_k)
            store_rows<DH>(dst_of<bf16>(g.dq), c, m.stage + thread / WARP * 16 * DH, first, t.w.len_q,
                           t.w.part.q0 * a.q_row + t.w.part.head * ses_attn_head_stride(a.q_head, &a),
                           a.q_row, by);
    }
}

template <bool PLAIN, bool DROP>
__device__ static inline void load_warpgroup(const smem &m, step *ring, const ses_attn &a,
                                             const ses_attn_grad &g, const attn_dropout &drop, unsigned parts,
                                             int thread)
{
    step_iter x = {};
    x.part = blockIdx.x - gridDim.x, x.next = NONE;
    int n = 0;
    for (; !x.t.end; n++) {
        /* delta of the first step is complete */
        if (n == 1) barrier_wait(GROUP_BARRIER + 2, WARPGROUP);
        if (n >= 2) barrier_wait(FREE + n % 2, THREE_GROUPS);
        if (n >= 3) barrier_wait(DONE + n % 3, TWO_GROUPS); /* step n - 3 */
        next_step<PLAIN>(x, a, parts);
        if (thread == 0) ring[n % RING] = x.t;
        barrier_arrive(known_barrier(n), TWO_GROUPS);
        if (!x.t.end) load_step<DROP>(m, a, g, drop, x.t, n % 2, thread);
        barrier_arrive(FULL + n % 2, BWD_THREADS);
    }
    n--; /* without the terminating step */
    if (n >= 1) barrier_wait(FREE + (n - 1) % 2, THREE_GROUPS);
    for (int k = max(n - 2, 0); k < n; k++) barrier_wait(DONE + k % 3, TWO_GROUPS);
}

/* Draws its half of the dropout numbers of step n. Returns false after the last step. */
template <bool DROP>
__device__ static inline bool draw_step(const smem &m, const step *ring, const ses_attn &a,
                                        const attn_dropout &drop, int n, int thread)
{
    barrier_wait(known_barrier(n), TWO_GROUPS);
    const step &t = ring[n % RING];
    if (DROP && !t.end)
        draw_bits(m.drop_bits + (n % 2 * 4 + 2) * ROWS + thread, a, drop,
                  ses_attn_stat_index(&a, t.w.part, t.i0 + thread), t.j0 + 64);
    barrier_arrive(FULL + n % 2, BWD_THREADS);
    return !t.end;
}

template <bool DROP>
__device__ static inline void dq_warpgroup(const smem &m, const step *ring, const ses_attn &a,
                                           const ses_attn_grad &g, const attn_dropout &drop, float4 *sums,
                                           int thread)
{
    float scale = DROP ? a.scale * drop.scale : a.scale;
    bool more = draw_step<DROP>(m, ring, a, drop, 0, thread);
    for (int n = 0; more; n++) {
        const step &t = ring[n % RING];
        more = draw_step<DROP>(m, ring, a, drop, n + 1, thread);
        barrier_wait(DS_READY + n % 2, THREE_GROUPS);
        if (t.any_visible) accumulate_dq(m, a, g, t, sums, n % 2, scale, thread);
        barrier_arrive(DS_FREE + n % 2, THREE_GROUPS);
        barrier_arrive(DONE + n % 3, TWO_GROUPS);
    }
}

/* ---- warpgroups 0 and 1 ---- */

/* Turns the scores s of 64 queries (columns) into P; 0 for masked pairs. */
__device__ static inline void key_probs(float (&s)[8][4], const float *lse, const span by[2], int i0,
                                        int len_q, float scale)
{
    int t = lane_of() % 4;
    bool all = true;
#pragma unroll
    for (int h = 0; h < 2; h++) all = all && by[h].begin <= i0 && by[h].end >= min(i0 + HALF, len_q);
    all = __all_sync(0xffffffffu, all);
#pragma unroll
    for (int n = 0; n < 8; n++) {
        float2 l = *(const float2 *)(lse + n * 8 + 2 * t);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int i = i0 + n * 8 + 2 * t + e % 2;
            s[n][e] = power2(fmaf(s[n][e], scale, -(e % 2 ? l.y : l.x)));
            if (!all && (i < by[e / 2].begin || i >= by[e / 2].end)) s[n][e] = 0;
        }
    }
}

/* Turns P and dout v' into P M and dS, without the dropout scale. */
template <bool DROP>
__device__ static inline void key_probs_and_ds(float (&s)[8][4], float (&d)[8][4], const float *delta,
                                               const uint32_t *drop_bits, const uint32_t own[2])
{
    int t = lane_of() % 4;
#pragma unroll
    for (int n = 0; n < 8; n++) {
        float2 l = *(const float2 *)(delta + n * 8 + 2 * t);
        uint2 word = make_uint2(0, 0);
        if (DROP) word = *(const uint2 *)(drop_bits + n * 8 + 2 * t);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            bool is_kept_bit = !DROP || ((e % 2 ? word.y : word.x) & own[e / 2]);
            float p = s[n][e];
            s[n][e] = is_kept_bit ? p : 0;
            d[n][e] = p * ((is_kept_bit ? d[n][e] : 0) - (e % 2 ? l.y : l.x));
        }
    }
}

__device__ static inline void apply_lse_fix(float (&s)[8][4], const float *lse_fix)
{
    int t = lane_of() % 4;
#pragma unroll
    for (int n = 0; n < 8; n++) {
        float2 by = *(const float2 *)(lse_fix + n * 8 + 2 * t);
#pragma unroll
        for (int e = 0; e < 4; e++) s[n][e] *= e % 2 ? by.y : by.x;
    }
}

/* A warp's 16 keys and their gradients. */
struct keys {
    /* first row in the tile; row and vector where the lane stores its part of dS */
    int row, store_row, store_vec;
    uint32_t own[2]; /* bits of the lane's keys in the words of dropout bits */
    span by[2];
    float dk[COLS][4], dv[COLS][4];
};

template <bool PLAIN> __device__ static inline void init_keys(keys &x, const ses_attn &a, const step &t)
{
#pragma unroll
    for (int d = 0; d < COLS; d++)
#pragma unroll
        for (int e = 0; e < 4; e++) x.dk[d][e] = x.dv[d][e] = 0;
#pragma unroll
    for (int h = 0; h < 2; h++) x.by[h] = query_range<PLAIN>(a, t.w, t.j0 + x.row + lane_of() / 4 + 8 * h);
}

/* Processes queries i0 .. i0 + 63: the first or second half of step n. */
template <bool DROP>
__device__ static inline void multiply_half(keys &x, const smem &m, const ses_attn &a, const step &t, int n,
                                            int half)
{
    int stage = n % 2, i0 = t.i0 + half * HALF, from = stage * ROWS + half * HALF, group = warp_of() / 4;
    uint64_t at_k = descriptor(m.k + t.k_buf * TILE_ELEMS + group * 64 * DH),
             at_v = descriptor(m.v + t.v_buf * TILE_ELEMS + group * 64 * DH),
             at_q = descriptor(m.q + from * DH), at_dout = descriptor(m.dout + from * DH);
    float s[8][4], d[8][4];
    uint32_t p[4][4], ds[4][4];
    products_begin();
#pragma unroll
    for (int c = 0; c < DH / 16; c++) multiply_rows(s, at_k + c * ALONG, at_q + c * ALONG, c > 0);
    products_end();
#pragma unroll
    for (int c = 0; c < DH / 16; c++) multiply_rows(d, at_v + c * ALONG, at_dout + c * ALONG, c > 0);
    products_end();
    products_wait<1>(s);
    int4 any_fix = m.any_fix[stage];
    key_probs(s, m.lse + from, x.by, i0, t.w.len_q, a.scale * log2_e);
    if (any_fix.x | any_fix.y | any_fix.z | any_fix.w) apply_lse_fix(s, m.lse_fix + from);
    products_wait<0>(d);
    key_probs_and_ds<DROP>(s, d, m.delta + from,
                           m.drop_bits + (stage * 4 + warp_of() / 2) * ROWS + half * HALF, x.own);
#pragma unroll
    for (int c = 0; c < 4; c++)
        fragment(p[c], s[2 * c], s[2 * c + 1]), fragment(ds[c], d[2 * c], d[2 * c + 1]);
    if (!half && n >= 2) barrier_wait(DS_FREE + stage, THREE_GROUPS);
#pragma unroll
    for (int c = 0; c < 4; c++)
        store_matrices(m.ds + (stage * 2 + half) * TILE_ELEMS + swizzled(x.store_row, 2 * c + x.store_vec),
                       ds[c]);
    if (half || i0 + HALF >= t.w.len_q) {
        fence_for_wgmma();
        barrier_arrive(DS_READY + stage, THREE_GROUPS);
    }
    products_begin();
#pragma unroll
    for (int c = 0; c < 4; c++) multiply_regs(x.dv, p[c], at_dout + c * DOWN);
#pragma unroll
    for (int c = 0; c < 4; c++) multiply_regs(x.dk, ds[c], at_q + c * DOWN);
    products_end();
    products_wait<0>(x.dv);
    products_wait<0>(x.dk);
}

template <bool DROP>
__device__ static inline void store_keys(const keys &x, const smem &m, const ses_attn &a,
                                         const ses_attn_grad &g, const step &t, float drop_scale)
{
    const ses_attn_seq_head &w = t.w.part;
    float drop_bits = DROP ? drop_scale : 1, one[2] = { drop_bits, drop_bits },
          scale[2] = { a.scale * drop_bits, a.scale * drop_bits };
    bf16 *own = m.v + t.v_buf * TILE_ELEMS + x.row * DH;
    barrier_wait(GROUP_BARRIER + warp_of() / 4, WARPGROUP); /* these rows of v are free */
    store_rows<DH>(dst_of<bf16>(g.dk), x.dk, own, t.j0 + x.row, t.w.len_k,
                   w.k0 * a.k_row + w.head * ses_attn_head_stride(a.k_head, &a), a.k_row, scale);
    store_rows<DH>(dst_of<bf16>(g.dv), x.dv, own, t.j0 + x.row, t.w.len_k,
                   w.k0 * a.v_row + w.head * ses_attn_head_stride(a.v_head, &a), a.v_row, one);
}

template <bool PLAIN, bool DROP>
__device__ static inline void key_warpgroup(const smem &m, const step *ring, const ses_attn &a,
                                            const ses_attn_grad &g, attn_dropout drop)
{
    int warp = warp_of(), lane = lane_of(), n = 0;
    int own_bit = lane / 8 * 4 + warp % 2 * 2 + lane / 4 % 2 * 16;
    keys x;
    x.row = warp * 16, x.store_row = x.row + lane % 16, x.store_vec = lane / 16;
    x.own[0] = 1u << own_bit, x.own[1] = 2u << own_bit;
    for (;; n++) {
        barrier_wait(FULL + n % 2, BWD_THREADS);
        const step &t = ring[n % RING];
        if (t.end) break;
        if (t.first_q) init_keys<PLAIN>(x, a, t);
#pragma unroll 1
        for (int half = 0; half < 2 && (!half || t.i0 + HALF < t.w.len_q); half++)
            multiply_half<DROP>(x, m, a, t, n, half);
        if (t.last_q) store_keys<DROP>(x, m, a, g, t, drop.scale);
        barrier_arrive(FREE + n % 2, THREE_GROUPS);
    }
    for (int k = max(n - 2, 0); k < n; k++) barrier_wait(DS_FREE + k % 2, THREE_GROUPS);
}
#endif

template <bool PLAIN, bool DROP>
__global__ void __launch_bounds__(BWD_THREADS, 1)
    attend_wgmma_bwd(ses_attn a, ses_attn_grad g, attn_dropout drop, float4 *sums, int64_t each,
                     unsigned parts)
{
#ifdef SES_WGMMA
    extern __shared__ uint4 shared[];
    __shared__ step ring[RING];
    smem m = smem_of(shared);
    int group = warp_of() / 4, thread = threadIdx.x % WARPGROUP;
    if (group == 3) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 88;\n");
        dq_warpgroup<DROP>(m, ring, a, g, drop, sums + blockIdx.x * each, thread);
    } else if (group == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 88;\n");
        load_warpgroup<PLAIN, DROP>(m, ring, a, g, drop, parts, thread);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 168;\n");
        key_warpgroup<PLAIN, DROP>(m, ring, a, g, drop);
    }
#endif
}

template <bool PLAIN, bool DROP>
static void backward(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad)
{
    unsigned parts = (unsigned)(a->seqs * a->heads),
             blocks = parts < (unsigned)g->sm_count ? parts : (unsigned)g->sm_count;
    int64_t each =
        /* float4 elements of partial sums of dq per block */
        a->max_seqlen_k > ROWS ? ceil_div(a->max_seqlen_q, ROWS) * ROWS * DH / 4 : 0;
    size_t bytes = SMEM_BYTES + 1024;
    float4 *sums = (float4 *)scratch_lock(g, (size_t)each * blocks * sizeof *sums);
    if (!sums) return;
    allow_shared(g, attend_wgmma_bwd<PLAIN, DROP>, bytes);
    attend_wgmma_bwd<PLAIN, DROP><<<blocks, BWD_THREADS, bytes, ses_cuda_stream(g)>>>(
        *a, *grad, attn_dropout_of(a), sums, each, parts);
    check_launch(g);
    scratch_unlock(g);
}

bool attention_wgmma_bwd(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad)
{
    bool is_short = a->max_seqlen_q <= MAX_SHORT && a->max_seqlen_k <= MAX_SHORT,
         too_few = a->seqs * a->heads * 2 < g->sm_count;
    if (g->major != 9 || is_short || too_few || !fits_bwd(a, grad)) return false;
    dispatch(a, [=](auto plain, auto drop) { backward<plain.value, drop.value>(g, a, grad); });
    return true;
}
