/* The backward pass of attention_simd.h. With P = exp(scale q k' - lse), M the dropout factors and
 * out = (P M) v:
 *     delta = rowsum(dout out)   dS = P (M (dout v') - delta)
 *     dv = (P M)' dout           dk = scale dS' q           dq = scale dS k
 * P and dS are computed transposed, keys down, queries across: so the products for dv and dk read them as
 * they are, and only dq packs them. A chunk is one head of one sequence; for each block of keys it goes over
 * the blocks of queries. */

enum {
    SIDE = 192,                   /* queries and keys of a block: whole panels */
    MAX_DISTANCES = 2 * 65536 - 1 /* when gradients by distance are wanted; more are left to ref */
};

/* A chunk's blocks, in scratch. */
typedef struct backward {
    ses_attn a;
    ses_attn_grad g;
    ses_attn_part part;
    int64_t i, nq, j, nk;          /* the queries and the keys of the blocks */
    int64_t ld;                    /* dim in whole vectors */
    float *k;                      /* keys along */
    float *q_across, *dout_across; /* queries, and gradients of their outputs, across and along */
    float *q_along, *dout_along;
    float *p, *dp;    /* [TILE_ROWS][SIDE] */
    float *ds;        /* [SIDE][SIDE], keys down, as the next two */
    float *keep;      /* dropout's factors */
    float *bias;      /* what is added to the scores */
    float *ds_strips; /* ds for the product with k */
    float *dk, *dv;   /* [SIDE][ld] */
    float *dist;      /* [2 SIDE], the last key's from the block's first query first, as the next */
    float *ddist;
    uint32_t *draws;
    double *distances; /* [2 max_seqlen_k - 1]: gradients by distance, of all sequences */
} backward;

_Static_assert((7 * SIDE * (MAX_DIM + VF_LANES) + 4 * SIDE * SIDE + (3 * TILE_ROWS + 4) * SIDE +
                2 * VF_LANES + DRAWS + 2 * (MAX_DISTANCES + 1)) *
                       4 <=
                   SES_SCRATCH_BYTES,
               "scratch");

static void place(backward *b, double *scratch)
{
    int64_t block = SIDE * b->ld;
    b->distances = scratch;
    b->k = (float *)(void *)(scratch + (b->g.drel_bias.data ? MAX_DISTANCES + 1 : 0));
    b->q_across = b->k + block;
    b->dout_across = b->q_across + block;
    b->q_along = b->dout_across + block;
    b->dout_along = b->q_along + block;
    b->dk = b->dout_along + block;
    b->dv = b->dk + block;
    b->p = b->dv + block;
    b->dp = b->p + TILE_ROWS * SIDE;
    b->ds = b->dp + TILE_ROWS * SIDE;
    b->keep = b->ds + SIDE * SIDE;
    b->bias = b->keep + SIDE * SIDE;
    b->ds_strips = b->bias + SIDE * SIDE;
    b->dist = b->ds_strips + (SIDE + TILE_ROWS) * SIDE;
    b->ddist = b->dist + 2 * SIDE + VF_LANES;
    b->draws = (uint32_t *)(void *)(b->ddist + 2 * SIDE + VF_LANES);
}

/* Where the head's columns of a token are. */
static int64_t q_at(const backward *b, int64_t i)
{
    return (b->part.q0 + i) * b->a.q_row + b->part.head * ses_attn_head(b->a.q_head, &b->a);
}
static int64_t k_at(const backward *b, int64_t j)
{
    return (b->part.k0 + j) * b->a.k_row + b->part.head * ses_attn_head(b->a.k_head, &b->a);
}
static int64_t v_at(const backward *b, int64_t j)
{
    return (b->part.k0 + j) * b->a.v_row + b->part.head * ses_attn_head(b->a.v_head, &b->a);
}
static int64_t out_at(const backward *b, int64_t i)
{
    return (b->part.q0 + i) * b->a.out_row + b->part.head * b->a.dim;
}

/* to[rows][cols] += factor tile, in a sink's rows or in scratch. */
static void add_tile(float *to, int64_t row, const float *tile, int64_t rows, int64_t cols, float factor)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t v = 0; v < cols; v += VF_LANES) {
            float *at = to + r * row + v;
            vf x = vf_load(tile + r * TILE_COLS + v);
            vf_put(at, vf_fma(vf_set1(factor), x, vf_get(at, cols - v)), cols - v);
        }
}

/* sum[rows][ld] += a[rows][n] x, with x from pack_along. */
static void add_along(float *sum, const backward *b, const float *a, int64_t rows, const float *packed,
                      int64_t n)
{
    float tile[TILE_ROWS * TILE_COLS];
    int64_t width = part_width(b->a.dim);
    for (int64_t d = 0; d < b->a.dim; d += width) {
        int64_t w = tile_min(width, b->ld - d);
        tile_direct[rows - 1][w / VF_LANES - 1](tile, TILE_COLS, a, SIDE, packed + d * n, n);
        add_tile(sum + d, b->ld, tile, rows, w, 1);
    }
}

/* delta of every query, the sum over the head's columns of dout out. dq starts at zero: blocks are added. */
static void begin_queries(const backward *b)
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
        b->g.delta[ses_attn_stat(a, b->part, i)] = vf_sum(sum);
    }
}

/* keep[key][query]: drawn query by query, then transposed. */
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

/* What the scores of the block are added to. */
static void load_biases(const backward *b)
{
    const ses_attn *a = &b->a;
    int64_t len = b->part.len_k, at = b->part.probs + b->i * len + b->j;
    for (int64_t i = 0; a->bias && i < b->nq; i += VF_LANES)
        transpose_vector(b->bias + i, SIDE, a->bias + at + i * len, len, tile_min(VF_LANES, b->nq - i),
                         b->nk);
    if (a->rel_bias) { /* key t's row begins at dist + nk - 1 - t; distances fall from query to query */
        int64_t n = b->nq + b->nk - 1, far = b->j + b->nk - 1 - (b->i + len - b->part.len_q);
        float up[2 * SIDE];
        dist_row(up, a, b->part.head, far - n + 1, n);
        for (int64_t t = 0; t < n; t++) b->dist[t] = up[n - 1 - t];
    }
}

/* Row r of the tile at key t of the block: p and dp become P M and dS. */
static void slopes(const backward *b, int64_t t, int64_t r)
{
    const ses_attn *a = &b->a;
    int64_t stat = ses_attn_stat(a, b->part, b->i);
    ses_attn_view seen = ses_attn_seen_by(a, b->part, b->j + t + r);
    int64_t end = tile_min(seen.end - b->i, b->nq);
    const float *dist = a->rel_bias ? b->dist + b->nk - 1 - t - r : NULL;
    const float *bias = a->bias ? b->bias + (t + r) * SIDE : NULL;
    float *p = b->p + r * SIDE, *dp = b->dp + r * SIDE, *ds = b->ds + (t + r) * SIDE;
    vf scale = vf_set1(a->scale), keep = vf_set1(1);
    for (int64_t v = 0; v < b->nq; v += VF_LANES) {
        vf lse = vf_get(a->lse + stat + v, b->nq - v), delta = vf_get(b->g.delta + stat + v, b->nq - v);
        vf x = vf_mul(vf_load(p + v), scale);
        if (dist) x = vf_add(x, vf_load(dist + v));
        if (bias) x = vf_add(x, vf_load(bias + v));
        vf e = within(vf_exp(vf_sub(x, lse)), vf_zero(), seen.begin - b->i, end, v);
        if (a->dropout > 0) keep = vf_load(b->keep + (t + r) * SIDE + v);
        vf_store(p + v, vf_mul(e, keep));
        vf_store(ds + v, vf_mul(e, vf_sub(vf_mul(keep, vf_load(dp + v)), delta)));
    }
}

/* The block of keys meets the block of queries: adds to dk, dv, leaves dS. */
static void meet_queries(const backward *b)
{
    const ses_attn *a = &b->a;
    for (int64_t t = 0, rows, left = tiles_of(b->nk); left > 0; left--, t += rows) {
        rows = even_rows(b->nk - t, left);
        const float *k = a->k + k_at(b, b->j + t), *v = a->v + v_at(b, b->j + t);
        times_across(b->p, SIDE, k, a->k_row, rows, b->q_across, b->nq, 0, b->nq, a->dim);
        times_across(b->dp, SIDE, v, a->v_row, rows, b->dout_across, b->nq, 0, b->nq, a->dim);
        for (int64_t r = 0; r < rows; r++) slopes(b, t, r);
        if (b->g.dv.data) add_along(b->dv + t * b->ld, b, b->p, rows, b->dout_along, b->nq);
        if (b->g.dk.data) add_along(b->dk + t * b->ld, b, b->ds + t * SIDE, rows, b->q_along, b->nq);
    }
}

/* dq of the block of queries takes its share from the block of keys. */
static void add_dq(const backward *b)
{
    const ses_attn *a = &b->a;
    int64_t width = part_width(a->dim);
    float tile[TILE_ROWS * TILE_COLS];
    pack_strips(b->ds_strips, b->ds, 1, SIDE, b->nq, b->nk);
    for (int64_t i = 0; i < b->nq; i += TILE_ROWS)
        for (int64_t d = 0; d < a->dim; d += width) {
            int64_t w = tile_min(width, b->ld - d);
            tile_strip[w / VF_LANES - 1](tile, TILE_COLS, b->ds_strips + i * b->nk, b->k + d * b->nk, b->nk);
            add_tile(b->g.dq.data + q_at(b, b->i + i) + d, a->q_row, tile, tile_min(TILE_ROWS, b->nq - i),
                     tile_min(w, a->dim - d), a->scale);
        }
}

/* The block's dS summed over equal distances, then added to the head's. */
static void add_ddist(const backward *b)
{
    int64_t n = b->nq + b->nk - 1, far = b->j + b->nk - 1 - (b->i + b->part.len_k - b->part.len_q);
    memset(b->ddist, 0, (size_t)n * sizeof *b->ddist);
    for (int64_t t = 0; t < b->nk; t++)
        for (int64_t v = 0; v < b->nq; v += VF_LANES) {
            float *to = b->ddist + b->nk - 1 - t + v;
            vf_put(to, vf_add(vf_get(to, b->nq - v), vf_get(b->ds + t * SIDE + v, b->nq - v)), b->nq - v);
        }
    for (int64_t t = 0; t < n; t++)
        if (far - t > -b->a.max_seqlen_k && far - t < b->a.max_seqlen_k)
            b->distances[far - t + b->a.max_seqlen_k - 1] += b->ddist[t];
}

/* The block's dS, queries down. */
static void put_dbias(const backward *b)
{
    int64_t len = b->part.len_k, at = b->part.probs + b->i * len + b->j;
    for (int64_t j = 0; j < b->nk; j += VF_LANES) {
        float rows[SIDE][VF_LANES];
        int64_t n = tile_min(VF_LANES, b->nk - j);
        transpose_vector(rows[0], VF_LANES, b->ds + j * SIDE, SIDE, n, b->nq);
        for (int64_t i = 0; i < b->nq; i++) vf_put_sink(b->g.dbias, at + i * len + j, vf_load(rows[i]), n);
    }
}

static void pack_queries(const backward *b)
{
    const ses_attn *a = &b->a;
    const float *q = a->q + q_at(b, b->i), *dout = b->g.dout + out_at(b, b->i);
    pack_across(b->q_across, q, a->q_row, b->nq, a->dim);
    pack_across(b->dout_across, dout, a->out_row, b->nq, a->dim);
    if (b->g.dk.data) pack_along(b->q_along, q, a->q_row, b->nq, a->dim);
    if (b->g.dv.data) pack_along(b->dout_along, dout, a->out_row, b->nq, a->dim);
}

/* Whether some query of the block sees some key of the block. */
static bool in_view(const backward *b)
{
    int64_t end = ses_attn_sees(&b->a, b->part, b->i + b->nq - 1).end;
    return end > b->j && ses_attn_sees(&b->a, b->part, b->i).begin < b->j + b->nk;
}

/* All that concerns the block of keys. */
static void meet_keys(backward *b)
{
    const ses_attn *a = &b->a;
    if (b->g.dq.data) pack_along(b->k, a->k + k_at(b, b->j), a->k_row, b->nk, a->dim);
    memset(b->dk, 0, (size_t)(b->nk * b->ld) * sizeof *b->dk);
    memset(b->dv, 0, (size_t)(b->nk * b->ld) * sizeof *b->dv);
    for (b->i = 0; b->i < b->part.len_q; b->i += SIDE) {
        b->nq = tile_min(SIDE, b->part.len_q - b->i);
        if (!in_view(b) && !b->g.dbias.data) continue;
        pack_queries(b);
        if (a->dropout > 0) draw_block(b);
        load_biases(b);
        meet_queries(b);
        if (b->g.dq.data) add_dq(b);
        if (b->g.drel_bias.data) add_ddist(b);
        if (b->g.dbias.data) put_dbias(b);
    }
    for (int64_t r = 0; r < b->nk; r++)
        for (int64_t d = 0; d < a->dim; d += VF_LANES) {
            vf dk = vf_mul(vf_set1(a->scale), vf_load(b->dk + r * b->ld + d)),
               dv = vf_load(b->dv + r * b->ld + d);
            if (b->g.dk.data) vf_put_sink(b->g.dk, k_at(b, b->j + r) + d, dk, a->dim - d);
            if (b->g.dv.data) vf_put_sink(b->g.dv, v_at(b, b->j + r) + d, dv, a->dim - d);
        }
}

/* One head of one sequence. */
static void backward_part(backward *b, int64_t index)
{
    b->part = ses_attn_part_of(&b->a, index);
    begin_queries(b);
    for (b->j = 0; b->j < b->part.len_k; b->j += SIDE) {
        b->nk = tile_min(SIDE, b->part.len_k - b->j);
        meet_keys(b);
    }
}

static void backward_chunk(void *ctx, int64_t index, void *scratch)
{
    backward b = *(const backward *)ctx;
    place(&b, scratch);
    backward_part(&b, index);
}

/* One head of all sequences, in order, for they share the gradients by distance. */
static void backward_head(void *ctx, int64_t head, void *scratch)
{
    backward b = *(const backward *)ctx;
    int64_t n = 2 * b.a.max_seqlen_k - 1;
    place(&b, scratch);
    for (int64_t r = 0; r < n; r++) b.distances[r] = 0;
    for (int64_t s = 0; s < b.a.seqs; s++) backward_part(&b, s * b.a.heads + head);
    for (int64_t r = 0; r < n; r++) ses_put(b.g.drel_bias, r * b.a.heads + head, b.distances[r]);
}

void VF_NAME(ses_k_attention_bwd)(ses_exec *x, const ses_attn *a, const ses_attn_grad *g)
{
    if (g->probs || a->dim > MAX_DIM || (g->drel_bias.data && 2 * a->max_seqlen_k - 1 > MAX_DISTANCES)) {
        ses_k_attention_bwd_ref(x, a, g);
        return;
    }
    backward b = { .a = *a, .g = *g, .ld = tile_round_up(a->dim, VF_LANES) };
    if (g->drel_bias.data)
        ses_parallel_for(x->pool, a->heads, backward_head, &b);
    else
        parallel_pieces(x, a->seqs * a->heads, 5 * a->max_seqlen_q * a->max_seqlen_k * a->dim, backward_chunk,
                        &b);
}
