/* Backward pass of attention, for P = exp(scale q k' - lse), dropout factors M and out = (P M) v:
 *     delta = rowsum(dout out)   dS = P (M (dout v') - delta)
 *     dv = (P M)' dout           dk = scale dS' q           dq = scale dS k
 * P and dS are computed transposed (a row per key, a column per query): the products for dv and dk then read
 * them directly, and only dq packs them. A chunk is one head of one sequence; for each block of keys it loops
 * over the blocks of queries. */
#include "attention_shared.h"

enum {
    SIDE = 192, /* queries and keys per block: whole panels */
    /* distances with a gradient; longer tables use the reference kernel */
    MAX_DISTANCES = 2 * 65536 - 1
};

/* Blocks of a chunk; the arrays lie in scratch memory. */
typedef struct backward {
    ses_attn a;
    ses_attn_grad g;
    ses_attn_seq_head part;
    int64_t i, nq, j, nk; /* first query, queries, first key, keys of the current blocks */
    int64_t ld;           /* dim rounded up to whole vectors */
    bk_unit *unit;
    bk_num *k;                      /* keys, from bk_pack_along */
    bk_num *q_across, *dout_across; /* queries and their output gradients, from bk_pack_across and _along */
    bk_num *q_along, *dout_along;
    bk_num *rows_buffer;   /* left operands, see bk_take */
    float *p, *dp;         /* [BK_ROWS][SIDE] */
    float *ds;             /* [SIDE][SIDE], a row per key; so are keep and bias */
    float *keep;           /* dropout factors */
    float *bias;           /* added to the scores */
    bk_num *ds_transposed; /* ds as left operand of the product with k */
    float *dk, *dv;        /* [SIDE][ld] */
    /* [2 SIDE] by distance, starting at the last key and the first query of the block; so is drel_bias */
    float *rel_bias;
    float *drel_bias;
    uint32_t *draws;
    double *grad_by_dist; /* [2 max_seqlen_k - 1]: gradient by distance, summed over all sequences */
} backward;

_Static_assert((7 * SIDE * (MAX_DIM + BK_LANES) + 4 * SIDE * SIDE + (2 * BK_ROWS + BK_ROOM + 4) * SIDE +
                BK_ROWS * (MAX_DIM + BK_ROOM) + 2 * VF_LANES + DRAWS + 2 * (MAX_DISTANCES + 1)) *
                       4 <=
                   SES_SCRATCH_BYTES,
               "scratch");

static void place_bwd_scratch(backward *b, double *scratch)
{
    int64_t block = SIDE * b->ld; /* floats, also for packed numbers */
    float *at = (float *)(void *)(scratch + (b->g.drel_bias.data ? MAX_DISTANCES + 1 : 0));
    b->grad_by_dist = scratch;
    b->k = (bk_num *)(void *)at;
    b->q_across = (bk_num *)(void *)(at + block);
    b->dout_across = (bk_num *)(void *)(at + 2 * block);
    b->q_along = (bk_num *)(void *)(at + 3 * block);
    b->dout_along = (bk_num *)(void *)(at + 4 * block);
    b->dk = at + 5 * block;
    b->dv = b->dk + block;
    b->p = b->dv + block;
    b->dp = b->p + BK_ROWS * SIDE;
    b->ds = b->dp + BK_ROWS * SIDE;
    b->keep = b->ds + SIDE * SIDE;
    b->bias = b->keep + SIDE * SIDE;
    b->ds_transposed = (bk_num *)(void *)(b->bias + SIDE * SIDE);
    b->rows_buffer = (bk_num *)(void *)(b->bias + SIDE * SIDE + SIDE * (SIDE + BK_ROOM));
    b->rel_bias = b->bias + SIDE * SIDE + SIDE * (SIDE + BK_ROOM) + BK_ROWS * (MAX_DIM + BK_ROOM);
    b->drel_bias = b->rel_bias + 2 * SIDE + VF_LANES;
    b->draws = (uint32_t *)(void *)(b->drel_bias + 2 * SIDE + VF_LANES);
}

/* Offsets of a token's head columns in q, k, v and out. */
static int64_t q_at(const backward *b, int64_t i)
{
    return (b->part.q0 + i) * b->a.q_row + b->part.head * ses_attn_head_stride(b->a.q_head, &b->a);
}
static int64_t k_at(const backward *b, int64_t j)
{
    return (b->part.k0 + j) * b->a.k_row + b->part.head * ses_attn_head_stride(b->a.k_head, &b->a);
}
static int64_t v_at(const backward *b, int64_t j)
{
    return (b->part.k0 + j) * b->a.v_row + b->part.head * ses_attn_head_stride(b->a.v_head, &b->a);
}
static int64_t out_at(const backward *b, int64_t i)
{
    return (b->part.q0 + i) * b->a.out_row + b->part.head * b->a.dim;
}

/* to[rows][cols] += factor tile. */
static void add_tile(float *to, int64_t row, const float *tile, int64_t rows, int64_t cols, float factor)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t v = 0; v < cols; v += VF_LANES) {
            float *at = to + r * row + v;
            vf x = vf_load(tile + r * BK_COLS + v);
            vf_put(at, vf_fma(vf_set1(factor), x, vf_get(at, cols - v)), cols - v);
        }
}

/* sum[rows][ld] += a[rows][n] x, with x packed by bk_pack_along; rows of a are SIDE apart. */
static void add_along(float *sum, const backward *b, const float *a, int64_t rows, const bk_num *packed,
                      int64_t n)
{
    _Alignas(SES_ALIGN) float tile[BK_ROWS * BK_COLS];
    int64_t width = bk_dim_width(b->a.dim);
    bk_rows left = bk_take(b->rows_buffer, a, SIDE, rows, n);
    for (int64_t d = 0; d < b->a.dim; d += width) {
        int64_t w = tile_min(width, b->ld - d);
        bk_mul(b->unit, tile, BK_COLS, left, 0, rows, packed + d * bk_depth(n), w, n);
        add_tile(sum + d, b->ld, tile, rows, w, 1);
    }
}

/* Computes delta of every query. dq starts at zero unless it accumulates: each block of keys adds to it. */
static void init_queries(const backward *b)
{
    const ses_attn *a = &b->a;
    for (int64_t i = 0; i < b->part.len_q; i++) {
        const float *dout = b->g.dout + out_at(b, i), *out = a->out + out_at(b, i);
        vf sum = vf_zero();
        for (int64_t d = 0; d < a->dim; d += VF_LANES) {
            sum = vf_fma(vf_get(dout + d, a->dim - d), vf_get(out + d, a->dim - d), sum);
            if (b->g.dq.data && !b->g.dq.accumulate)
                vf_put(b->g.dq.data + q_at(b, i) + d, vf_zero(), a->dim - d);
        }
        b->g.delta[ses_attn_stat_index(a, b->part, i)] = vf_sum(sum);
    }
}

/* keep[key][query]: drawn per query, then transposed. */
static void draw_block(const backward *b)
{
    const ses_attn *a = &b->a;
    vi threshold = vi_set1((int32_t)ses_dropout_threshold(a->dropout));
    vf scale = vf_set1(ses_drop_scale(a->dropout));
    for (int64_t i = 0; i < b->nq; i += VF_LANES) {
        float rows[VF_LANES][SIDE];
        int64_t n = tile_min(VF_LANES, b->nq - i);
        for (int64_t r = 0; r < n; r++) {
            const uint32_t *draw = draw_row(b->draws, a, b->part, b->i + i + r, b->j, b->nk);
            for (int64_t v = 0; v < b->nk; v += VF_LANES)
                vf_store(rows[r] + v, keep_factor(draw + v, threshold, scale));
        }
        transpose_vector(b->keep + i, SIDE, rows[0], SIDE, n, b->nk);
    }
}

/* Loads the biases added to the scores of the block. */
static void load_biases(const backward *b)
{
    const ses_attn *a = &b->a;
    int64_t len = b->part.len_k, at = b->part.probs + b->i * len + b->j;
    for (int64_t i = 0; a->bias && i < b->nq; i += VF_LANES)
        transpose_vector(b->bias + i, SIDE, a->bias + at + i * len, len, tile_min(VF_LANES, b->nq - i),
                         b->nk);
    /* row of key t starts at rel_bias + nk - 1 - t; the distance decreases with the query */
    if (a->rel_bias) {
        int64_t n = b->nq + b->nk - 1, first_dist = b->j + b->nk - 1 - (b->i + len - b->part.len_q);
        float up[2 * SIDE];
        rel_bias_row(up, a, b->part.head, first_dist - n + 1, n);
        for (int64_t t = 0; t < n; t++) b->rel_bias[t] = up[n - 1 - t];
    }
}

/* Row r of the tile at key t of the block: turns p into P M and dp into dS. */
static void probs_and_ds(const backward *b, int64_t t, int64_t r)
{
    const ses_attn *a = &b->a;
    int64_t stat = ses_attn_stat_index(a, b->part, b->i);
    ses_attn_range queries = ses_attn_query_range(a, b->part, b->j + t + r);
    int64_t end = tile_min(queries.end - b->i, b->nq);
    const float *rel_bias = a->rel_bias ? b->rel_bias + b->nk - 1 - t - r : NULL;
    const float *bias = a->bias ? b->bias + (t + r) * SIDE : NULL;
    float *p = b->p + r * SIDE, *dp = b->dp + r * SIDE, *ds = b->ds + (t + r) * SIDE;
    vf scale = vf_set1(a->scale), keep = vf_set1(1);
    for (int64_t v = 0; v < b->nq; v += VF_LANES) {
        vf lse = vf_get(a->lse + stat + v, b->nq - v), delta = vf_get(b->g.delta + stat + v, b->nq - v);
        vf x = vf_load(p + v);
        if (!rel_bias && !bias)
            x = vf_fma(x, scale, vf_sub(vf_zero(), lse));
        else {
            x = rel_bias ? vf_fma(x, scale, vf_load(rel_bias + v)) : vf_mul(x, scale);
            if (bias) x = vf_add(x, vf_load(bias + v));
            x = vf_sub(x, lse);
        }
        vf e = select_lanes(vf_exp(x), vf_zero(), queries.begin - b->i, end, v);
        if (a->dropout > 0) keep = vf_load(b->keep + (t + r) * SIDE + v);
        vf_store(p + v, vf_mul(e, keep));
        vf_store(ds + v, vf_mul(e, vf_sub(vf_mul(keep, vf_load(dp + v)), delta)));
    }
}

/* Processes the block of keys and the block of queries: adds to dk and dv, stores dS. */
static void process_queries(const backward *b)
{
    const ses_attn *a = &b->a;
    for (int64_t t = 0, rows, left = bk_count(b->nk); left > 0; left--, t += rows) {
        rows = bk_next(b->nk - t, left);
        bk_rows k = bk_take(b->rows_buffer, a->k + k_at(b, b->j + t), a->k_row, rows, a->dim);
        bk_mul_across(b->unit, b->p, SIDE, k, 0, rows, b->q_across, b->nq, 0, b->nq, a->dim);
        bk_rows v = bk_take(b->rows_buffer, a->v + v_at(b, b->j + t), a->v_row, rows, a->dim);
        bk_mul_across(b->unit, b->dp, SIDE, v, 0, rows, b->dout_across, b->nq, 0, b->nq, a->dim);
        for (int64_t r = 0; r < rows; r++) probs_and_ds(b, t, r);
        if (b->g.dv.data) add_along(b->dv + t * b->ld, b, b->p, rows, b->dout_along, b->nq);
        if (b->g.dk.data) add_along(b->dk + t * b->ld, b, b->ds + t * SIDE, rows, b->q_along, b->nq);
    }
}

/* Adds the contribution of the block of keys to dq of the block of queries. */
static void add_dq(const backward *b)
{
    const ses_attn *a = &b->a;
    int64_t width = bk_dim_width(a->dim);
    _Alignas(SES_ALIGN) float tile[BK_ROWS * BK_COLS];
    bk_transpose(b->ds_transposed, b->ds, SIDE, b->nq, b->nk);
    for (int64_t i = 0; i < b->nq; i += BK_ROWS)
        for (int64_t d = 0; d < a->dim; d += width) {
            int64_t w = tile_min(width, b->ld - d);
            bk_mul_transposed(b->unit, tile, BK_COLS, b->ds_transposed, i, b->nq, b->k + d * bk_depth(b->nk),
                              w, b->nk);
            add_tile(b->g.dq.data + q_at(b, b->i + i) + d, a->q_row, tile, tile_min(BK_ROWS, b->nq - i),
                     tile_min(w, a->dim - d), a->scale);
        }
}

/* Sums dS of the block over equal distances and adds the sums to the head's table. */
static void add_drel_bias(const backward *b)
{
    int64_t n = b->nq + b->nk - 1, first_dist = b->j + b->nk - 1 - (b->i + b->part.len_k - b->part.len_q);
    memset(b->drel_bias, 0, (size_t)n * sizeof *b->drel_bias);
    for (int64_t t = 0; t < b->nk; t++)
        for (int64_t v = 0; v < b->nq; v += VF_LANES) {
            float *to = b->drel_bias + b->nk - 1 - t + v;
            vf_put(to, vf_add(vf_get(to, b->nq - v), vf_get(b->ds + t * SIDE + v, b->nq - v)), b->nq - v);
        }
    for (int64_t t = 0; t < n; t++)
        if (first_dist - t > -b->a.max_seqlen_k && first_dist - t < b->a.max_seqlen_k)
            b->grad_by_dist[first_dist - t + b->a.max_seqlen_k - 1] += b->drel_bias[t];
}

/* Stores dS of the block to dbias, a row per query. */
static void put_dbias(const backward *b)
{
    int64_t len = b->part.len_k, at = b->part.probs + b->i * len + b->j;
    for (int64_t j = 0; j < b->nk; j += VF_LANES) {
        float rows[SIDE][VF_LANES];
        int64_t n = tile_min(VF_LANES, b->nk - j);
        transpose_vector(rows[0], VF_LANES, b->ds + j * SIDE, SIDE, n, b->nq);
        for (int64_t i = 0; i < b->nq; i++) vf_put_dst(b->g.dbias, at + i * len + j, vf_load(rows[i]), n);
    }
}

static void pack_queries(const backward *b)
{
    const ses_attn *a = &b->a;
    const float *q = a->q + q_at(b, b->i), *dout = b->g.dout + out_at(b, b->i);
    bk_pack_across(b->q_across, q, a->q_row, b->nq, a->dim);
    bk_pack_across(b->dout_across, dout, a->out_row, b->nq, a->dim);
    if (b->g.dk.data) bk_pack_along(b->q_along, q, a->q_row, b->nq, a->dim);
    if (b->g.dv.data) bk_pack_along(b->dout_along, dout, a->out_row, b->nq, a->dim);
}

/* True if a query of the block attends to a key of the block. */
static bool blocks_overlap(const backward *b)
{
    int64_t end = ses_attn_key_range(&b->a, b->part, b->i + b->nq - 1).end;
    return end > b->j && ses_attn_key_range(&b->a, b->part, b->i).begin < b->j + b->nk;
}

/* Processes the block of keys: all blocks of queries, then dk and dv. */
static void process_keys(backward *b)
{
    const ses_attn *a = &b->a;
    if (b->g.dq.data) bk_pack_along(b->k, a->k + k_at(b, b->j), a->k_row, b->nk, a->dim);
    memset(b->dk, 0, (size_t)(b->nk * b->ld) * sizeof *b->dk);
    memset(b->dv, 0, (size_t)(b->nk * b->ld) * sizeof *b->dv);
    for (b->i = 0; b->i < b->part.len_q; b->i += SIDE) {
        b->nq = tile_min(SIDE, b->part.len_q - b->i);
        if (!blocks_overlap(b) && !b->g.dbias.data) continue;
        pack_queries(b);
        if (a->dropout > 0) draw_block(b);
        load_biases(b);
        process_queries(b);
        if (b->g.dq.data) add_dq(b);
        if (b->g.drel_bias.data) add_drel_bias(b);
        if (b->g.dbias.data) put_dbias(b);
    }
    for (int64_t r = 0; r < b->nk; r++)
        for (int64_t d = 0; d < a->dim; d += VF_LANES) {
            vf dk = vf_mul(vf_set1(a->scale), vf_load(b->dk + r * b->ld + d)),
               dv = vf_load(b->dv + r * b->ld + d);
            if (b->g.dk.data) vf_put_dst(b->g.dk, k_at(b, b->j + r) + d, dk, a->dim - d);
            if (b->g.dv.data) vf_put_dst(b->g.dv, v_at(b, b->j + r) + d, dv, a->dim - d);
        }
}

/* One head of one sequence. */
static void backward_seq_head(backward *b, int64_t index)
{
    b->part = ses_attn_seq_head_at(&b->a, index);
    init_queries(b);
    for (b->j = 0; b->j < b->part.len_k; b->j += SIDE) {
        b->nk = tile_min(SIDE, b->part.len_k - b->j);
        process_keys(b);
    }
}

static void backward_chunk(void *ctx, int64_t index, void *scratch)
{
    backward b = *(const backward *)ctx;
    bk_unit unit = bk_begin();
    b.unit = &unit;
    place_bwd_scratch(&b, scratch);
    backward_seq_head(&b, index);
    bk_end(&unit);
}

/* One head of all sequences in order: they share the gradient by distance. */
static void backward_head(void *ctx, int64_t head, void *scratch)
{
    backward b = *(const backward *)ctx;
    int64_t n = 2 * b.a.max_seqlen_k - 1;
    bk_unit unit = bk_begin();
    b.unit = &unit;
    place_bwd_scratch(&b, scratch);
    for (int64_t r = 0; r < n; r++) b.grad_by_dist[r] = 0;
    for (int64_t s = 0; s < b.a.seqs; s++) backward_seq_head(&b, s * b.a.heads + head);
    for (int64_t r = 0; r < n; r++) ses_dst_put(b.g.drel_bias, r * b.a.heads + head, b.grad_by_dist[r]);
    bk_end(&unit);
}

static void attention_backward(ses_exec *x, const ses_attn *a, const ses_attn_grad *g)
{
    if (g->probs || a->dim > MAX_DIM || (g->drel_bias.data && 2 * a->max_seqlen_k - 1 > MAX_DISTANCES)) {
        ses_k_attention_bwd_ref(x, a, g);
        return;
    }
    backward b = { .a = *a, .g = *g, .ld = tile_round_up(a->dim, BK_LANES) };
    if (g->drel_bias.data)
        ses_parallel_for(x->pool, a->heads, backward_head, &b);
    else
        parallel_items(x, a->seqs * a->heads, 5 * a->max_seqlen_q * a->max_seqlen_k * a->dim, backward_chunk,
                       &b);
}
