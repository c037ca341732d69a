/* Attention in heads of 64, backward: P = exp(S - lse - rest), dS = P (keep dout v' - delta),
 * delta = dout . out */
#include "attention_hd64.cuh"

/* What is known of the lane's two rows, scores to the base 2. */
struct row_stats {
    float lse[2], mend[2], delta[2];
    bool mended; /* some row of the warp's */
};

/* Rows that are not there get an infinite lse, so that their probabilities are 0. dout: the warp's rows in
 * shared memory. */
__device__ static inline row_stats stats_of(const ses_attn &a, const work &w, const int64_t stat[2], int i0,
                                            const uint4 held[4], const bf16 *dout)
{
    row_stats known;
    int lane = lane_of(), r = lane / 2, from = lane % 2 * (DH / 2);
    float sum = 0;
#pragma unroll
    for (int c = 0; c < 4; c++) {
        pack<bf16> x = *(const pack<bf16> *)&held[c], y = *(const pack<bf16> *)(dout + r * LD + from + c * 8);
#pragma unroll
        for (int e = 0; e < 8; e++) sum += num(x.at[e]) * num(y.at[e]);
    }
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        bool there = i0 + lane / 4 + 8 * h < w.len_q;
        known.delta[h] = __shfl_sync(0xffffffffu, sum, lane / 4 * 2 + 16 * h);
        known.lse[h] = there ? lse_of(a, stat[h]) : INFINITY;
        known.mend[h] = there ? mend_of(a, stat[h]) : 1;
    }
    known.mended = __any_sync(0xffffffffu, known.mend[0] != 1 || known.mend[1] != 1);
    return known;
}

/* Half a row of out a lane, for stats_of: asked for early. */
__device__ static inline void hold_out(uint4 held[4], const ses_attn &a, const work &w, int i0)
{
    int lane = lane_of(), i = i0 + lane / 2;
    const bf16 *out = (const bf16 *)(const void *)a.out + (w.part.q0 + i) * a.out_row + w.part.head * a.dim +
                      lane % 2 * (DH / 2);
#pragma unroll
    for (int c = 0; c < 4; c++)
        held[c] = i < w.len_q ? *(const uint4 *)(out + c * 8) : make_uint4(0, 0, 0, 0);
}

/* s and d, scores and dout v' of 64 keys from j0 on, become P keep and dS. */
template <bool PLAIN, bool DROP>
__device__ static inline void slopes(float (&s)[8][4], float (&d)[8][4], const ses_attn &a, dropout drop,
                                     const span sees[2], const int64_t stat[2], const row_stats &r, int j0)
{
    float scale = a.scale * log2_e;
    if (!sees_all(sees, j0)) hide(s, sees, j0);
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) s[n][e] = power2(fmaf(s[n][e], scale, -r.lse[e / 2]));
    if (r.mended)
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) s[n][e] *= r.mend[e / 2];
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int m = 0; m < 8; m += 4) {
            uint32_t word[4];
            if (DROP) draw_block(word, a, drop, (uint64_t)stat[h], (uint32_t)(j0 + m * 8), lane_of() % 4);
#pragma unroll
            for (int b = 0; b < 4; b++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float &prob = s[m + b][2 * h + e], &slope = d[m + b][2 * h + e], p = prob;
                    bool kept_one = !DROP || keeps(word[b], e, drop);
                    float through = !DROP ? slope : kept_one ? slope * drop.scale : 0;
                    prob = !DROP ? p : kept_one ? p * drop.scale : 0;
                    slope = p * (through - r.delta[h]);
                }
        }
}

/* One head of one sequence of up to `side` tokens, a multiple of 16, on both sides. */
template <bool PLAIN, bool DROP>
__global__ void __launch_bounds__(THREADS, 2)
    attend_short(ses_attn a, ses_attn_grad g, dropout drop, int side)
{
    extern __shared__ uint4 shared[];
    int ld = side + 8, warp = warp_of(), lane = lane_of(), i0 = warp * 16;
    bf16 *q = (bf16 *)shared, *k = q + side * LD, *v = k + side * LD, *dout = v + side * LD,
         *probs = dout + side * LD, *stage = v + i0 * LD;
    work w = work_of(a, blockIdx.x, 1, side);
    load_rows(q, head_of<bf16>(a.q, a.q_row, a.q_head, w.part.q0, a, w.part.head), a.q_row, 0, side, w.len_q);
    load_rows(k, head_of<bf16>(a.k, a.k_row, a.k_head, w.part.k0, a, w.part.head), a.k_row, 0, side, w.len_k);
    load_rows(dout, dout_of(a, g, w), a.out_row, 0, side, w.len_q);
    load_rows(v, head_of<bf16>(a.v, a.v_row, a.v_head, w.part.k0, a, w.part.head), a.v_row, 0, side, w.len_k);
    copies_end();
    uint4 held[4];
    hold_out(held, a, w, i0);
    span sees[2];
    int64_t stat[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int i = i0 + lane / 4 + 8 * h;
        sees[h] = seen<PLAIN>(a, w, i);
        stat[h] = ses_attn_stat(&a, w.part, i);
    }
    copies_wait<0>();
    __syncthreads();
    row_stats known = stats_of(a, w, stat, i0, held, dout + i0 * LD);
    uint32_t ds[8][4] = {};
    float *at = (float *)(probs + (i0 + lane / 4) * ld + lane % 4 * 2); /* two numbers a word */
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int j0 = half * SIDE, left = w.len_k - j0;
        if (i0 >= w.len_q || left <= 0) continue;
        float s[8][4], d[8][4];
        products<DH, 8>(s, q + i0 * LD, k + j0 * LD, left);
        products<DH, 8>(d, dout + i0 * LD, v + j0 * LD, left);
        slopes<PLAIN, DROP>(s, d, a, drop, sees, stat, known, j0);
#pragma unroll
        for (int n = 0; n < 8; n++) {
            if (n / 2 * 16 >= left) continue;
            *(uint32_t *)(at + (j0 + n * 8) / 2) = pair(s[n][0], s[n][1]);
            *(uint32_t *)(at + (8 * ld + j0 + n * 8) / 2) = pair(s[n][2], s[n][3]);
        }
#pragma unroll
        for (int n = 0; n < 4; n++) fragment(ds[half * 4 + n], d[2 * n], d[2 * n + 1]);
    }
    __syncthreads(); /* probs is whole, v is free */
    float c[COLS][4] = {}, by[2] = { a.scale, a.scale }, one[2] = { 1, 1 };
    int queries = (w.len_q + 15) / 16 * 16;
    accumulate<DH, 8>(c, ds, k, w.len_k);
    put_rows(sink_of<bf16>(g.dq), c, stage, i0, w.len_q,
             w.part.q0 * a.q_row + w.part.head * ses_attn_head(a.q_head, &a), a.q_row, by);
    if (i0 < w.len_k) turned_products(c, probs, ld, i0, dout, queries);
    put_rows(sink_of<bf16>(g.dv), c, stage, i0, w.len_k,
             w.part.k0 * a.v_row + w.part.head * ses_attn_head(a.v_head, &a), a.v_row, one);
    __syncthreads();
    if (i0 < w.len_q)
#pragma unroll
        for (int n = 0; n < 8; n++) {
            if (n * 16 >= w.len_k) continue;
            *(uint32_t *)(at + n * 8) = ds[n][0];
            *(uint32_t *)(at + (8 * ld) / 2 + n * 8) = ds[n][1];
            *(uint32_t *)(at + n * 8 + 4) = ds[n][2];
            *(uint32_t *)(at + (8 * ld) / 2 + n * 8 + 4) = ds[n][3];
        }
    __syncthreads();
    if (i0 < w.len_k) turned_products(c, probs, ld, i0, q, queries);
    put_rows(sink_of<bf16>(g.dk), c, stage, i0, w.len_k,
             w.part.k0 * a.k_row + w.part.head * ses_attn_head(a.k_head, &a), a.k_row, by);
}

/* dq = scale dS k, and delta for those who come after. */
template <bool PLAIN, bool DROP>
__global__ void __launch_bounds__(THREADS, 2)
    attend_fast_queries(ses_attn a, ses_attn_grad g, dropout drop, int tiles)
{
    extern __shared__ uint4 shared[];
    int rows = blockDim.x / 2, warp = warp_of(), lane = lane_of();
    bf16 *q = (bf16 *)shared, *dout = q + rows * LD, *k = dout + rows * LD, *v = k + 2 * TILE;
    work w = work_of(a, blockIdx.x, tiles, rows);
    if (w.first >= w.len_q) return;
    const bf16 *from_k = head_of<bf16>(a.k, a.k_row, a.k_head, w.part.k0, a, w.part.head);
    const bf16 *from_v = head_of<bf16>(a.v, a.v_row, a.v_head, w.part.k0, a, w.part.head);
    int i0 = w.first + warp * 16;
    span all = seen_by_rows<PLAIN>(a, w, w.first, rows), sees[2], own = { 0, 0 };
    int64_t stat[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int i = i0 + lane / 4 + 8 * h;
        sees[h] = seen<PLAIN>(a, w, i);
        stat[h] = ses_attn_stat(&a, w.part, i);
    }
    if (i0 < w.len_q) own = seen_by_rows<PLAIN>(a, w, i0, 16);
    load_rows(q, head_of<bf16>(a.q, a.q_row, a.q_head, w.part.q0, a, w.part.head), a.q_row, w.first, rows,
              w.len_q);
    load_rows(dout, dout_of(a, g, w), a.out_row, w.first, rows, w.len_q);
#pragma unroll
    for (int ahead = 0; ahead < 2; ahead++) {
        if (all.begin + ahead * SIDE < all.end) {
            load_rows(k + ahead * TILE, from_k, a.k_row, all.begin + ahead * SIDE, SIDE, w.len_k);
            load_rows(v + ahead * TILE, from_v, a.v_row, all.begin + ahead * SIDE, SIDE, w.len_k);
        }
        copies_end();
    }
    uint4 held[4];
    hold_out(held, a, w, i0);
    copies_wait<1>();
    __syncthreads();
    float dq[COLS][4] = {}, by[2] = { a.scale, a.scale };
    row_stats known = stats_of(a, w, stat, i0, held, dout + warp * 16 * LD);
#pragma unroll
    for (int h = 0; h < 2; h++)
        if (lane % 4 == 0 && i0 + lane / 4 + 8 * h < w.len_q) g.delta[stat[h]] = known.delta[h];
    int now = 0;
    for (int j0 = all.begin; j0 < all.end; j0 += SIDE, now ^= 1) {
        copies_wait<1>();
        __syncthreads();
        if (j0 + SIDE > own.begin && j0 < own.end) {
            float s[8][4], d[8][4];
            uint32_t ds[4][4];
            int left = w.len_k - j0;
            products<DH, 8>(s, q + warp * 16 * LD, k + now * TILE, left);
            products<DH, 8>(d, dout + warp * 16 * LD, v + now * TILE, left);
            slopes<PLAIN, DROP>(s, d, a, drop, sees, stat, known, j0);
#pragma unroll
            for (int n = 0; n < 4; n++) fragment(ds[n], d[2 * n], d[2 * n + 1]);
            accumulate<DH, 4>(dq, ds, k + now * TILE, left);
        }
        __syncthreads();
        if (j0 + 2 * SIDE < all.end) {
            load_rows(k + now * TILE, from_k, a.k_row, j0 + 2 * SIDE, SIDE, w.len_k);
            load_rows(v + now * TILE, from_v, a.v_row, j0 + 2 * SIDE, SIDE, w.len_k);
        }
        copies_end();
    }
    put_rows(sink_of<bf16>(g.dq), dq, q + warp * 16 * LD, i0, w.len_q,
             w.part.q0 * a.q_row + w.part.head * ses_attn_head(a.q_head, &a), a.q_row, by);
}

/* s and d, of 16 keys and of 32 queries from `part` of the tile on, become P keep and dS. */
template <bool PLAIN, bool DROP>
__device__ static inline void key_slopes(float s[4][4], float d[4][4], const ses_attn &a, dropout drop,
                                         const span by[2], int64_t stat, int key, int i0, int part,
                                         const column_stats &known, bool mended)
{
    int t = lane_of() % 4;
    float scale = a.scale * log2_e;
#pragma unroll
    for (int n = 0; n < 4; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int c = n * 8 + 2 * t + e % 2, i = i0 + c;
            s[n][e] = power2(fmaf(s[n][e], scale, -known.lse[part + c]));
            if (!PLAIN && (i < by[e / 2].begin || i >= by[e / 2].end)) s[n][e] = 0;
        }
    if (mended)
#pragma unroll
        for (int n = 0; n < 4; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) s[n][e] *= known.mend[part + n * 8 + 2 * t + e % 2];
#pragma unroll
    for (int n = 0; n < 4; n++) {
        uint32_t word[2][2] = {};
        int c = n * 8 + 2 * t;
        if (DROP) draw_keys(word, a, drop, (uint64_t)(stat + c), (uint32_t)key);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            float p = s[n][e];
            bool kept_one = !DROP || keeps(word[e % 2][e / 2], key % 2, drop);
            float through = !DROP ? d[n][e] : kept_one ? d[n][e] * drop.scale : 0;
            s[n][e] = !DROP ? p : kept_one ? p * drop.scale : 0;
            d[n][e] = p * (through - known.delta[part + c + e % 2]);
        }
    }
}

/* dv = (P keep)' dout, dk = scale dS' q: keys are the rows. */
template <bool PLAIN, bool DROP>
__global__ void __launch_bounds__(THREADS, 2)
    attend_fast_keys(ses_attn a, ses_attn_grad g, dropout drop, int tiles)
{
    extern __shared__ uint4 shared[];
    __shared__ column_stats known[2];
    int rows = blockDim.x / 2, warp = warp_of(), lane = lane_of();
    bf16 *k = (bf16 *)shared, *v = k + rows * LD, *q = v + rows * LD, *dout = q + 2 * TILE;
    work w = work_of(a, blockIdx.x, tiles, rows);
    if (w.first >= w.len_k) return;
    const bf16 *from_q = head_of<bf16>(a.q, a.q_row, a.q_head, w.part.q0, a, w.part.head);
    const bf16 *from_dout = dout_of(a, g, w);
    int j0 = w.first + warp * 16, key = j0 + lane / 4;
    span by[2] = { seen_by<PLAIN>(a, w, key), seen_by<PLAIN>(a, w, key + 8) };
    int begin = seen_by<PLAIN>(a, w, w.first).begin / SIDE * SIDE,
        end = seen_by<PLAIN>(a, w, min(w.first + rows, w.len_k) - 1).end;
    load_rows(k, head_of<bf16>(a.k, a.k_row, a.k_head, w.part.k0, a, w.part.head), a.k_row, w.first, rows,
              w.len_k);
    load_rows(v, head_of<bf16>(a.v, a.v_row, a.v_head, w.part.k0, a, w.part.head), a.v_row, w.first, rows,
              w.len_k);
#pragma unroll
    for (int ahead = 0; ahead < 2; ahead++) {
        if (begin + ahead * SIDE < end) {
            load_rows(q + ahead * TILE, from_q, a.q_row, begin + ahead * SIDE, SIDE, w.len_q);
            load_rows(dout + ahead * TILE, from_dout, a.out_row, begin + ahead * SIDE, SIDE, w.len_q);
        }
        copies_end();
    }
    float dk[COLS][4] = {}, dv[COLS][4] = {};
    int now = 0;
    for (int i0 = begin; i0 < end; i0 += SIDE, now ^= 1) {
        float mend = load_columns(&known[now], a, g, w.part, i0);
        copies_wait<1>();
        bool mended = __syncthreads_or(mend != 1);
#pragma unroll
        for (int part = 0; part < SIDE; part += 32) {
            if (j0 >= w.len_k || i0 + part >= w.len_q) continue;
            const bf16 *qs = q + now * TILE + part * LD, *ds = dout + now * TILE + part * LD;
            float s[4][4], d[4][4];
            uint32_t p[2][4];
            int left = w.len_q - i0 - part;
            products<DH, 4>(s, k + warp * 16 * LD, qs, left);
            products<DH, 4>(d, v + warp * 16 * LD, ds, left);
            key_slopes<PLAIN, DROP>(s, d, a, drop, by, ses_attn_stat(&a, w.part, i0 + part), key, i0 + part,
                                    part, known[now], mended);
#pragma unroll
            for (int n = 0; n < 2; n++) fragment(p[n], s[2 * n], s[2 * n + 1]);
            accumulate<DH, 2>(dv, p, ds, left);
#pragma unroll
            for (int n = 0; n < 2; n++) fragment(p[n], d[2 * n], d[2 * n + 1]);
            accumulate<DH, 2>(dk, p, qs, left);
        }
        __syncthreads();
        if (i0 + 2 * SIDE < end) {
            load_rows(q + now * TILE, from_q, a.q_row, i0 + 2 * SIDE, SIDE, w.len_q);
            load_rows(dout + now * TILE, from_dout, a.out_row, i0 + 2 * SIDE, SIDE, w.len_q);
        }
        copies_end();
    }
    copies_wait<0>();
    __syncthreads(); /* k and v take the results, also where no query came */
    float scale[2] = { a.scale, a.scale }, one[2] = { 1, 1 };
    put_rows(sink_of<bf16>(g.dk), dk, k + warp * 16 * LD, j0, w.len_k,
             w.part.k0 * a.k_row + w.part.head * ses_attn_head(a.k_head, &a), a.k_row, scale);
    put_rows(sink_of<bf16>(g.dv), dv, v + warp * 16 * LD, j0, w.len_k,
             w.part.k0 * a.v_row + w.part.head * ses_attn_head(a.v_head, &a), a.v_row, one);
}

template <bool PLAIN, bool DROP>
static void backward(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad)
{
    cudaStream_t stream = ses_cuda_stream(g);
    dropout drop = dropout_of(a);
    unsigned parts = (unsigned)(a->seqs * a->heads);
    int rows_q = rows_for(a->max_seqlen_q), rows_k = rows_for(a->max_seqlen_k),
        side = rows_q > rows_k ? rows_q : rows_k;
    if (a->max_seqlen_q <= MOST && a->max_seqlen_k <= MOST) {
        size_t bytes = (size_t)(4 * side * LD + side * (side + 8)) * sizeof(bf16);
        allow_shared(g, attend_short<PLAIN, DROP>, bytes);
        attend_short<PLAIN, DROP><<<parts, side * 2, bytes, stream>>>(*a, *grad, drop, side);
        launched(g);
        return;
    }
    unsigned tiles_q = (unsigned)ceil_div(a->max_seqlen_q, rows_q),
             tiles_k = (unsigned)ceil_div(a->max_seqlen_k, rows_k);
    size_t bytes_q = (size_t)(2 * rows_q * LD + 4 * TILE) * sizeof(bf16),
           bytes_k = (size_t)(2 * rows_k * LD + 4 * TILE) * sizeof(bf16);
    allow_shared(g, attend_fast_queries<PLAIN, DROP>, bytes_q);
    allow_shared(g, attend_fast_keys<PLAIN, DROP>, bytes_k);
    attend_fast_queries<PLAIN, DROP>
        <<<parts * tiles_q, rows_q * 2, bytes_q, stream>>>(*a, *grad, drop, (int)tiles_q);
    launched(g);
    if (grad->dk.data || grad->dv.data)
        attend_fast_keys<PLAIN, DROP>
            <<<parts * tiles_k, rows_k * 2, bytes_k, stream>>>(*a, *grad, drop, (int)tiles_k);
    launched(g);
}

bool attention_fast_bwd(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad)
{
    if (!fits_bwd(a, grad)) return false;
    by_kind(a, [=](auto plain, auto drop) { backward<plain.value, drop.value>(g, a, grad); });
    return true;
}
