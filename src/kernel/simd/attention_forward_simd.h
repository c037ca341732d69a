/* Forward pass of attention on the blocks of attention_blocks.h.
 *
 * A chunk is a block of queries of one head of one sequence. It processes the keys in blocks: for BK_ROWS
 * queries and one block of keys it computes scores, exponentials and the product with the values while they
 * are in the L1 cache. If a later block has a larger maximum, the sums so far are rescaled (online softmax:
 * Milakov and Gimelshein 2018; FlashAttention: Dao et al. 2022). Blocks of keys end at multiples of KEYS and
 * panels begin at multiples of BK_COLS for every query. The bits of a query's output therefore depend only
 * on the query and its visible keys, not on the other queries or on the use of a KV cache. */
#include "attention_shared.h"

/* A chunk of the forward pass. The arrays lie in scratch memory. */
typedef struct forward {
    const ses_attn *a;
    ses_attn_seq_head part;
    int64_t i, n; /* queries of the chunk: first, count */
    int64_t j, m; /* keys of the block: first, count */
    const float *q;
    bk_unit *unit;
    bk_rows q_rows;        /* q as left operand */
    int64_t ld;            /* dim rounded up to whole vectors */
    bk_num *keys, *values; /* packed keys and values of the block */
    bk_num *q_buffer, *p_buffer;
    float *scores;    /* [BK_ROWS][KEYS] */
    float *sum_v;     /* [n][ld]: sum of exponentials times values */
    float *max, *sum; /* [n]: largest score so far, sum of exponentials */
    /* rel_bias by distance, starting at the last query and the first key of the block */
    float *rel_bias;
    uint32_t *draws;
} forward;

_Static_assert(((2 * KEYS + 2 * QUERIES) * (MAX_DIM + BK_ROOM) + (2 * BK_ROWS + 1) * (KEYS + BK_ROOM) +
                3 * QUERIES + VF_LANES + DRAWS) *
                       4 <=
                   SES_SCRATCH_BYTES,
               "scratch");

static forward forward_of(const ses_attn *a, int64_t index, float *scratch)
{
    int64_t blocks = (a->max_seqlen_q + QUERIES - 1) / QUERIES, ld = tile_round_up(a->dim, BK_LANES);
    forward f = {
        .a = a, .part = ses_attn_seq_head_at(a, index / blocks), .i = index % blocks * QUERIES, .ld = ld
    };
    f.n = tile_min(QUERIES, f.part.len_q - f.i);
    f.q = a->q + (f.part.q0 + f.i) * a->q_row + f.part.head * ses_attn_head_stride(a->q_head, a);
    /* packed numbers in the room of as many floats */
    f.keys = (bk_num *)(void *)scratch;
    f.values = (bk_num *)(void *)(scratch + KEYS * ld);
    f.q_buffer = (bk_num *)(void *)(scratch + 2 * KEYS * ld);
    f.scores = scratch + 2 * KEYS * ld + QUERIES * (ld + BK_ROOM);
    f.p_buffer = (bk_num *)(void *)f.scores;
    f.scores += BK_ROWS * (KEYS + BK_ROOM);
    f.sum_v = f.scores + BK_ROWS * KEYS;
    f.max = f.sum_v + QUERIES * ld;
    f.sum = f.max + QUERIES;
    f.rel_bias = f.sum + QUERIES;
    f.draws = (uint32_t *)(void *)(f.rel_bias + KEYS + QUERIES + VF_LANES);
    return f;
}

/* Keys of the block that query i of the chunk attends to, counted from the first key of the block. */
static ses_attn_range visible_keys(const forward *f, int64_t i)
{
    ses_attn_range v = ses_attn_key_range(f->a, f->part, f->i + i);
    v.begin = v.begin < f->j ? 0 : tile_min(v.begin - f->j, f->m);
    v.end = v.end < f->j ? 0 : tile_min(v.end - f->j, f->m);
    return v;
}

/* `scores` stores scores divided by this factor. Scores without biases are stored as products: their
 * exponent, product * scale - maximum, is rounded once. */
static float score_factor(const ses_attn *a)
{
    return a->rel_bias || a->bias || !(a->scale > 0) ? 1 : a->scale;
}

/* Turns the products of query i with keys begin .. end-1 into scores / score_factor, -infinity for masked
 * keys. Returns the largest score. */
static float scores(const forward *f, float *s, int64_t i, int64_t begin, int64_t end)
{
    const ses_attn *a = f->a;
    ses_attn_range visible = visible_keys(f, i);
    const float *rel_bias = a->rel_bias ? f->rel_bias + f->n - 1 - i : NULL;
    const float *bias = a->bias ? a->bias + f->part.probs + (f->i + i) * f->part.len_k + f->j : NULL;
    float factor = score_factor(a);
    vf scale = vf_set1(a->scale / factor), none = vf_set1(-INFINITY), max_vec = none;
    for (int64_t v = begin; v < end; v += VF_LANES) {
        vf x = vf_load(s + v);
        x = rel_bias ? vf_fma(x, scale, vf_load(rel_bias + v)) : vf_mul(x, scale);
        if (bias) x = vf_add(x, vf_get(bias + v, f->m - v));
        x = select_lanes(x, none, visible.begin, visible.end, v);
        vf_store(s + v, x);
        max_vec = vf_max(max_vec, x);
    }
    return vf_hmax(max_vec) * factor;
}

/* Turns scores of a narrow head into exponents: score - max, in double and rounded once. The rounding error
 * of a large score would be a relative error of its probability. No head is narrow with bf16 operands. */
static void narrow_exponents(const forward *f, float *s, int64_t i, int64_t begin, int64_t end, float max)
{
    const ses_attn *a = f->a;
    const float *q = f->q + i * a->q_row, *rel_bias = a->rel_bias ? f->rel_bias + f->n - 1 - i : NULL;
    const float *bias = a->bias ? a->bias + f->part.probs + (f->i + i) * f->part.len_k + f->j : NULL;
    for (int64_t v = begin; v < end; v++) {
        int64_t panel = v / TILE_COLS * TILE_COLS, width = panel_width(f->m, panel);
        const bk_num *key = f->keys + panel * a->dim + v - panel;
        double sum = 0;
        if (s[v] == -INFINITY) continue; /* masked */
        for (int64_t d = 0; d < a->dim; d++) sum += (double)q[d] * (double)key[d * width];
        sum = sum * (double)a->scale - (double)max;
        if (rel_bias) sum += (double)rel_bias[v];
        if (bias) sum += (double)bias[v];
        s[v] = (float)sum;
    }
}

/* Turns scores into exponentials relative to the running maximum and applies dropout. Returns the factor that
 * rescales the sums computed with the previous maximum. */
static float exponentials(forward *f, float *s, int64_t i, int64_t begin, int64_t end)
{
    const ses_attn *a = f->a;
    float prev = f->max[i], max = fmaxf(prev, scores(f, s, i, begin, end));
    float rescale = max == prev ? 1 : prev == -INFINITY ? 0 : expf(prev - max);
    vf minus_max = vf_set1(max == -INFINITY ? 0 : -max), factor = vf_set1(score_factor(a)), sum = vf_zero();
    if (bk_is_narrow(a->dim)) {
        narrow_exponents(f, s, i, begin, end, max);
        minus_max = vf_zero(), factor = vf_set1(1);
    }
    for (int64_t v = begin; v < end; v += VF_LANES) {
        vf p = vf_exp(vf_fma(vf_load(s + v), factor, minus_max));
        sum = vf_add(sum, p);
        vf_store(s + v, p);
    }
    f->max[i] = max;
    f->sum[i] = f->sum[i] * rescale + vf_sum(sum);
    if (a->dropout > 0) {
        const uint32_t *draw = draw_row(f->draws, a, f->part, f->i + i, f->j + begin, end - begin);
        vf scale = vf_set1(ses_drop_scale(a->dropout));
        vi threshold = vi_set1((int32_t)ses_dropout_threshold(a->dropout));
        for (int64_t v = begin; v < end; v += VF_LANES)
            vf_store(s + v, vf_mul(vf_load(s + v), keep_factor(draw + v - begin, threshold, scale)));
    }
    return rescale;
}

/* Processes queries i .. i+rows-1 of the chunk and the current block of keys. */
static void attend_block(forward *f, int64_t i, int64_t rows)
{
    const ses_attn *a = f->a;
    int64_t begin = visible_keys(f, i).begin / BK_COLS * BK_COLS, end = visible_keys(f, i + rows - 1).end;
    int64_t width = bk_dim_width(a->dim);
    float rescale[BK_ROWS];
    _Alignas(SES_ALIGN) float tile[BK_ROWS * BK_COLS];
    if (begin >= end) return;
    bk_mul_across(f->unit, f->scores, KEYS, f->q_rows, i, rows, f->keys, f->m, begin, end, a->dim);
    for (int64_t r = 0; r < rows; r++) rescale[r] = exponentials(f, f->scores + r * KEYS, i + r, begin, end);
    bk_rows p = bk_take(f->p_buffer, f->scores + begin, KEYS, rows, end - begin);
    for (int64_t d = 0; d < a->dim; d += width) {
        int64_t w = tile_min(width, f->ld - d);
        bk_mul(f->unit, tile, BK_COLS, p, 0, rows, f->values + d * bk_depth(f->m) + begin * w, w,
               end - begin);
        for (int64_t r = 0; r < rows; r++) {
            float *to = f->sum_v + (i + r) * f->ld + d;
            for (int64_t v = 0; v < w; v += VF_LANES)
                vf_store(to + v,
                         vf_fma(vf_load(to + v), vf_set1(rescale[r]), vf_load(tile + r * BK_COLS + v)));
        }
    }
}

/* ---- one query, as in token-by-token decoding: keys and values are read in place, not packed ---- */

/* Dot products of x with VF_LANES rows of y, of which n exist. Sums run in the order of d, as in a tile. */
VF_INLINE vf dot_rows(const float *x, const float *y, int64_t row, int64_t n, int64_t dim)
{
    vf sum = vf_zero();
    for (int64_t d = 0; d < dim; d += VF_LANES) {
        int64_t part = tile_min(VF_LANES, dim - d);
        vf r[VF_LANES];
        for (int i = 0; i < VF_LANES; i++) r[i] = i < n ? vf_get(y + i * row + d, part) : vf_zero();
        vf_transpose(r);
        for (int64_t i = 0; i < part; i++) sum = vf_fma(vf_set1(x[d + i]), r[i], sum);
    }
    return sum;
}

/* Prefetches a row into the L1 cache. Hardware prefetchers miss the rows of one head if heads are
 * interleaved. */
VF_INLINE void prefetch_row(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 64 / (int64_t)sizeof *x) __builtin_prefetch(x + i);
}

enum { ADD_VECS = 64 / VF_LANES }; /* vectors of 64 columns: the head size of most models */

/* y = y rescale + sum_j p[j] v[j] over n rows, for `vecs` vectors of columns, of which the last has `left`
 * columns. */
VF_INLINE void add_rows(float *y, float rescale, const float *p, const float *v, int64_t row, int64_t n,
                        const int vecs, int64_t left)
{
    enum { AHEAD = 12 };
    vf sum[ADD_VECS];
    for (int i = 0; i < vecs; i++) sum[i] = vf_zero();
    for (int64_t j = 0; j < n; j++, v += row) {
        vf by = vf_set1(p[j]);
        prefetch_row(v + tile_min(AHEAD, n - 1 - j) * row, vecs * VF_LANES);
        for (int i = 0; i < vecs - 1; i++) sum[i] = vf_fma(by, vf_load(v + i * VF_LANES), sum[i]);
        sum[vecs - 1] = vf_fma(by, vf_get(v + (vecs - 1) * VF_LANES, left), sum[vecs - 1]);
    }
    for (int i = 0; i < vecs; i++)
        vf_store(y + i * VF_LANES, vf_fma(vf_load(y + i * VF_LANES), vf_set1(rescale), sum[i]));
}

/* attend_block for a chunk of one query. */
static void attend_one(forward *f)
{
    const ses_attn *a = f->a;
    ses_attn_range visible = visible_keys(f, 0);
    int64_t begin = visible.begin / BK_COLS * BK_COLS, end = visible.end, at = f->part.k0 + f->j + begin;
    const float *k = a->k + at * a->k_row + f->part.head * ses_attn_head_stride(a->k_head, a),
                *v = a->v + at * a->v_row + f->part.head * ses_attn_head_stride(a->v_head, a);
    float *s = f->scores + begin;
    int64_t n = end - begin, present = f->m - begin, d = 0;
    if (n <= 0) return;
    for (int64_t j = 0; j < n; j += VF_LANES) {
        for (int64_t i = j + VF_LANES; i < tile_min(j + 2 * VF_LANES, n); i++)
            prefetch_row(k + i * a->k_row, a->dim);
        vf_store(s + j, dot_rows(f->q, k + j * a->k_row, a->k_row, tile_min(VF_LANES, present - j), a->dim));
    }
    float rescale = exponentials(f, f->scores, 0, begin, end);
    for (; d + ADD_VECS * VF_LANES <= a->dim; d += ADD_VECS * VF_LANES)
        add_rows(f->sum_v + d, rescale, s, v + d, a->v_row, n, ADD_VECS, VF_LANES);
    for (; d < a->dim; d += VF_LANES) add_rows(f->sum_v + d, rescale, s, v + d, a->v_row, n, 1, a->dim - d);
}

static bool has_no_keys(const forward *f, int64_t i)
{
    ses_attn_range v = ses_attn_key_range(f->a, f->part, f->i + i);
    return v.begin >= v.end;
}

/* Divides by the sum of exponentials. A query without visible keys gets zeros. */
static void finish(const forward *f)
{
    const ses_attn *a = f->a;
    for (int64_t i = 0; i < f->n; i++) {
        double inverse = has_no_keys(f, i) ? 0 : 1 / (double)f->sum[i];
        vf high = vf_set1((float)inverse), low = vf_set1((float)(inverse - (double)(float)inverse));
        float *out = a->out + (f->part.q0 + f->i + i) * a->out_row + f->part.head * a->dim;
        for (int64_t d = 0; d < a->dim; d += VF_LANES) {
            vf x = vf_load(f->sum_v + i * f->ld + d);
            vf_put(out + d, vf_fma(x, low, vf_mul(x, high)), a->dim - d);
        }
        if (a->lse) a->lse[ses_attn_stat_index(a, f->part, f->i + i)] = f->max[i] + logf(f->sum[i]);
    }
}

/* Second pass, when max and sum are final: recomputes the scores and stores probabilities. */
static void write_probs(forward *f, int64_t i, int64_t rows)
{
    const ses_attn *a = f->a;
    bk_mul_across(f->unit, f->scores, KEYS, f->q_rows, i, rows, f->keys, f->m, 0, f->m, a->dim);
    for (int64_t r = 0; r < rows; r++) {
        float *s = f->scores + r * KEYS,
              *to = a->probs + f->part.probs + (f->i + i + r) * f->part.len_k + f->j;
        bool none = has_no_keys(f, i + r);
        vf minus_max = vf_set1(none ? 0 : -f->max[i + r]), by = vf_set1(none ? 0 : 1 / f->sum[i + r]);
        vf factor = vf_set1(score_factor(a));
        scores(f, s, i + r, 0, f->m);
        if (bk_is_narrow(a->dim)) { /* the exponents whose sum was computed */
            narrow_exponents(f, s, i + r, 0, f->m, f->max[i + r]);
            minus_max = vf_zero(), factor = vf_set1(1);
        }
        for (int64_t v = 0; v < f->m; v += VF_LANES)
            vf_put(to + v, vf_mul(vf_exp(vf_fma(vf_load(s + v), factor, minus_max)), by), f->m - v);
    }
}

typedef void block_fn(forward *f, int64_t i, int64_t rows);

/* Calls `visit` for every tile of queries and every block of the keys begin .. end-1. */
static void for_blocks(forward *f, int64_t begin, int64_t end, block_fn *visit)
{
    const ses_attn *a = f->a;
    for (f->j = begin / BK_COLS * BK_COLS; f->j < end; f->j += f->m) {
        f->m = tile_min(KEYS - f->j % KEYS, end - f->j);
        int64_t at = f->part.k0 + f->j, h = f->part.head;
        bool is_single = f->n == 1 && visit == attend_block && BK_IN_PLACE && !bk_is_narrow(a->dim);
        if (!is_single)
            bk_pack_across(f->keys, a->k + at * a->k_row + h * ses_attn_head_stride(a->k_head, a), a->k_row,
                           f->m, a->dim);
        if (visit == attend_block && !is_single)
            bk_pack_along(f->values, a->v + at * a->v_row + h * ses_attn_head_stride(a->v_head, a), a->v_row,
                          f->m, a->dim);
        if (a->rel_bias) { /* row i of the table starts at rel_bias + n - 1 - i */
            int64_t last = f->i + f->n - 1 + f->part.len_k - f->part.len_q;
            rel_bias_row(f->rel_bias, a, h, f->j - last, f->m + f->n - 1);
        }
        if (is_single) attend_one(f);
        for (int64_t i = 0, rows, left = is_single ? 0 : bk_count(f->n); left > 0; left--, i += rows) {
            rows = bk_next(f->n - i, left);
            visit(f, i, rows);
        }
    }
}

static void forward_chunk(void *ctx, int64_t index, void *scratch)
{
    forward f = forward_of(ctx, index, scratch);
    if (f.n <= 0) return;
    bk_unit unit = bk_begin();
    f.unit = &unit;
    f.q_rows = bk_take(f.q_buffer, f.q, f.a->q_row, f.n, f.a->dim);
    memset(f.sum_v, 0, (size_t)(f.n * f.ld) * sizeof *f.sum_v);
    for (int64_t i = 0; i < f.n; i++) f.max[i] = -INFINITY, f.sum[i] = 0;
    for_blocks(&f, ses_attn_key_range(f.a, f.part, f.i).begin,
               ses_attn_key_range(f.a, f.part, f.i + f.n - 1).end, attend_block);
    finish(&f);
    if (f.a->probs) for_blocks(&f, 0, f.part.len_k, write_probs);
    bk_end(&unit);
}

static void attention_forward(ses_exec *x, const ses_attn *a)
{
    if (a->dim > MAX_DIM) {
        ses_k_attention_ref(x, a);
        return;
    }
    ses_attn copy = *a;
    int64_t blocks = (a->max_seqlen_q + QUERIES - 1) / QUERIES;
    parallel_items(x, a->seqs * a->heads * blocks,
                   2 * tile_min(QUERIES, a->max_seqlen_q) * a->max_seqlen_k * a->dim, forward_chunk, &copy);
}
