/* Vectorized relative scores on the register tile; kernels.def has the formulas.
 * One GEMM P = x r' of the tokens of x (queries or keys) with the table rows they need; each score is an
 * element of P. In the backward pass the score gradients are summed to dP; then dx = dP r and dr = dP' x. The
 * partitioning depends only on the sequence lengths and the table. */
#include "kernel/relative_chunking.h"
#include "kernel/simd/gemm/tile_blocks.h"

#include <string.h>

enum {
    TOKENS = 96, /* tokens per chunk: the table rows are packed once for them */
    ROWS = 256,  /* table rows per block of the backward pass */
    LIMIT = SES_SCRATCH_BYTES / 4 - (TILE_ROWS + 1) * TILE_COLS /* floats of scratch memory */
};

typedef struct work {
    ses_relative a;
    ses_dst y;
    const float *dy;
    ses_dst dx, dr;
    /* dim rounded up to whole vectors; chunks per sequence and head, or per table */
    int64_t ld, blocks;
} work;

/* Some tokens of x of one sequence and head, and the table rows they need. */
typedef struct group {
    ses_rel_seq_head p;
    int64_t t, n;      /* tokens: first, count */
    int64_t row, rows; /* table rows: first, count */
    int64_t others;    /* tokens on the other side of the scores */
} group;

typedef struct row_range {
    int64_t row, n;
} row_range;

/* Table rows that n tokens from t on need. */
static row_range rows_needed(const ses_relative *a, const ses_rel_seq_head *p, int64_t t, int64_t n)
{
    if (!a->dist_to_row || a->q_pos) return (row_range){ 0, a->rows };
    int64_t shift = p->len_k - p->len_q, min_row = INT64_MAX, max_row = -1;
    /* range of distances */
    int64_t low = a->x_is_key ? t - (p->len_q - 1 + shift) : -(t + n - 1 + shift);
    int64_t high = a->x_is_key ? t + n - 1 - shift : p->len_k - 1 - (t + shift);
    for (int64_t d = low; d <= high; d++) {
        int64_t row = a->dist_to_row[(p->reversed ? -d : d) + a->max_seqlen_k - 1];
        if (row < min_row) min_row = row;
        if (row > max_row) max_row = row;
    }
    return (row_range){ min_row, max_row - min_row + 1 };
}

/* False if one side has 0 tokens. */
static bool group_of(group *g, const work *w, ses_rel_seq_head p, int64_t t)
{
    int64_t tokens = w->a.x_is_key ? p.len_k : p.len_q;
    *g = (group){
        .p = p, .t = t, .n = tile_min(TOKENS, tokens - t), .others = w->a.x_is_key ? p.len_q : p.len_k
    };
    if (g->n < 1 || g->others < 1) return false;
    row_range needed = rows_needed(&w->a, &p, t, g->n);
    g->row = needed.row, g->rows = needed.n;
    return true;
}

static const float *token_row(const work *w, const group *g, int64_t t)
{
    return w->a.x + ((w->a.x_is_key ? g->p.k0 : g->p.q0) + t) * w->a.x_row + g->p.head * w->a.x_head;
}

static const float *table(const work *w, const group *g)
{
    return w->a.r + (g->row * w->a.heads + g->p.head) * w->a.dim;
}

/* Table rows, counted from `first`, of query i and keys j .. j + n - 1. */
VF_INLINE void rows_of(int32_t *out, const ses_relative *a, const ses_rel_seq_head *p, int64_t first,
                       int64_t i, int64_t j, int64_t n)
{
    int64_t pos = ses_rel_q_pos(a, p, i), step = p->reversed ? -1 : 1;
    const int32_t *at = a->dist_to_row ? a->dist_to_row + a->max_seqlen_k - 1 + step * (j - pos) : NULL,
                  *label = a->label ? a->label + p->k0 : NULL;
    int32_t base = (int32_t)first;
    for (int64_t c = 0; c < n; c++) out[c] = (at ? at[step * c] : label[pos] != label[j + c]) - base;
}

/* Keys per run of row numbers. */
enum { RUN = 256 };

/* ---- forward ---- */

/* Stores the scores of query i and keys j .. j + n - 1 from P: each in its own row (stride ldp), or all in
 * one row (ldp 0). */
VF_INLINE void store_scores(const work *w, const group *g, const float *products, int64_t ldp, int64_t i,
                            int64_t j, int64_t n)
{
    const ses_relative *a = &w->a;
    int32_t row[RUN];
    int64_t at = i * g->p.len_k + j;
    const float *mask = a->mask ? a->mask + g->p.mask + at : NULL;
    float *y = w->y.data + g->p.scores + at;
    rows_of(row, a, &g->p, g->row, i, j, n);
    for (int64_t c = 0; c < n; c++) {
        float v = a->scale * products[c * ldp + row[c]];
        if (mask) v += mask[c];
        y[c] = w->y.accumulate ? y[c] + v : v;
    }
}

static void store_tile(const work *w, const group *g, const float *products, int64_t ldp, int64_t t,
                       int64_t rows)
{
    if (w->a.x_is_key)
        for (int64_t i = 0; i < g->others; i++) store_scores(w, g, products, ldp, i, t, rows);
    else
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < g->others; j += RUN)
                store_scores(w, g, products + r * ldp, 0, t + r, j, tile_min(RUN, g->others - j));
}

static void forward_chunk(void *ctx, int64_t index, void *scratch)
{
    const work *w = ctx;
    group g;
    if (!group_of(&g, w, ses_rel_seq_head_at(&w->a, index / w->blocks), index % w->blocks * TOKENS)) return;
    int64_t dim = w->a.dim, width = tile_round_up(g.rows, TILE_COLS);
    float *packed = scratch, *products = packed + width * dim;
    pack_across(packed, table(w, &g), w->a.heads * dim, g.rows, dim);
    for (int64_t t = 0, rows, left = tile_count(g.n); left > 0; left--, t += rows) {
        rows = even_rows(g.n - t, left);
        row_range needed = rows_needed(&w->a, &g.p, g.t + t, rows);
        int64_t begin = (needed.row - g.row) / TILE_COLS * TILE_COLS, end = needed.row - g.row + needed.n;
        mul_across(products, width, token_row(w, &g, g.t + t), w->a.x_row, rows, packed, g.rows, begin, end,
                   dim);
        store_tile(w, &g, products, width, g.t + t, rows);
    }
}

/* ---- backward ---- */

/* dP of `rows` tokens from t on: score gradients summed per table row. */
static void sum_tile(const work *w, const group *g, float *dp, int64_t ldp, int64_t t, int64_t rows)
{
    int32_t row[RUN];
    memset(dp, 0, (size_t)(rows * ldp) * sizeof *dp);
    for (int64_t i = 0; w->a.x_is_key && i < g->others; i++) {
        const float *dy = w->dy + g->p.scores + i * g->p.len_k + t;
        rows_of(row, &w->a, &g->p, g->row, i, t, rows);
        for (int64_t r = 0; r < rows; r++) dp[r * ldp + row[r]] += dy[r];
    }
    for (int64_t r = 0; !w->a.x_is_key && r < rows; r++)
        for (int64_t j = 0; j < g->others; j += RUN) {
            const float *dy = w->dy + g->p.scores + (t + r) * g->p.len_k + j;
            int64_t n = tile_min(RUN, g->others - j);
            rows_of(row, &w->a, &g->p, g->row, t + r, j, n);
            for (int64_t c = 0; c < n; c++) dp[r * ldp + row[c]] += dy[c];
        }
}

/* y[rows][dim] (+)= factor a[rows][n] x, with x packed by pack_along. n is split in blocks of ROWS. */
static void times_along(ses_dst y, int64_t y_row, const work *w, const float *a, int64_t lda, int64_t rows,
                        const float *packed, int64_t n, float factor)
{
    int64_t dim = w->a.dim, width = dim_panel_width(dim);
    for (int64_t d = 0; d < dim; d += width) {
        float tile[TILE_ROWS * TILE_COLS], sum[TILE_ROWS * TILE_COLS] = { 0 };
        int64_t v = tile_min(width, w->ld - d);
        for (int64_t k = 0; k < n; k += ROWS) {
            tile_direct[rows - 1][v / VF_LANES - 1](tile, TILE_COLS, a + k, lda, packed + d * n + k * v,
                                                    tile_min(ROWS, n - k));
            for (int64_t r = 0; r < rows; r++)
                for (int64_t c = 0; c < v; c += VF_LANES) {
                    float *to = sum + r * TILE_COLS + c;
                    vf_store(to, vf_add(vf_load(to), vf_load(tile + r * TILE_COLS + c)));
                }
        }
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < tile_min(v, dim - d); c += VF_LANES)
                vf_put_dst(y, r * y_row + d + c, vf_mul(vf_set1(factor), vf_load(sum + r * TILE_COLS + c)),
                           tile_min(v, dim - d) - c);
    }
}

/* dx of a group: dP times the table. */
static void content_chunk(void *ctx, int64_t index, void *scratch)
{
    const work *w = ctx;
    ses_rel_seq_head p = ses_rel_seq_head_at(&w->a, index / w->blocks);
    int64_t first = index % w->blocks * TOKENS, tokens = w->a.x_is_key ? p.len_k : p.len_q;
    group g;
    if (!group_of(&g, w, p, first)) { /* no tokens on the other side: zero gradient */
        for (int64_t t = first; t < tile_min(tokens, first + TOKENS) && !w->dx.accumulate; t++)
            memset(w->dx.data + (token_row(w, &g, t) - w->a.x), 0, (size_t)w->a.dim * sizeof(float));
        return;
    }
    int64_t width = tile_round_up(g.rows, TILE_COLS);
    float *packed = scratch, *dp = packed + width * w->ld;
    pack_along(packed, table(w, &g), w->a.heads * w->a.dim, g.rows, w->a.dim);
    for (int64_t t = 0, rows, left = tile_count(g.n); left > 0; left--, t += rows) {
        rows = even_rows(g.n - t, left);
        sum_tile(w, &g, dp, width, g.t + t, rows);
        ses_dst to = { w->dx.data + (token_row(w, &g, g.t + t) - w->a.x), w->dx.accumulate };
        times_along(to, w->a.x_row, w, dp, width, rows, packed, g.rows, w->a.scale);
    }
}

/* A block of table rows and the distances that map to it. */
typedef struct block {
    int64_t row, n, low, high;
} block;

static block block_of(const ses_relative *a, int64_t row)
{
    block b = { row, tile_min(ROWS, a->rows - row), a->dist_to_row ? INT64_MAX : INT64_MIN,
                a->dist_to_row ? INT64_MIN : INT64_MAX };
    for (int64_t d = 1 - a->max_seqlen_k; a->dist_to_row && d < a->max_seqlen_k; d++) {
        int32_t at = a->dist_to_row[d + a->max_seqlen_k - 1];
        if (at < row || at >= row + b.n) continue;
        if (d < b.low) b.low = d;
        b.high = d;
    }
    return b;
}

/* Keys of begin .. end - 1 whose distance from query i maps to the block. */
static row_range keys_at(const ses_relative *a, const ses_rel_seq_head *p, const block *b, int64_t i,
                         int64_t begin, int64_t end)
{
    if (a->dist_to_row) {
        int64_t pos = ses_rel_q_pos(a, p, i), low = p->reversed ? -b->high : b->low,
                high = p->reversed ? -b->low : b->high;
        if (pos + low > begin) begin = pos + low;
        if (pos + high + 1 < end) end = pos + high + 1;
    }
    return (row_range){ begin, end - begin };
}

/* dP' of a group for the rows of the block: [n][TOKENS]. */
static void sum_rows(const work *w, const group *g, float *dp, const block *b)
{
    const ses_relative *a = &w->a;
    int64_t queries = a->x_is_key ? g->others : g->n, first = a->x_is_key ? 0 : g->t;
    memset(dp, 0, (size_t)(b->n * TOKENS) * sizeof *dp);
    for (int64_t i = first; b->low <= b->high && i < first + queries; i++) {
        int32_t row[RUN];
        row_range keys =
            keys_at(a, &g->p, b, i, a->x_is_key ? g->t : 0, a->x_is_key ? g->t + g->n : g->others);
        for (int64_t c = 0; c < keys.n; c += RUN) {
            int64_t j = keys.row + c, n = tile_min(RUN, keys.n - c);
            const float *dy = w->dy + g->p.scores + i * g->p.len_k + j;
            float *to = dp + (a->x_is_key ? j - g->t : i - g->t);
            rows_of(row, a, &g->p, b->row, i, j, n);
            for (int64_t k = 0; k < n; k++)
                if (row[k] >= 0 && row[k] < b->n) to[row[k] * TOKENS + (a->x_is_key ? k : 0)] += dy[k];
        }
    }
}

/* dr of a block of rows in one head. All sequences share the rows, so one chunk sums over them in order. */
static void rows_chunk(void *ctx, int64_t index, void *scratch)
{
    const work *w = ctx;
    const ses_relative *a = &w->a;
    int64_t head = index / w->blocks;
    block b = block_of(a, index % w->blocks * ROWS);
    float *sum = scratch, *dp = sum + ROWS * w->ld, *packed = dp + ROWS * TOKENS;
    memset(sum, 0, (size_t)(b.n * w->ld) * sizeof *sum);
    for (int64_t s = 0; s < a->seqs; s++) {
        ses_rel_seq_head p = ses_rel_seq_head_at(a, s * a->heads + head);
        group g;
        for (int64_t t = 0; group_of(&g, w, p, t); t += TOKENS) {
            if (g.row >= b.row + b.n || g.row + g.rows <= b.row) continue;
            int64_t from = g.row > b.row ? g.row - b.row : 0, to = tile_min(b.n, g.row + g.rows - b.row);
            sum_rows(w, &g, dp, &b);
            pack_along(packed, token_row(w, &g, t), a->x_row, g.n, a->dim);
            for (int64_t r = from; r < to; r += TILE_ROWS)
                times_along((ses_dst){ sum + r * w->ld, true }, w->ld, w, dp + r * TOKENS, TOKENS,
                            tile_min(TILE_ROWS, to - r), packed, g.n, 1);
        }
    }
    for (int64_t r = 0; r < b.n; r++)
        for (int64_t d = 0; d < a->dim; d += VF_LANES)
            vf_put_dst(w->dr, ((b.row + r) * a->heads + head) * a->dim + d,
                       vf_mul(vf_set1(a->scale), vf_load(sum + r * w->ld + d)), a->dim - d);
}

/* ---- entry points ---- */

/* True if a chunk fits into scratch memory: not for long tables with large heads. */
static bool fits(const work *w)
{
    int64_t width = tile_round_up(w->a.rows, TILE_COLS), max_width = LIMIT / (w->ld + TILE_ROWS);
    return width <= max_width && (2 * ROWS + TOKENS) * (w->ld + TOKENS) <= LIMIT;
}

static work work_of(const ses_relative *a)
{
    int64_t max_len = 0;
    const int32_t *cu = a->x_is_key ? a->cu_seqlens_k : a->cu_seqlens_q;
    for (int64_t s = 0; s < a->seqs; s++)
        if (cu[s + 1] - cu[s] > max_len) max_len = cu[s + 1] - cu[s];
    return (
        work){ .a = *a, .ld = tile_round_up(a->dim, VF_LANES), .blocks = (max_len + TOKENS - 1) / TOKENS };
}

void VF_NAME(ses_k_relative)(ses_exec *x, const ses_relative *a, ses_dst y)
{
    work w = work_of(a);
    w.y = y;
    if (fits(&w))
        ses_parallel_for(x->pool, a->seqs * a->heads * w.blocks, forward_chunk, &w);
    else
        ses_k_relative_ref(x, a, y);
}

void VF_NAME(ses_k_relative_bwd)(ses_exec *x, const ses_relative *a, const float *dy, ses_dst dx, ses_dst dr)
{
    work w = work_of(a);
    w.dy = dy, w.dx = dx, w.dr = dr;
    if (!fits(&w)) {
        ses_k_relative_bwd_ref(x, a, dy, dx, dr);
        return;
    }
    if (dx.data) ses_parallel_for(x->pool, a->seqs * a->heads * w.blocks, content_chunk, &w);
    w.blocks = (a->rows + ROWS - 1) / ROWS;
    if (dr.data) ses_parallel_for(x->pool, a->heads * w.blocks, rows_chunk, &w);
}
