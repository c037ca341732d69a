/* Attention in heads of 64 on Hopper, backward: P = exp(S - lse - rest), dS = P (keep dout v' - delta),
 * delta = dout . out
 *
 * A block has a head at a time and goes over its keys by 128 and, for these, over their queries by 128: a
 * step. Two warpgroups have 64 keys each as rows: S' and dP' are made once, dk and dv stay in registers. The
 * third fetches what the next step needs: tiles, lse, delta. The fourth turns dS' of a step into dq, whose
 * sums over the keys stand in global memory that no other block touches: nothing is added by two, and the
 * same run gives the same bits. Draws for the next step are made by these two, each for half the keys. */
#include "attention_wgmma.cuh"

enum { BACKWARD = 4 * GROUP, HALF = 64, NONE = INT32_MAX };

/* Barriers: what a step needs is there; its queries are no longer read; dS' is there; it is no longer read; a
 * step is over; it is known which comes. And one within each of the first three warpgroups. */
enum {
    FULL = 1,
    FREE = 3,
    SLOPES = 5,
    TAKEN = 7,
    OVER = 9,
    OWN = 12,
    TOLD = 15,
    THREE = 3 * GROUP,
    TWO = 2 * GROUP
};
enum { RING = 4, KEYS = 3 }; /* steps that somebody may look at; places for k, which waits for dq */

struct task {
    work w;
    int i0, j0;
    int at_k, at_v;   /* which of their places keys have */
    bool fresh, done; /* the first, the last queries of these keys */
    bool first, last; /* the first, the last keys of these queries */
    bool met, end;    /* whether the queries see any of the keys; nothing is left to do */
};

struct room {
    bf16 *k, *v, *q, *dout, *ds, *stage;
    uint32_t *kept; /* [2][4][WIDE]: for 32 keys of a query, bit 4 c + b + 16 e for key 8 b + 2 c + e */
    float *lse, *mend, *delta;
    int4 *mended; /* [2]: whether some of the 32 queries that each warp fetches is */
};
enum { ROOM = (13 * STEP + 64 * DH) * sizeof(bf16) + 2 * (4 + 3) * WIDE * sizeof(float) + 2 * sizeof(int4) };

#ifdef SES_WGMMA
__device__ static inline int told(int n) { return n % 2 ? 0 : (int)TOLD; }

__device__ static inline room room_of(uint4 *shared)
{
    room r;
    r.k = tiles_at(shared), r.v = r.k + KEYS * STEP, r.q = r.v + 2 * STEP, r.dout = r.q + 2 * STEP;
    r.ds = r.dout + 2 * STEP, r.stage = r.ds + 4 * STEP;
    r.kept = (uint32_t *)(r.stage + 64 * DH);
    r.lse = (float *)(r.kept + 2 * 4 * WIDE), r.mend = r.lse + 2 * WIDE, r.delta = r.mend + 2 * WIDE;
    r.mended = (int4 *)(r.delta + 2 * WIDE);
    return r;
}

/* ---- steps ---- */

struct walk {
    task t;
    unsigned part;
    int next; /* queries */
};

template <bool PLAIN> __device__ static inline int next_met(const ses_attn &a, const work &w, int j0, int i)
{
    for (; i < w.len_q; i += WIDE) {
        span s = met_by<PLAIN>(a, w, i);
        if (s.begin <= j0 && j0 < s.end) return i;
    }
    return NONE;
}

template <bool PLAIN> __device__ static inline void step_on(walk &x, const ses_attn &a, unsigned parts)
{
    task &t = x.t;
    t.fresh = x.next == NONE;
    if (t.fresh && t.j0 + WIDE < t.w.len_k) {
        t.j0 += WIDE;
    } else if (t.fresh) {
        t.j0 = 0;
        do {
            x.part += gridDim.x;
            t.end = x.part >= parts;
            if (t.end) return;
            t.w = work_of(a, x.part, 1, WIDE);
        } while (!t.w.len_q && !t.w.len_k);
    }
    if (t.fresh) t.at_k = (t.at_k + 1) % KEYS, t.at_v ^= 1, x.next = next_met<PLAIN>(a, t.w, t.j0, 0);
    t.met = x.next != NONE, t.i0 = t.met ? x.next : 0;
    x.next = t.met ? next_met<PLAIN>(a, t.w, t.j0, t.i0 + WIDE) : (int)NONE;
    t.done = x.next == NONE;
    span s = met_by<PLAIN>(a, t.w, t.i0);
    t.first = s.begin == t.j0, t.last = t.j0 + WIDE >= s.end;
}

/* ---- what the third and the fourth do ---- */

/* For which of 64 keys from j0 on query i, its thread's, keeps what it draws. */
__device__ static inline void draw_kept(uint32_t *to, const ses_attn &a, dropout drop, int64_t stat, int j0)
{
    const uint32_t tops = 0x80008000u; /* two draws a word: compared side by side below their top bits */
    bool low = drop.threshold < 0x8000;
    uint32_t least = (drop.threshold - (low ? 0 : 0x8000)) * 0x10001u, either = low ? ~0u : 0;
#pragma unroll
    for (int b32 = 0; b32 < 2; b32++) {
        uint32_t bits = 0;
#pragma unroll
        for (int c = 0; c < 4; c++) {
            uint32_t word[4];
            draw_block(word, a, drop, (uint64_t)stat, (uint32_t)(j0 + b32 * 32), (uint32_t)c);
#pragma unroll
            for (int b = 0; b < 4; b++) {
                uint32_t w = word[b], y = (w | tops) - least;
                bits = bits >> 1 | (((w & y) | (either & (w | y))) & tops);
            }
        }
        to[b32 * WIDE] = bits;
    }
}

/* Of out, what the lane needs for delta: 8 lanes a query. Asked for early. */
enum { PASSES = WIDE / (GROUP / 8) };
__device__ static inline void hold_rows(uint4 held[PASSES], const ses_attn &a, const task &t, int thread)
{
    const bf16 *out = (const bf16 *)(const void *)a.out + t.w.part.q0 * a.out_row + t.w.part.head * a.dim;
#pragma unroll
    for (int c = 0; c < PASSES; c++) {
        int i = t.i0 + c * (GROUP / 8) + thread / 8;
        held[c] =
            i < t.w.len_q ? *(const uint4 *)(out + i * a.out_row + thread % 8 * 8) : make_uint4(0, 0, 0, 0);
    }
}

/* delta of the 128 queries, to shared memory times `by` and for later steps: each thread puts one. */
__device__ static inline void put_delta(float *to, const ses_attn &a, const ses_attn_grad &g, const task &t,
                                        const uint4 held[PASSES], const bf16 *dout, float by, int thread)
{
    static_assert(PASSES == 8, "as many passes as lanes a query");
    float mine = 0;
#pragma unroll
    for (int c = 0; c < PASSES; c++) {
        int r = c * (GROUP / 8) + thread / 8;
        pack<bf16> x = *(const pack<bf16> *)&held[c],
                   y = *(const pack<bf16> *)(dout + swizzled(r, thread % 8));
        float sum = 0;
#pragma unroll
        for (int e = 0; e < 8; e++) sum += num(x.at[e]) * num(y.at[e]);
#pragma unroll
        for (int d = 1; d < 8; d *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
        if (c == thread % 8) mine = sum;
    }
    int r = thread % 8 * (GROUP / 8) + thread / 8;
    to[r] = mine * by;
    if (t.i0 + r < t.w.len_q) g.delta[ses_attn_stat(&a, t.w.part, t.i0 + r)] = mine;
}

template <bool DROP>
__device__ static inline void prepare(const room &m, const ses_attn &a, const ses_attn_grad &g,
                                      const dropout &drop, const task &t, int stage, int thread)
{
    const work &w = t.w;
    if (t.fresh) {
        load_tile<GROUP>(m.k + t.at_k * STEP,
                         head_of<bf16>(a.k, a.k_row, a.k_head, w.part.k0, a, w.part.head), a.k_row, t.j0,
                         w.len_k, thread);
        load_tile<GROUP>(m.v + t.at_v * STEP,
                         head_of<bf16>(a.v, a.v_row, a.v_head, w.part.k0, a, w.part.head), a.v_row, t.j0,
                         w.len_k, thread);
    }
    load_tile<GROUP>(m.q + stage * STEP, head_of<bf16>(a.q, a.q_row, a.q_head, w.part.q0, a, w.part.head),
                     a.q_row, t.i0, w.len_q, thread);
    load_tile<GROUP>(m.dout + stage * STEP, dout_of(a, g, w), a.out_row, t.i0, w.len_q, thread);
    copies_end();
    int i = t.i0 + thread;
    int64_t stat = ses_attn_stat(&a, w.part, i);
    bool there = t.met && i < w.len_q, first = t.met && t.first;
    float lse = there ? lse_of(a, stat) : INFINITY, mend = there ? mend_of(a, stat) : 1,
          delta = there && !first ? g.delta[stat] : 0, by = DROP && drop.scale > 0 ? 1 / drop.scale : 1;
    uint4 held[PASSES];
    if (first) hold_rows(held, a, t, thread);
    if (DROP) draw_kept(m.kept + stage * 4 * WIDE + thread, a, drop, stat, t.j0);
    m.lse[stage * WIDE + thread] = lse, m.mend[stage * WIDE + thread] = mend;
    int mended = __any_sync(0xffffffffu, mend != 1);
    if (thread % WARP == 0) ((int *)(m.mended + stage))[thread / WARP] = mended;
    copies_wait<0>();
    if (first) {
        barrier_wait(OWN + 2, GROUP); /* all of dout is there */
        put_delta(m.delta + stage * WIDE, a, g, t, held, m.dout + stage * STEP, by, thread);
    } else {
        m.delta[stage * WIDE + thread] = delta * by;
    }
    seen_by_products();
}

/* dq += dS k; with the last keys it leaves, times scale. sums: the block's, of 64 queries after another. */
__device__ static inline void add_queries(const room &m, const ses_attn &a, const ses_attn_grad &g,
                                          const task &t, float4 *sums, int stage, float scale, int thread)
{
    float by[2] = { scale, scale };
    for (int half = 0; half < 2; half++) {
        int i0 = t.i0 + half * HALF, first = i0 + thread / WARP * 16;
        if (i0 >= t.w.len_q) break;
        uint64_t at_ds = matrix(m.ds + (stage * 2 + half) * STEP), at_k = matrix(m.k + t.at_k * STEP);
        float4 *sum = sums + i0 / HALF * COLS * GROUP + thread, old[COLS];
        float c[COLS][4];
        products_begin();
#pragma unroll
        for (int n = 0; n < WIDE / 16; n++) multiply_turned(c, at_ds + n * DOWN, at_k + n * DOWN, n > 0);
        products_end();
#pragma unroll
        for (int d = 0; d < COLS; d++) old[d] = t.first ? make_float4(0, 0, 0, 0) : sum[d * GROUP];
        products_wait<0>(c);
#pragma unroll
        for (int d = 0; d < COLS; d++) {
            c[d][0] += old[d].x, c[d][1] += old[d].y, c[d][2] += old[d].z, c[d][3] += old[d].w;
            if (!t.last) sum[d * GROUP] = make_float4(c[d][0], c[d][1], c[d][2], c[d][3]);
        }
        if (t.last)
            put_rows<DH>(sink_of<bf16>(g.dq), c, m.stage + thread / WARP * 16 * DH, first, t.w.len_q,
                         t.w.part.q0 * a.q_row + t.w.part.head * ses_attn_head(a.q_head, &a), a.q_row, by);
    }
}

template <bool PLAIN, bool DROP>
__device__ static inline void fetch(const room &m, task *ring, const ses_attn &a, const ses_attn_grad &g,
                                    const dropout &drop, unsigned parts, int thread)
{
    walk x = {};
    x.part = blockIdx.x - gridDim.x, x.next = NONE;
    int n = 0;
    for (; !x.t.end; n++) {
        if (n == 1) barrier_wait(OWN + 2, GROUP); /* the first step's delta is there */
        if (n >= 2) barrier_wait(FREE + n % 2, THREE);
        if (n >= 3) barrier_wait(OVER + n % 3, TWO); /* step n - 3 */
        step_on<PLAIN>(x, a, parts);
        if (thread == 0) ring[n % RING] = x.t;
        barrier_arrive(told(n), TWO);
        if (!x.t.end) prepare<DROP>(m, a, g, drop, x.t, n % 2, thread);
        barrier_arrive(FULL + n % 2, BACKWARD);
    }
    n--; /* the step that is none */
    if (n >= 1) barrier_wait(FREE + (n - 1) % 2, THREE);
    for (int k = max(n - 2, 0); k < n; k++) barrier_wait(OVER + k % 3, TWO);
}

/* Its part of what step n needs. */
template <bool DROP>
__device__ static inline bool prepare_draws(const room &m, const task *ring, const ses_attn &a,
                                            const dropout &drop, int n, int thread)
{
    barrier_wait(told(n), TWO);
    const task &t = ring[n % RING];
    if (DROP && !t.end)
        draw_kept(m.kept + (n % 2 * 4 + 2) * WIDE + thread, a, drop,
                  ses_attn_stat(&a, t.w.part, t.i0 + thread), t.j0 + 64);
    barrier_arrive(FULL + n % 2, BACKWARD);
    return !t.end;
}

template <bool DROP>
__device__ static inline void add(const room &m, const task *ring, const ses_attn &a, const ses_attn_grad &g,
                                  const dropout &drop, float4 *sums, int thread)
{
    float scale = DROP ? a.scale * drop.scale : a.scale;
    bool more = prepare_draws<DROP>(m, ring, a, drop, 0, thread);
    for (int n = 0; more; n++) {
        const task &t = ring[n % RING];
        more = prepare_draws<DROP>(m, ring, a, drop, n + 1, thread);
        barrier_wait(SLOPES + n % 2, THREE);
        if (t.met) add_queries(m, a, g, t, sums, n % 2, scale, thread);
        barrier_arrive(TAKEN + n % 2, THREE);
        barrier_arrive(OVER + n % 3, TWO);
    }
}

/* ---- what the first two warpgroups do ---- */

/* Of 64 queries, columns here: s, scores, become P; queries that a key is not seen by have none. */
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

/* P and dout v' become P keep and dS, but for the factor of what dropout keeps. */
template <bool DROP>
__device__ static inline void key_slopes(float (&s)[8][4], float (&d)[8][4], const float *delta,
                                         const uint32_t *kept, const uint32_t mine[2])
{
    int t = lane_of() % 4;
#pragma unroll
    for (int n = 0; n < 8; n++) {
        float2 l = *(const float2 *)(delta + n * 8 + 2 * t);
        uint2 word = make_uint2(0, 0);
        if (DROP) word = *(const uint2 *)(kept + n * 8 + 2 * t);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            bool stays = !DROP || ((e % 2 ? word.y : word.x) & mine[e / 2]);
            float p = s[n][e];
            s[n][e] = stays ? p : 0;
            d[n][e] = p * ((stays ? d[n][e] : 0) - (e % 2 ? l.y : l.x));
        }
    }
}

__device__ static inline void mend_keys(float (&s)[8][4], const float *mend)
{
    int t = lane_of() % 4;
#pragma unroll
    for (int n = 0; n < 8; n++) {
        float2 by = *(const float2 *)(mend + n * 8 + 2 * t);
#pragma unroll
        for (int e = 0; e < 4; e++) s[n][e] *= e % 2 ? by.y : by.x;
    }
}

/* A warp's 16 keys, and their gradients. */
struct keys {
    int row, put_row, put_pack; /* of the tile; where the lane puts its part of dS */
    uint32_t mine[2];           /* of words of what is kept */
    span by[2];
    float dk[COLS][4], dv[COLS][4];
};

template <bool PLAIN> __device__ static inline void begin_keys(keys &x, const ses_attn &a, const task &t)
{
#pragma unroll
    for (int d = 0; d < COLS; d++)
#pragma unroll
        for (int e = 0; e < 4; e++) x.dk[d][e] = x.dv[d][e] = 0;
#pragma unroll
    for (int h = 0; h < 2; h++) x.by[h] = seen_by<PLAIN>(a, t.w, t.j0 + x.row + lane_of() / 4 + 8 * h);
}

/* Step n's queries i0 .. i0 + 63, its first or second half. */
template <bool DROP>
__device__ static inline void multiply_half(keys &x, const room &m, const ses_attn &a, const task &t, int n,
                                            int half)
{
    int stage = n % 2, i0 = t.i0 + half * HALF, from = stage * WIDE + half * HALF, group = warp_of() / 4;
    uint64_t at_k = matrix(m.k + t.at_k * STEP + group * 64 * DH),
             at_v = matrix(m.v + t.at_v * STEP + group * 64 * DH), at_q = matrix(m.q + from * DH),
             at_dout = matrix(m.dout + from * DH);
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
    int4 mended = m.mended[stage];
    key_probs(s, m.lse + from, x.by, i0, t.w.len_q, a.scale * log2_e);
    if (mended.x | mended.y | mended.z | mended.w) mend_keys(s, m.mend + from);
    products_wait<0>(d);
    key_slopes<DROP>(s, d, m.delta + from, m.kept + (stage * 4 + warp_of() / 2) * WIDE + half * HALF, x.mine);
#pragma unroll
    for (int c = 0; c < 4; c++)
        fragment(p[c], s[2 * c], s[2 * c + 1]), fragment(ds[c], d[2 * c], d[2 * c + 1]);
    if (!half && n >= 2) barrier_wait(TAKEN + stage, THREE);
#pragma unroll
    for (int c = 0; c < 4; c++)
        store_matrices(m.ds + (stage * 2 + half) * STEP + swizzled(x.put_row, 2 * c + x.put_pack), ds[c]);
    if (half || i0 + HALF >= t.w.len_q) {
        seen_by_products();
        barrier_arrive(SLOPES + stage, THREE);
    }
    products_begin();
#pragma unroll
    for (int c = 0; c < 4; c++) multiply_held(x.dv, p[c], at_dout + c * DOWN);
#pragma unroll
    for (int c = 0; c < 4; c++) multiply_held(x.dk, ds[c], at_q + c * DOWN);
    products_end();
    products_wait<0>(x.dv);
    products_wait<0>(x.dk);
}

template <bool DROP>
__device__ static inline void put_keys(const keys &x, const room &m, const ses_attn &a,
                                       const ses_attn_grad &g, const task &t, float drop_scale)
{
    const ses_attn_part &w = t.w.part;
    float kept = DROP ? drop_scale : 1, one[2] = { kept, kept },
          scale[2] = { a.scale * kept, a.scale * kept };
    bf16 *own = m.v + t.at_v * STEP + x.row * DH;
    barrier_wait(OWN + warp_of() / 4, GROUP); /* these rows of v are no longer read */
    put_rows<DH>(sink_of<bf16>(g.dk), x.dk, own, t.j0 + x.row, t.w.len_k,
                 w.k0 * a.k_row + w.head * ses_attn_head(a.k_head, &a), a.k_row, scale);
    put_rows<DH>(sink_of<bf16>(g.dv), x.dv, own, t.j0 + x.row, t.w.len_k,
                 w.k0 * a.v_row + w.head * ses_attn_head(a.v_head, &a), a.v_row, one);
}

template <bool PLAIN, bool DROP>
__device__ static inline void multiply_keys(const room &m, const task *ring, const ses_attn &a,
                                            const ses_attn_grad &g, dropout drop)
{
    int warp = warp_of(), lane = lane_of(), n = 0;
    int mine_at = lane / 8 * 4 + warp % 2 * 2 + lane / 4 % 2 * 16;
    keys x;
    x.row = warp * 16, x.put_row = x.row + lane % 16, x.put_pack = lane / 16;
    x.mine[0] = 1u << mine_at, x.mine[1] = 2u << mine_at;
    for (;; n++) {
        barrier_wait(FULL + n % 2, BACKWARD);
        const task &t = ring[n % RING];
        if (t.end) break;
        if (t.fresh) begin_keys<PLAIN>(x, a, t);
#pragma unroll 1
        for (int half = 0; half < 2 && (!half || t.i0 + HALF < t.w.len_q); half++)
            multiply_half<DROP>(x, m, a, t, n, half);
        if (t.done) put_keys<DROP>(x, m, a, g, t, drop.scale);
        barrier_arrive(FREE + n % 2, THREE);
    }
    for (int k = max(n - 2, 0); k < n; k++) barrier_wait(TAKEN + k % 2, THREE);
}
#endif

template <bool PLAIN, bool DROP>
__global__ void __launch_bounds__(BACKWARD, 1)
    attend_wide_bwd(ses_attn a, ses_attn_grad g, dropout drop, float4 *sums, int64_t each, unsigned parts)
{
#ifdef SES_WGMMA
    extern __shared__ uint4 shared[];
    __shared__ task ring[RING];
    room m = room_of(shared);
    int group = warp_of() / 4, thread = threadIdx.x % GROUP;
    if (group == 3) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 88;\n");
        add<DROP>(m, ring, a, g, drop, sums + blockIdx.x * each, thread);
    } else if (group == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 88;\n");
        fetch<PLAIN, DROP>(m, ring, a, g, drop, parts, thread);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 168;\n");
        multiply_keys<PLAIN, DROP>(m, ring, a, g, drop);
    }
#endif
}

template <bool PLAIN, bool DROP>
static void backward(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad)
{
    unsigned parts = (unsigned)(a->seqs * a->heads),
             blocks = parts < (unsigned)g->cores ? parts : (unsigned)g->cores;
    int64_t each =
        a->max_seqlen_k > WIDE ? ceil_div(a->max_seqlen_q, WIDE) * WIDE * DH / 4 : 0; /* sums of dq */
    size_t bytes = ROOM + 1024;
    float4 *sums = (float4 *)scratch_lock(g, (size_t)each * blocks * sizeof *sums);
    if (!sums) return;
    allow_shared(g, attend_wide_bwd<PLAIN, DROP>, bytes);
    attend_wide_bwd<PLAIN, DROP>
        <<<blocks, BACKWARD, bytes, ses_cuda_stream(g)>>>(*a, *grad, dropout_of(a), sums, each, parts);
    launched(g);
    scratch_unlock(g);
}

bool attention_wgmma_bwd(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad)
{
    bool brief = a->max_seqlen_q <= SHORT && a->max_seqlen_k <= SHORT,
         few = a->seqs * a->heads * 2 < g->cores;
    if (g->major != 9 || brief || few || !fits_bwd(a, grad)) return false;
    by_kind(a, [=](auto plain, auto drop) { backward<plain.value, drop.value>(g, a, grad); });
    return true;
}
