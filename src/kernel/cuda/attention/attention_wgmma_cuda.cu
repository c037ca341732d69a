/* Attention with head size 64 on Hopper, forward pass. A block has 128 queries of a head, 64 per warpgroup,
 * and loops over the keys in tiles of 128. The next tile, which may belong to the next head, is loaded
 * meanwhile. Two blocks per multiprocessor: the exponentials of one overlap with the products of the
 * other. */
#include "attention_wgmma.cuh"

enum { FWD_THREADS = 2 * WARPGROUP, RING = 3 };

struct item {
    work w;
    span keys;             /* see key_tiles */
    const bf16 *q, *k, *v; /* the head's rows, from the start of its sequence */
};

/* Finds the first work item from `at` on that has queries; returns the number to continue with. None left:
 * w.len_q is 0. */
template <bool PLAIN>
__device__ static inline unsigned find_item(item *to, const ses_attn &a, int tiles, unsigned at,
                                            unsigned items)
{
    for (; at < items; at += gridDim.x) {
        unsigned last = (unsigned)tiles - 1, tile = at % (unsigned)tiles;
        /* causal attention: long rows first */
        work w = work_of(a, at - tile + last - tile, tiles, ROWS);
        if (w.first >= w.len_q) continue;
        to->w = w;
        to->keys = key_tiles<PLAIN>(a, w, w.first);
        to->q = head_rows<bf16>(a.q, a.q_row, a.q_head, w.part.q0, a, w.part.head);
        to->k = head_rows<bf16>(a.k, a.k_row, a.k_head, w.part.k0, a, w.part.head);
        to->v = head_rows<bf16>(a.v, a.v_row, a.v_head, w.part.k0, a, w.part.head);
        return at + gridDim.x;
    }
    to->w.len_q = 0;
    return at;
}

/* State of the lane's two rows. */
struct rows {
    span visible[2];
    int64_t stat[2];
    float max[2], sum[2]; /* max: see rescale_rows; sum of exponentials relative to it */
};

template <bool PLAIN> __device__ static inline rows rows_of(const ses_attn &a, const work &w, int i0)
{
    rows r;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int i = i0 + lane_of() / 4 + 8 * h;
        r.visible[h] = key_range<PLAIN>(a, w, i);
        r.stat[h] = ses_attn_stat_index(&a, w.part, i);
        r.max[h] = -INFINITY, r.sum[h] = 0;
    }
    return r;
}

#ifdef SES_WGMMA
/* Chooses the base that is subtracted from the exponents: the row's maximum so far, or an earlier maximum
 * that keeps every exponential below 2^8. A new base rescales the sums. */
template <int N>
__device__ static inline void rescale_rows(float base[2], const float (&s)[N][4], rows &r,
                                           float (&out)[COLS][4], float scale)
{
    float top[4] = { r.max[0], r.max[0], r.max[1], r.max[1] }, new_max[2];
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) top[e] = fmaxf(top[e], s[n][e]);
#pragma unroll
    for (int h = 0; h < 2; h++) new_max[h] = quad_max(fmaxf(top[2 * h], top[2 * h + 1]));
    bool grows = (new_max[0] - r.max[0]) * scale > 8 || (new_max[1] - r.max[1]) * scale > 8;
    if (__any_sync(0xffffffffu, grows)) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float rescale = new_max[h] == -INFINITY
                                ? 1
                                : power2(__fmul_rn(r.max[h], scale) - __fmul_rn(new_max[h], scale));
            r.max[h] = new_max[h], r.sum[h] *= rescale;
#pragma unroll
            for (int d = 0; d < COLS; d++) out[d][2 * h] *= rescale, out[d][2 * h + 1] *= rescale;
        }
    }
#pragma unroll
    for (int h = 0; h < 2; h++) base[h] = r.max[h] == -INFINITY ? 0 : __fmul_rn(r.max[h], scale);
}

/* 64 keys: turns scores into probabilities and multiplies them with v. */
template <bool DROP>
__device__ static inline void attend_half(float (&out)[COLS][4], float (&s)[8][4], rows &r,
                                          const float base[2], const ses_attn &a, const attn_dropout &drop,
                                          uint64_t at_v, int j0)
{
    float scale = a.scale * log2_e, sum[4] = {};
    uint32_t p[4][4];
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) s[n][e] = power2(fmaf(s[n][e], scale, -base[e / 2])), sum[e] += s[n][e];
    r.sum[0] += sum[0] + sum[1], r.sum[1] += sum[2] + sum[3];
    if (DROP) drop_scores(s, a, r.stat, drop, j0);
#pragma unroll
    for (int n = 0; n < 4; n++) fragment(p[n], s[2 * n], s[2 * n + 1]);
    products_begin();
#pragma unroll
    for (int n = 0; n < 4; n++) multiply_regs(out, p[n], at_v + n * DOWN);
    products_end();
}

/* 64 or 128 keys from j0 on. */
template <bool DROP, int KEYS>
__device__ static inline void attend_keys(float (&out)[COLS][4], rows &r, const ses_attn &a,
                                          const attn_dropout &drop, const bf16 *q, const bf16 *k,
                                          const bf16 *v, int j0)
{
    float s[KEYS / 8][4], base[2];
    float(&low)[8][4] = *(float(*)[8][4])s, (&high)[8][4] = *(float(*)[8][4])(s + KEYS / 8 - 8);
    uint64_t at_q = descriptor(q), at_k = descriptor(k), at_v = descriptor(v);
    products_begin();
#pragma unroll
    for (int d = 0; d < DH / 16; d++) multiply_rows(s, at_q + d * ALONG, at_k + d * ALONG, d > 0);
    products_end();
    products_wait<0>(s);
    if (!__all_sync(0xffffffffu, all_visible(r.visible, j0, KEYS))) mask_scores(s, r.visible, j0);
    rescale_rows(base, s, r, out, a.scale * log2_e);
    attend_half<DROP>(out, low, r, base, a, drop, at_v, j0);
    if (KEYS > 64) attend_half<DROP>(out, high, r, base, a, drop, at_v + 4 * DOWN, j0 + 64);
    products_wait<0>(out);
}
#endif

/* Stores the warp's 16 finished rows. */
template <bool DROP>
__device__ static inline void store_done(const ses_attn &a, const work &w, const rows &r, attn_dropout drop,
                                         const float (&out)[COLS][4], bf16 *stage, int i0)
{
    float by[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float total = quad_sum(r.sum[h]);
        by[h] = total > 0 ? (DROP ? drop.scale : 1) / total : 0;
        if (a.lse && lane_of() % 4 == 0 && i0 + lane_of() / 4 + 8 * h < w.len_q)
            store_lse(a, r.stat[h], __fmul_rn(r.max[h], a.scale * log2_e), total);
    }
    dst<bf16> to = { (bf16 *)(void *)a.out, false, false };
    store_rows<DH>(to, out, stage, i0, w.len_q, w.part.q0 * a.out_row + w.part.head * a.dim, a.out_row, by);
}

template <bool PLAIN, bool DROP>
__global__ void __launch_bounds__(FWD_THREADS, 2)
    attend_wgmma(ses_attn a, attn_dropout drop, int tiles, unsigned items)
{
#ifdef SES_WGMMA
    extern __shared__ uint4 shared[];
    __shared__ item ring[RING];
    bf16 *q = aligned_tiles(shared), *k = q + 2 * TILE_ELEMS, *v = k + 2 * TILE_ELEMS;
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
        if (queries)
            load_tile<FWD_THREADS>(q + q_stage * TILE_ELEMS, t.q, a.q_row, t.w.first, t.w.len_q, thread);
        load_tile<FWD_THREADS>(k + stage * TILE_ELEMS, t.k, a.k_row, j, t.w.len_k, thread);
        load_tile<FWD_THREADS>(v + stage * TILE_ELEMS, t.v, a.v_row, j, t.w.len_k, thread);
    };
    load(ring[0], j0, 0, true, 0);
    copies_end();
    rows r = rows_of<PLAIN>(a, ring[0].w, ring[0].w.first + warp * 16);
    float out[COLS][4] = {};
    for (;;) {
        copies_wait<0>();
        fence_for_wgmma();
        __syncthreads(); /* this tile is loaded and the previous one is free */
        bool last = j0 + ROWS >= ring[at].keys.end;
        int next = last ? (at + 1) % RING : at, next_j = last ? ring[next].keys.begin : j0 + ROWS;
        bool more = ring[next].w.len_q > 0;
        if (more) load(ring[next], next_j, now ^ 1, last, q_now ^ 1);
        copies_end();
        if (last && more && thread == 0)
            coming = find_item<PLAIN>(&ring[(at + 2) % RING], a, tiles, coming, items);
        const bf16 *q_at = q + q_now * TILE_ELEMS + group * 64 * DH, *k_at = k + now * TILE_ELEMS,
                   *v_at = v + now * TILE_ELEMS;
        int left = ring[at].w.len_k - j0;
        if (!DROP && left > 64) {
            attend_keys<DROP, ROWS>(out, r, a, drop, q_at, k_at, v_at, j0);
        } else { /* drawing random numbers needs registers */
            attend_keys<DROP, 64>(out, r, a, drop, q_at, k_at, v_at, j0);
            if (left > 64)
                attend_keys<DROP, 64>(out, r, a, drop, q_at, k_at + 64 * DH, v_at + 64 * DH, j0 + 64);
        }
        if (last) {
            int i0 = ring[at].w.first + warp * 16;
            barrier_wait(1 + group, WARPGROUP); /* q is free */
            store_done<DROP>(a, ring[at].w, r, drop, out, q + q_now * TILE_ELEMS + warp * 16 * DH, i0);
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
    int tiles = (int)ceil_div(a->max_seqlen_q, ROWS);
    unsigned items = (unsigned)(a->seqs * a->heads * tiles), max_blocks = 2 * (unsigned)g->sm_count;
    size_t bytes = 6 * TILE_ELEMS * sizeof(bf16) + 1024;
    /* Items of one tile take equal time: resident blocks loop over them. Longer items are distributed by the
     * hardware. */
    unsigned blocks = a->max_seqlen_k <= ROWS && items > max_blocks ? max_blocks : items;
    allow_shared(g, attend_wgmma<PLAIN, DROP>, bytes);
    attend_wgmma<PLAIN, DROP>
        <<<blocks, FWD_THREADS, bytes, ses_cuda_stream(g)>>>(*a, attn_dropout_of(a), tiles, items);
    check_launch(g);
}

bool attention_wgmma(ses_cuda *g, const ses_attn *a)
{
    if (g->major != 9 || !fits(a) || a->probs ||
        (a->max_seqlen_q <= MAX_SHORT && a->max_seqlen_k <= MAX_SHORT))
        return false;
    dispatch(a, [=](auto plain, auto drop) { forward<plain.value, drop.value>(g, a); });
    return true;
}
