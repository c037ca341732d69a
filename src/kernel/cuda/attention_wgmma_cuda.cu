/* Attention in heads of 64 on Hopper, forward. A block has 128 queries of a head, 64 a warpgroup, and goes
 * over the keys by 128; what it needs next, also of the next head, is on its way meanwhile. Two blocks a
 * core: one's exponentials pass beside the other's products. */
#include "attention_wgmma.cuh"

enum { FORWARD = 2 * GROUP, RING = 3 };

struct item {
    work w;
    span keys;             /* met_by */
    const bf16 *q, *k, *v; /* the head's, from its sequence on */
};

/* The first item from `at` on that has queries, and the next number; none: no queries. */
template <bool PLAIN>
__device__ static inline unsigned find_item(item *to, const ses_attn &a, int tiles, unsigned at,
                                            unsigned items)
{
    for (; at < items; at += gridDim.x) {
        unsigned last = (unsigned)tiles - 1, tile = at % (unsigned)tiles;
        work w = work_of(a, at - tile + last - tile, tiles, WIDE); /* long rows of causal ones come first */
        if (w.first >= w.len_q) continue;
        to->w = w;
        to->keys = met_by<PLAIN>(a, w, w.first);
        to->q = head_of<bf16>(a.q, a.q_row, a.q_head, w.part.q0, a, w.part.head);
        to->k = head_of<bf16>(a.k, a.k_row, a.k_head, w.part.k0, a, w.part.head);
        to->v = head_of<bf16>(a.v, a.v_row, a.v_head, w.part.k0, a, w.part.head);
        return at + gridDim.x;
    }
    to->w.len_q = 0;
    return at;
}

/* What a lane knows of its two rows. */
struct rows {
    span sees[2];
    int64_t stat[2];
    float max[2], sum[2]; /* see bases; of exponentials less it */
};

template <bool PLAIN> __device__ static inline rows rows_of(const ses_attn &a, const work &w, int i0)
{
    rows r;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int i = i0 + lane_of() / 4 + 8 * h;
        r.sees[h] = seen<PLAIN>(a, w, i);
        r.stat[h] = ses_attn_stat(&a, w.part, i);
        r.max[h] = -INFINITY, r.sum[h] = 0;
    }
    return r;
}

#ifdef SES_WGMMA
/* What exponents of the rows' new scores are less than their scores: the row's greatest so far, or one near
 * enough to it that no exponential passes 2^8. Where it is a new one, what was summed up shrinks. */
template <int N>
__device__ static inline void bases(float base[2], const float (&s)[N][4], rows &r, float (&out)[COLS][4],
                                    float scale)
{
    float top[4] = { r.max[0], r.max[0], r.max[1], r.max[1] }, most[2];
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) top[e] = fmaxf(top[e], s[n][e]);
#pragma unroll
    for (int h = 0; h < 2; h++) most[h] = quad_max(fmaxf(top[2 * h], top[2 * h + 1]));
    bool grows = (most[0] - r.max[0]) * scale > 8 || (most[1] - r.max[1]) * scale > 8;
    if (__any_sync(0xffffffffu, grows)) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float shrink =
                most[h] == -INFINITY ? 1 : power2(__fmul_rn(r.max[h], scale) - __fmul_rn(most[h], scale));
            r.max[h] = most[h], r.sum[h] *= shrink;
#pragma unroll
            for (int d = 0; d < COLS; d++) out[d][2 * h] *= shrink, out[d][2 * h + 1] *= shrink;
        }
    }
#pragma unroll
    for (int h = 0; h < 2; h++) base[h] = r.max[h] == -INFINITY ? 0 : __fmul_rn(r.max[h], scale);
}

/* 64 of the keys: scores become probabilities, which go into the product with v. */
template <bool DROP>
__device__ static inline void attend_half(float (&out)[COLS][4], float (&s)[8][4], rows &r,
                                          const float base[2], const ses_attn &a, const dropout &drop,
                                          uint64_t at_v, int j0)
{
    float scale = a.scale * log2_e, sum[4] = {};
    uint32_t p[4][4];
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) s[n][e] = power2(fmaf(s[n][e], scale, -base[e / 2])), sum[e] += s[n][e];
    r.sum[0] += sum[0] + sum[1], r.sum[1] += sum[2] + sum[3];
    if (DROP) drop_keys(s, a, r.stat, drop, j0);
#pragma unroll
    for (int n = 0; n < 4; n++) fragment(p[n], s[2 * n], s[2 * n + 1]);
    products_begin();
#pragma unroll
    for (int n = 0; n < 4; n++) multiply_held(out, p[n], at_v + n * DOWN);
    products_end();
}

/* 64 or 128 keys from j0 on. */
template <bool DROP, int KEYS>
__device__ static inline void attend_keys(float (&out)[COLS][4], rows &r, const ses_attn &a,
                                          const dropout &drop, const bf16 *q, const bf16 *k, const bf16 *v,
                                          int j0)
{
    float s[KEYS / 8][4], base[2];
    float(&low)[8][4] = *(float(*)[8][4])s, (&high)[8][4] = *(float(*)[8][4])(s + KEYS / 8 - 8);
    uint64_t at_q = matrix(q), at_k = matrix(k), at_v = matrix(v);
    products_begin();
#pragma unroll
    for (int d = 0; d < DH / 16; d++) multiply_rows(s, at_q + d * ALONG, at_k + d * ALONG, d > 0);
    products_end();
    products_wait<0>(s);
    if (!__all_sync(0xffffffffu, sees_all(r.sees, j0, KEYS))) hide(s, r.sees, j0);
    bases(base, s, r, out, a.scale * log2_e);
    attend_half<DROP>(out, low, r, base, a, drop, at_v, j0);
    if (KEYS > 64) attend_half<DROP>(out, high, r, base, a, drop, at_v + 4 * DOWN, j0 + 64);
    products_wait<0>(out);
}
#endif

/* The warp's 16 rows, done. */
template <bool DROP>
__device__ static inline void put_done(const ses_attn &a, const work &w, const rows &r, dropout drop,
                                       const float (&out)[COLS][4], bf16 *stage, int i0)
{
    float by[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float whole = quad_sum(r.sum[h]);
        by[h] = whole > 0 ? (DROP ? drop.scale : 1) / whole : 0;
        if (a.lse && lane_of() % 4 == 0 && i0 + lane_of() / 4 + 8 * h < w.len_q)
            put_lse(a, r.stat[h], __fmul_rn(r.max[h], a.scale * log2_e), whole);
    }
    sink<bf16> to = { (bf16 *)(void *)a.out, false, false };
    put_rows<DH>(to, out, stage, i0, w.len_q, w.part.q0 * a.out_row + w.part.head * a.dim, a.out_row, by);
}

template <bool PLAIN, bool DROP>
__global__ void __launch_bounds__(FORWARD, 2) attend_wide(ses_attn a, dropout drop, int tiles, unsigned items)
{
#ifdef SES_WGMMA
    extern __shared__ uint4 shared[];
    __shared__ item ring[RING];
    bf16 *q = tiles_at(shared), *k = q + 2 * STEP, *v = k + 2 * STEP;
    int warp = warp_of(), group = warp / 4, thread = threadIdx.x;
    unsigned coming = 0;
    if (thread == 0) {
        coming = find_item<PLAIN>(&ring[0], a, tiles, blockIdx.x, items);
        coming = find_item<PLAIN>(&ring[1], a, tiles, coming, items);
    }
    __syncthreads();
    if (!ring[0].w.len_q) return;
    int at = 0, now = 0, q_now = 0, j0 = ring[0].keys.begin;
    auto load = [&](const item &t, int j, int stage, bool queries, int q_stage) {
        if (queries) load_tile<FORWARD>(q + q_stage * STEP, t.q, a.q_row, t.w.first, t.w.len_q, thread);
        load_tile<FORWARD>(k + stage * STEP, t.k, a.k_row, j, t.w.len_k, thread);
        load_tile<FORWARD>(v + stage * STEP, t.v, a.v_row, j, t.w.len_k, thread);
    };
    load(ring[0], j0, 0, true, 0);
    copies_end();
    rows r = rows_of<PLAIN>(a, ring[0].w, ring[0].w.first + warp * 16);
    float out[COLS][4] = {};
    for (;;) {
        copies_wait<0>();
        seen_by_products();
        __syncthreads(); /* this tile is here, and nobody is at the last one any longer */
        bool last = j0 + WIDE >= ring[at].keys.end;
        int next = last ? (at + 1) % RING : at, next_j = last ? ring[next].keys.begin : j0 + WIDE;
        bool more = ring[next].w.len_q > 0;
        if (more) load(ring[next], next_j, now ^ 1, last, q_now ^ 1);
        copies_end();
        if (last && more && thread == 0)
            coming = find_item<PLAIN>(&ring[(at + 2) % RING], a, tiles, coming, items);
        const bf16 *q_at = q + q_now * STEP + group * 64 * DH, *k_at = k + now * STEP, *v_at = v + now * STEP;
        int left = ring[at].w.len_k - j0;
        if (!DROP && left > 64) {
            attend_keys<DROP, WIDE>(out, r, a, drop, q_at, k_at, v_at, j0);
        } else { /* draws, too, want registers */
            attend_keys<DROP, 64>(out, r, a, drop, q_at, k_at, v_at, j0);
            if (left > 64)
                attend_keys<DROP, 64>(out, r, a, drop, q_at, k_at + 64 * DH, v_at + 64 * DH, j0 + 64);
        }
        if (last) {
            int i0 = ring[at].w.first + warp * 16;
            barrier_wait(1 + group, GROUP); /* q is no longer read */
            put_done<DROP>(a, ring[at].w, r, drop, out, q + q_now * STEP + warp * 16 * DH, i0);
            if (!more) return;
            at = next, q_now ^= 1;
            r = rows_of<PLAIN>(a, ring[at].w, ring[at].w.first + warp * 16);
#pragma unroll
            for (int d = 0; d < COLS; d++)
#pragma unroll
                for (int e = 0; e < 4; e++) out[d][e] = 0;
        }
        now ^= 1, j0 = next_j;
    }
#endif
}

template <bool PLAIN, bool DROP> static void forward(ses_cuda *g, const ses_attn *a)
{
    int tiles = (int)ceil_div(a->max_seqlen_q, WIDE);
    unsigned items = (unsigned)(a->seqs * a->heads * tiles), most = 2 * (unsigned)g->cores;
    size_t bytes = 6 * STEP * sizeof(bf16) + 1024;
    /* Items of one tile are alike, and blocks stay for many; longer ones are left to the card to share out.
     * */
    unsigned blocks = a->max_seqlen_k <= WIDE && items > most ? most : items;
    allow_shared(g, attend_wide<PLAIN, DROP>, bytes);
    attend_wide<PLAIN, DROP><<<blocks, FORWARD, bytes, ses_cuda_stream(g)>>>(*a, dropout_of(a), tiles, items);
    launched(g);
}

bool attention_wgmma(ses_cuda *g, const ses_attn *a)
{
    if (g->major != 9 || !fits(a) || a->probs || (a->max_seqlen_q <= SHORT && a->max_seqlen_k <= SHORT))
        return false;
    by_kind(a, [=](auto plain, auto drop) { forward<plain.value, drop.value>(g, a); });
    return true;
}
