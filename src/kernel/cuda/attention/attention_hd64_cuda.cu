/* Attention with head size 64, forward pass. */
#include "attention_hd64.cuh"

template <bool PLAIN, bool DROP>
__global__ void __launch_bounds__(THREADS, 2) attend_hd64(ses_attn a, attn_dropout drop, int tiles)
{
    extern __shared__ uint4 shared[];
    int rows = blockDim.x / 2, warp = warp_of(), lane = lane_of();
    bf16 *q = (bf16 *)shared, *k = q + rows * LD, *v = k + 2 * TILE, *own_q = q + warp * 16 * LD;
    work w = work_of(a, blockIdx.x, tiles, rows);
    if (w.first >= w.len_q) return;
    const bf16 *from_k = head_rows<bf16>(a.k, a.k_row, a.k_head, w.part.k0, a, w.part.head);
    const bf16 *from_v = head_rows<bf16>(a.v, a.v_row, a.v_head, w.part.k0, a, w.part.head);
    span all = rows_key_range<PLAIN>(a, w, w.first, rows), visible[2], own = { 0, 0 };
    int i0 = w.first + warp * 16;
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
#pragma unroll
    for (int ahead = 0; ahead < 2; ahead++) {
        if (all.begin + ahead * SIDE < all.end) {
            load_rows(k + ahead * TILE, from_k, a.k_row, all.begin + ahead * SIDE, SIDE, w.len_k);
            load_rows(v + ahead * TILE, from_v, a.v_row, all.begin + ahead * SIDE, SIDE, w.len_k);
        }
        copies_end();
    }
    float max[2] = { -INFINITY, -INFINITY }, sum[2] = { 0, 0 }, out[COLS][4] = {};
    int now = 0;
    for (int j0 = all.begin; j0 < all.end; j0 += SIDE, now ^= 1) {
        copies_wait<1>();
        __syncthreads();
        if (j0 + SIDE > own.begin && j0 < own.end) {
            float s[8][4];
            uint32_t p[4][4];
            int left = w.len_k - j0;
            products<DH, 8>(s, own_q, k + now * TILE, left);
            if (!all_visible(visible, j0)) mask_scores(s, visible, j0);
            exponentials(s, max, sum, out, a.scale * log2_e);
            if (DROP) drop_scores(s, a, stat, drop, j0);
#pragma unroll
            for (int n = 0; n < 4; n++) fragment(p[n], s[2 * n], s[2 * n + 1]);
            accumulate<DH, 4>(out, p, v + now * TILE, left);
        }
        __syncthreads();
        if (j0 + 2 * SIDE < all.end) {
            load_rows(k + now * TILE, from_k, a.k_row, j0 + 2 * SIDE, SIDE, w.len_k);
            load_rows(v + now * TILE, from_v, a.v_row, j0 + 2 * SIDE, SIDE, w.len_k);
        }
        copies_end();
    }
    copies_wait<0>();
    float by[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float total = quad_sum(sum[h]);
        by[h] = total > 0 ? (DROP ? drop.scale : 1) / total : 0;
        if (a.lse && lane % 4 == 0 && i0 + lane / 4 + 8 * h < w.len_q)
            store_lse(a, stat[h], __fmul_rn(max[h], a.scale * log2_e), total);
    }
    /* q was never waited for: its copy must not overtake the stores */
    if (all.begin >= all.end) __syncthreads();
    dst<bf16> to = { (bf16 *)(void *)a.out, false, false };
    store_rows(to, out, own_q, i0, w.len_q, w.part.q0 * a.out_row + w.part.head * a.dim, a.out_row, by);
}

template <bool PLAIN, bool DROP> static void forward(ses_cuda *g, const ses_attn *a)
{
    int rows = rows_for(a->max_seqlen_q), tiles = (int)ceil_div(a->max_seqlen_q, rows);
    size_t bytes = (size_t)(rows * LD + 4 * TILE) * sizeof(bf16);
    allow_shared(g, attend_hd64<PLAIN, DROP>, bytes);
    attend_hd64<PLAIN, DROP><<<(unsigned)(a->seqs * a->heads * tiles), rows * 2, bytes, ses_cuda_stream(g)>>>(
        *a, attn_dropout_of(a), tiles);
    check_launch(g);
}

bool attention_hd64(ses_cuda *g, const ses_attn *a)
{
    if (!fits(a) || a->probs) return false;
    dispatch(a, [=](auto plain, auto drop) { forward<plain.value, drop.value>(g, a); });
    return true;
}
