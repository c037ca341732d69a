/* Attention with head size 64, backward pass: P = exp(S - lse - lse_lo), dS = P (M dout v' - delta), delta =
 * dout . out, with the dropout factors M. */
#include "attention_hd64.cuh"

/* Statistics of the lane's two rows; lse in base 2. */
struct row_stats {
    float lse[2], lse_fix[2], delta[2];
    bool any_fix; /* a row of the warp has lse_fix != 1 */
};

/* Rows past the end get an infinite lse, so their probabilities are 0. dout: the warp's rows in shared
 * memory. */
__device__ static inline row_stats stats_of(const ses_attn &a, const work &w, const int64_t stat[2], int i0,
                                            const uint4 out_regs[4], const bf16 *dout)
{
    row_stats stats;
    int lane = lane_of(), r = lane / 2, from = lane % 2 * (DH / 2);
    float sum = 0;
#pragma unroll
    for (int c = 0; c < 4; c++) {
        vec16<bf16> x = *(const vec16<bf16> *)&out_regs[c],
                    y = *(const vec16<bf16> *)(dout + r * LD + from + c * 8);
#pragma unroll
        for (int e = 0; e < 8; e++) sum += to_float(x.at[e]) * to_float(y.at[e]);
    }
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        bool valid = i0 + lane / 4 + 8 * h < w.len_q;
        stats.delta[h] = __shfl_sync(0xffffffffu, sum, lane / 4 * 2 + 16 * h);
        stats.lse[h] = valid ? lse_of(a, stat[h]) : INFINITY;
        stats.lse_fix[h] = valid ? lse_fix_of(a, stat[h]) : 1;
    }
    stats.any_fix = __any_sync(0xffffffffu, stats.lse_fix[0] != 1 || stats.lse_fix[1] != 1);
    return stats;
}

/* Loads half a row of out per lane for stats_of, early enough to hide the latency. */
__device__ static inline void load_out(uint4 out_regs[4], const ses_attn &a, const work &w, int i0)
{
    int lane = lane_of(), i = i0 + lane / 2;
    const bf16 *out = (const bf16 *)(const void *)a.out + (w.part.q0 + i) * a.out_row + w.part.head * a.dim +
                      lane % 2 * (DH / 2);
#pragma unroll
    for (int c = 0; c < 4; c++)
        out_regs[c] = i < w.len_q ? *(const uint4 *)(out + c * 8) : make_uint4(0, 0, 0, 0);
}

/* Turns s and d, the scores and dout v' of 64 keys from j0 on, into P M and dS. */
template <bool PLAIN, bool DROP>
__device__ static inline void probs_and_ds(float (&s)[8][4], float (&d)[8][4], const ses_attn &a,
                                           attn_dropout drop, const span visible[2], const int64_t stat[2],
                                           const row_stats &r, int j0)
{
    float scale = a.scale * log2_e;
    if (!all_visible(visible, j0)) mask_scores(s, visible, j0);
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) s[n][e] = power2(fmaf(s[n][e], scale, -r.lse[e / 2]));
    if (r.any_fix)
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) s[n][e] *= r.lse_fix[e / 2];
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
                    bool kept_one = !DROP || is_kept(word[b], e, drop);
                    float through = !DROP ? slope : kept_one ? slope * drop.scale : 0;
                    prob = !DROP ? p : kept_one ? p * drop.scale : 0;
                    slope = p * (through - r.delta[h]);
                }
        }
}

/* One head of one sequence with at most `side` queries and keys; side is a multiple of 16. */
template <bool PLAIN, bool DROP>
__global__ void __launch_bounds__(THREADS, 2)
    attend_short(ses_attn a, ses_attn_grad g, attn_dropout drop, int side)
{
    extern __shared__ uint4 shared[];
    int ld = side + 8, warp = warp_of(), lane = lane_of(), i0 = warp * 16;
    bf16 *q = (bf16 *)shared, *k = q + side * LD, *v = k + side * LD, *dout = v + side * LD,
         *probs = dout + side * LD, *stage = v + i0 * LD;
    work w = work_of(a, blockIdx.x, 1, side);
    load_rows(q, head_rows<bf16>(a.q, a.q_row, a.q_head, w.part.q0, a, w.part.head), a.q_row, 0, side,
              w.len_q);
    load_rows(k, head_rows<bf16>(a.k, a.k_row, a.k_head, w.part.k0, a, w.part.head), a.k_row, 0, side,
              w.len_k);
    load_rows(dout, dout_of(a, g, w), a.out_row, 0, side, w.len_q);
    load_rows(v, head_rows<bf16>(a.v, a.v_row, a.v_head, w.part.k0, a, w.part.head), a.v_row, 0, side,
              w.len_k);
    copies_end();
    uint4 out_regs[4];
    load_out(out_regs, a, w, i0);
    span visible[2];
    int64_t stat[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int i = i0 + lane / 4 + 8 * h;
        visible[h] = key_range<PLAIN>(a, w, i);
        stat[h] = ses_attn_stat_index(&a, w.part, i);
    }
    copies_wait<0>();
    __syncthreads();
    row_stats stats = stats_of(a, w, stat, i0, out_regs, dout + i0 * LD);
    uint32_t ds[8][4] = {};
    float *at = (float *)(probs + (i0 + lane / 4) * ld + lane % 4 * 2); /* two numbers per word */
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int j0 = half * SIDE, left = w.len_k - j0;
        if (i0 >= w.len_q || left <= 0) continue;
        float s[8][4], d[8][4];
        products<DH, 8>(s, q + i0 * LD, k + j0 * LD, left);
        products<DH, 8>(d, dout + i0 * LD, v + j0 * LD, left);
        probs_and_ds<PLAIN, DROP>(s, d, a, drop, visible, stat, stats, j0);
#pragma unroll
        for (int n = 0; n < 8; n++) {
            if (n / 2 * 16 >= left) continue;
            *(uint32_t *)(at + (j0 + n * 8) / 2) = pair(s[n][0], s[n][1]);
            *(uint32_t *)(at + (8 * ld + j0 + n * 8) / 2) = pair(s[n][2], s[n][3]);
        }
#pragma unroll
        for (int n = 0; n < 4; n++) fragment(ds[half * 4 + n], d[2 * n], d[2 * n + 1]);
    }
    __syncthreads(); /* probs is complete and v is free */
    float c[COLS][4] = {}, by[2] = { a.scale, a.scale }, one[2] = { 1, 1 };
    int queries = (w.len_q + 15) / 16 * 16;
    accumulate<DH, 8>(c, ds, k, w.len_k);
    store_rows(dst_of<bf16>(g.dq), c, stage, i0, w.len_q,
               w.part.q0 * a.q_row + w.part.head * ses_attn_head_stride(a.q_head, &a), a.q_row, by);
    if (i0 < w.len_k) transposed_products(c, probs, ld, i0, dout, queries);
    store_rows(dst_of<bf16>(g.dv), c, stage, i0, w.len_k,
               w.part.k0 * a.v_row + w.part.head * ses_attn_head_stride(a.v_head, &a), a.v_row, one);
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
    if (i0 < w.len_k) transposed_products(c, probs, ld, i0, q, queries);
    store_rows(dst_of<bf16>(g.dk), c, stage, i0, w.len_k,
               w.part.k0 * a.k_row + w.part.head * ses_attn_head_stride(a.k_head, &a), a.k_row, by);
}

/* dq = scale dS k; stores delta for the kernel over keys. */
template <bool PLAIN, bool DROP>
__global__ void __launch_bounds__(THREADS, 2)
    attend_hd64_queries(ses_attn a, ses_attn_grad g, attn_dropout drop, int tiles)
{
    extern __shared__ uint4 shared[];
    int rows = blockDim.x / 2, warp = warp_of(), lane = lane_of();
    bf16 *q = (bf16 *)shared, *dout = q + rows * LD, *k = dout + rows * LD, *v = k + 2 * TILE;
    work w = work_of(a, blockIdx.x, tiles, rows);
    if (w.first >= w.len_q) return;
    const bf16 *from_k = head_rows<bf16>(a.k, a.k_row, a.k_head, w.part.k0, a, w.part.head);
    const bf16 *from_v = head_rows<bf16>(a.v, a.v_row, a.v_head, w.part.k0, a, w.part.head);
    int i0 = w.first + warp * 16;
    span all = rows_key_range<PLAIN>(a, w, w.first, rows), visible[2], own = { 0, 0 };
    int64_t stat[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int i = i0 + lane / 4 + 8 * h;
        visible[h] = key_range<PLAIN>(a, w, i);
        stat[h] = ses_attn_stat_index(&a, w.part, i);
    }
    if (i0 < w.len_q) own = rows_key_range<PLAIN>(a, w, i0, 16);
    load_rows(q, head_rows<bf16>(a.q, a.q_row, a.q_head, w.part.q0, a, w.part.head), a.q_row, w.first, rows,
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
    uint4 out_regs[4];
    load_out(out_regs, a, w, i0);
    copies_wait<1>();
    __syncthreads();
    float dq[COLS][4] = {}, by[2] = { a.scale, a.scale };
    row_stats stats = stats_of(a, w, stat, i0, out_regs, dout + warp * 16 * LD);
#pragma unroll
    for (int h = 0; h < 2; h++)
        if (lane % 4 == 0 && i0 + lane / 4 + 8 * h < w.len_q) g.delta[stat[h]] = stats.delta[h];
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
            probs_and_ds<PLAIN, DROP>(s, d, a, drop, visible, stat, stats, j0);
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
    store_rows(dst_of<bf16>(g.dq), dq, q + warp * 16 * LD, i0, w.len_q,
               w.part.q0 * a.q_row + w.part.head * ses_attn_head_stride(a.q_head, &a), a.q_row, by);
}

/* Turns s and d of 16 keys and 32 queries, from column `part` of the tile on, into P M and dS. */
template <bool PLAIN, bool DROP>
__device__ static inline void key_probs_and_ds(float s[4][4], float d[4][4], const ses_attn &a,
                                               attn_dropout drop, const span by[2], int64_t stat, int key,
                                               int i0, int part, const column_stats &stats, bool any_fix)
{
    int t = lane_of() % 4;
    float scale = a.scale * log2_e;
#pragma unroll
    for (int n = 0; n < 4; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int c = n * 8 + 2 * t + e % 2, i = i0 + c;
            s[n][e] = power2(fmaf(s[n][e], scale, -stats.lse[part + c]));
            if (!PLAIN && (i < by[e / 2].begin || i >= by[e / 2].end)) s[n][e] = 0;
        }
    if (any_fix)
#pragma unroll
        for (int n = 0; n < 4; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) s[n][e] *= stats.lse_fix[part + n * 8 + 2 * t + e % 2];
#pragma unroll
    for (int n = 0; n < 4; n++) {
        uint32_t word[2][2] = {};
        int c = n * 8 + 2 * t;
        if (DROP) draw_keys(word, a, drop, (uint64_t)(stat + c), (uint32_t)key);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            float p = s[n][e];
            bool kept_one = !DROP || is_kept(word[e % 2][e / 2], key % 2, drop);
            float through = !DROP ? d[n][e] : kept_one ? d[n][e] * drop.scale : 0;
            s[n][e] = !DROP ? p : kept_one ? p * drop.scale : 0;
            d[n][e] = p * (through - stats.delta[part + c + e % 2]);
        }
    }
}

/* dv = (P M)' dout, dk = scale dS' q, with keys as rows. */
template <bool PLAIN, bool DROP>
__global__ void __launch_bounds__(THREADS, 2)
    attend_hd64_keys(ses_attn a, ses_attn_grad g, attn_dropout drop, int tiles)
{
    extern __shared__ uint4 shared[];
    __shared__ column_stats stats[2];
    int rows = blockDim.x / 2, warp = warp_of(), lane = lane_of();
    bf16 *k = (bf16 *)shared, *v = k + rows * LD, *q = v + rows * LD, *dout = q + 2 * TILE;
    work w = work_of(a, blockIdx.x, tiles, rows);
    if (w.first >= w.len_k) return;
    const bf16 *from_q = head_rows<bf16>(a.q, a.q_row, a.q_head, w.part.q0, a, w.part.head);
    const bf16 *from_dout = dout_of(a, g, w);
    int j0 = w.first + warp * 16, key = j0 + lane / 4;
    span by[2] = { query_range<PLAIN>(a, w, key), query_range<PLAIN>(a, w, key + 8) };
    int begin = query_range<PLAIN>(a, w, w.first).begin / SIDE * SIDE,
        end = query_range<PLAIN>(a, w, min(w.first + rows, w.len_k) - 1).end;
    load_rows(k, head_rows<bf16>(a.k, a.k_row, a.k_head, w.part.k0, a, w.part.head), a.k_row, w.first, rows,
              w.len_k);
    load_rows(v, head_rows<bf16>(a.v, a.v_row, a.v_head, w.part.k0, a, w.part.head), a.v_row, w.first, rows,
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
        float lse_fix = load_columns(&stats[now], a, g, w.part, i0);
        copies_wait<1>();
        bool any_fix = __syncthreads_or(lse_fix != 1);
#pragma unroll
        for (int part = 0; part < SIDE; part += 32) {
            if (j0 >= w.len_k || i0 + part >= w.len_q) continue;
            const bf16 *qs = q + now * TILE + part * LD, *ds = dout + now * TILE + part * LD;
            float s[4][4], d[4][4];
            uint32_t p[2][4];
            int left = w.len_q - i0 - part;
            products<DH, 4>(s, k + warp * 16 * LD, qs, left);
            products<DH, 4>(d, v + warp * 16 * LD, ds, left);
            key_probs_and_ds<PLAIN, DROP>(s, d, a, drop, by, ses_attn_stat_index(&a, w.part, i0 + part), key,
                                          i0 + part, part, stats[now], any_fix);
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
    __syncthreads(); /* k and v are reused for the results, even if no query attends to them */
    float scale[2] = { a.scale, a.scale }, one[2] = { 1, 1 };
    store_rows(dst_of<bf16>(g.dk), dk, k + warp * 16 * LD, j0, w.len_k,
               w.part.k0 * a.k_row + w.part.head * ses_attn_head_stride(a.k_head, &a), a.k_row, scale);
    store_rows(dst_of<bf16>(g.dv), dv, v + warp * 16 * LD, j0, w.len_k,
               w.part.k0 * a.v_row + w.part.head * ses_attn_head_stride(a.v_head, &a), a.v_row, one);
}

template <bool PLAIN, bool DROP>
static void backward(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad)
{
    cudaStream_t stream = ses_cuda_stream(g);
    attn_dropout drop = attn_dropout_of(a);
    unsigned parts = (unsigned)(a->seqs * a->heads);
    int rows_q = rows_for(a->max_seqlen_q), rows_k = rows_for(a->max_seqlen_k),
        side = rows_q > rows_k ? rows_q : rows_k;
    if (a->max_seqlen_q <= MAX_ROWS && a->max_seqlen_k <= MAX_ROWS) {
        size_t bytes = (size_t)(4 * side * LD + side * (side + 8)) * sizeof(bf16);
        allow_shared(g, attend_short<PLAIN, DROP>, bytes);
        attend_short<PLAIN, DROP><<<parts, side * 2, bytes, stream>>>(*a, *grad, drop, side);
        check_launch(g);
        return;
    }
    unsigned tiles_q = (unsigned)ceil_div(a->max_seqlen_q, rows_q),
             tiles_k = (unsigned)ceil_div(a->max_seqlen_k, rows_k);
    size_t bytes_q = (size_t)(2 * rows_q * LD + 4 * TILE) * sizeof(bf16),
           bytes_k = (size_t)(2 * rows_k * LD + 4 * TILE) * sizeof(bf16);
    allow_shared(g, attend_hd64_queries<PLAIN, DROP>, bytes_q);
    allow_shared(g, attend_hd64_keys<PLAIN, DROP>, bytes_k);
    attend_hd64_queries<PLAIN, DROP>
        <<<parts * tiles_q, rows_q * 2, bytes_q, stream>>>(*a, *grad, drop, (int)tiles_q);
    check_launch(g);
    if (grad->dk.data || grad->dv.data)
        attend_hd64_keys<PLAIN, DROP>
            <<<parts * tiles_k, rows_k * 2, bytes_k, stream>>>(*a, *grad, drop, (int)tiles_k);
    check_launch(g);
}

bool attention_hd64_bwd(ses_cuda *g, const ses_attn *a, const ses_attn_grad *grad)
{
    if (!fits_bwd(a, grad)) return false;
    dispatch(a, [=](auto plain, auto drop) { backward<plain.value, drop.value>(g, a, grad); });
    return true;
}
