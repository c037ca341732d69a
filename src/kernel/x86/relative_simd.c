/* Scores by what lies between two tokens, on the register tile; relative_ref.c says what they compute.
 * The tokens that speak (queries, or keys) times the rows of the table that they can meet is one product,
 * P; a score is one of its elements. Backwards, the scores' gradients are first summed up to P's: then dx
 * = dP r and dr = dP' x. All cuts depend on the sequence's own lengths and on the table only. */
#include "kernel/relative_chunking.h"
#include "tile_blocks.h"

#include <string.h>

enum {
    SPEAKERS = 96, /* tokens of a chunk: the rows are packed once for them */
    ROWS = 256,    /* of a block of the backward pass */
    LIMIT = SES_SCRATCH_BYTES / 4 - (TILE_ROWS + 1) * TILE_COLS /* numbers of scratch */
};

typedef struct work {
    ses_relative a;
    ses_dst y;
    const float *dy;
    ses_dst dx, dr;
    int64_t ld, blocks; /* dim in whole vectors; chunks of a part, or of the rows */
} work;

/* Some speakers of a part, and the rows of the table they may meet. */
typedef struct group {
    ses_rel_part p;
    int64_t t, n;      /* its speakers */
    int64_t row, rows; /* its rows */
    int64_t others;    /* tokens each of them meets */
} group;

typedef struct span {
    int64_t row, n;
} span;

/* The rows that n speakers from t on may meet. */
static span rows_met(const ses_relative *a, const ses_rel_part *p, int64_t t, int64_t n)
{
    if (!a->dist_to_row || a->q_pos) return (span){ 0, a->rows };
    int64_t shift = p->len_k - p->len_q, least = INT64_MAX, most = -1; /* distances from low to high */
    int64_t low = a->x_is_key ? t - (p->len_q - 1 + shift) : -(t + n - 1 + shift);
    int64_t high = a->x_is_key ? t + n - 1 - shift : p->len_k - 1 - (t + shift);
    for (int64_t d = low; d <= high; d++) {
        int64_t row = a->dist_to_row[(p->turned ? -d : d) + a->max_seqlen_k - 1];
        if (row < least) least = row;
        if (row > most) most = row;
    }
    return (span){ least, most - least + 1 };
}

/* False where there is nobody to meet. */
static bool group_of(group *g, const work *w, ses_rel_part p, int64_t t)
{
    int64_t tokens = w->a.x_is_key ? p.len_k : p.len_q;
    *g = (group){
        .p = p, .t = t, .n = tile_min(SPEAKERS, tokens - t), .others = w->a.x_is_key ? p.len_q : p.len_k
    };
    if (g->n < 1 || g->others < 1) return false;
    span met = rows_met(&w->a, &p, t, g->n);
    g->row = met.row, g->rows = met.n;
    return true;
}

static const float *speaker(const work *w, const group *g, int64_t t)
{
    return w->a.x + ((w->a.x_is_key ? g->p.k0 : g->p.q0) + t) * w->a.x_row + g->p.head * w->a.x_head;
}

static const float *table(const work *w, const group *g)
{
    return w->a.r + (g->row * w->a.heads + g->p.head) * w->a.dim;
}

/* Rows of the table, counted from `first`, for query i and keys j .. j + n - 1. */
VF_INLINE void rows_of(int32_t *out, const ses_relative *a, const ses_rel_part *p, int64_t first, int64_t i,
                       int64_t j, int64_t n)
{
    int64_t place = ses_rel_place(a, p, i), step = p->turned ? -1 : 1;
    const int32_t *at = a->dist_to_row ? a->dist_to_row + a->max_seqlen_k - 1 + step * (j - place) : NULL,
                  *label = a->label + p->k0;
    int32_t base = (int32_t)first;
    for (int64_t c = 0; c < n; c++) out[c] = (at ? at[step * c] : label[place] != label[j + c]) - base;
}

/* Runs of keys that a buffer of row numbers takes. */
enum { RUN = 256 };

/* ---- forward ---- */

/* Scores of query i and keys j .. j + n - 1 by their products, each in its own row of P (ldp) or all in
 * one (0). */
VF_INLINE void pick(const work *w, const group *g, const float *products, int64_t ldp, int64_t i, int64_t j,
                    int64_t n)
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

static void pick_tile(const work *w, const group *g, const float *products, int64_t ldp, int64_t t,
                      int64_t rows)
{
    if (w->a.x_is_key)
        for (int64_t i = 0; i < g->others; i++) pick(w, g, products, ldp, i, t, rows);
    else
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < g->others; j += RUN)
                pick(w, g, products + r * ldp, 0, t + r, j, tile_min(RUN, g->others - j));
}

static void forward_chunk(void *ctx, int64_t index, void *scratch)
{
    const work *w = ctx;
    group g;
    if (!group_of(&g, w, ses_rel_part_of(&w->a, index / w->blocks), index % w->blocks * SPEAKERS)) return;
    int64_t dim = w->a.dim, width = tile_round_up(g.rows, TILE_COLS);
    float *packed = scratch, *products = packed + width * dim;
    pack_across(packed, table(w, &g), w->a.heads * dim, g.rows, dim);
    for (int64_t t = 0, rows, left = tiles_of(g.n); left > 0; left--, t += rows) {
        rows = even_rows(g.n - t, left);
        span met = rows_met(&w->a, &g.p, g.t + t, rows);
        int64_t begin = (met.row - g.row) / TILE_COLS * TILE_COLS, end = met.row - g.row + met.n;
        times_across(products, width, speaker(w, &g, g.t + t), w->a.x_row, rows, packed, g.rows, begin, end,
                     dim);
        pick_tile(w, &g, products, width, g.t + t, rows);
    }
}

/* ---- backward ---- */

/* dP of `rows` speakers from t on: sums of their scores' gradients over equal rows. */
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

/* y[rows][dim] (+)= factor a[rows][n] x, with x from pack_along, n in blocks of ROWS that are summed up. */
static void times_along(ses_dst y, int64_t y_row, const work *w, const float *a, int64_t lda, int64_t rows,
                        const float *packed, int64_t n, float factor)
{
    int64_t dim = w->a.dim, width = part_width(dim);
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
                vf_put_sink(y, r * y_row + d + c, vf_mul(vf_set1(factor), vf_load(sum + r * TILE_COLS + c)),
                            tile_min(v, dim - d) - c);
    }
}

/* dx of a group: dP times the table. */
static void content_chunk(void *ctx, int64_t index, void *scratch)
{
    const work *w = ctx;
    ses_rel_part p = ses_rel_part_of(&w->a, index / w->blocks);
    int64_t first = index % w->blocks * SPEAKERS, tokens = w->a.x_is_key ? p.len_k : p.len_q;
    group g;
    if (!group_of(&g, w, p, first)) { /* those who meet nobody */
        for (int64_t t = first; t < tile_min(tokens, first + SPEAKERS) && !w->dx.accumulate; t++)
            memset(w->dx.data + (speaker(w, &g, t) - w->a.x), 0, (size_t)w->a.dim * sizeof(float));
        return;
    }
    int64_t width = tile_round_up(g.rows, TILE_COLS);
    float *packed = scratch, *dp = packed + width * w->ld;
    pack_along(packed, table(w, &g), w->a.heads * w->a.dim, g.rows, w->a.dim);
    for (int64_t t = 0, rows, left = tiles_of(g.n); left > 0; left--, t += rows) {
        rows = even_rows(g.n - t, left);
        sum_tile(w, &g, dp, width, g.t + t, rows);
        ses_dst to = { w->dx.data + (speaker(w, &g, g.t + t) - w->a.x), w->dx.accumulate };
        times_along(to, w->a.x_row, w, dp, width, rows, packed, g.rows, w->a.scale);
    }
}

/* Some rows of the table, and the distances that have them. */
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

/* Of keys begin .. end - 1, those at one of the block's distances from query i. */
static span keys_at(const ses_relative *a, const ses_rel_part *p, const block *b, int64_t i, int64_t begin,
                    int64_t end)
{
    if (a->dist_to_row) {
        int64_t place = ses_rel_place(a, p, i), low = p->turned ? -b->high : b->low,
                high = p->turned ? -b->low : b->high;
        if (place + low > begin) begin = place + low;
        if (place + high + 1 < end) end = place + high + 1;
    }
    return (span){ begin, end - begin };
}

/* dP' of a group for the block's rows: [n][SPEAKERS]. */
static void sum_rows(const work *w, const group *g, float *dp, const block *b)
{
    const ses_relative *a = &w->a;
    int64_t queries = a->x_is_key ? g->others : g->n, first = a->x_is_key ? 0 : g->t;
    memset(dp, 0, (size_t)(b->n * SPEAKERS) * sizeof *dp);
    for (int64_t i = first; b->low <= b->high && i < first + queries; i++) {
        int32_t row[RUN];
        span keys = keys_at(a, &g->p, b, i, a->x_is_key ? g->t : 0, a->x_is_key ? g->t + g->n : g->others);
        for (int64_t c = 0; c < keys.n; c += RUN) {
            int64_t j = keys.row + c, n = tile_min(RUN, keys.n - c);
            const float *dy = w->dy + g->p.scores + i * g->p.len_k + j;
            float *to = dp + (a->x_is_key ? j - g->t : i - g->t);
            rows_of(row, a, &g->p, b->row, i, j, n);
            for (int64_t k = 0; k < n; k++)
                if (row[k] >= 0 && row[k] < b->n) to[row[k] * SPEAKERS + (a->x_is_key ? k : 0)] += dy[k];
        }
    }
}

/* dr of some rows in one head: all sequences, in order, since they share them. */
static void rows_chunk(void *ctx, int64_t index, void *scratch)
{
    const work *w = ctx;
    const ses_relative *a = &w->a;
    int64_t head = index / w->blocks;
    block b = block_of(a, index % w->blocks * ROWS);
    float *sum = scratch, *dp = sum + ROWS * w->ld, *packed = dp + ROWS * SPEAKERS;
    memset(sum, 0, (size_t)(b.n * w->ld) * sizeof *sum);
    for (int64_t s = 0; s < a->seqs; s++) {
        ses_rel_part p = ses_rel_part_of(a, s * a->heads + head);
        group g;
        for (int64_t t = 0; group_of(&g, w, p, t); t += SPEAKERS) {
            if (g.row >= b.row + b.n || g.row + g.rows <= b.row) continue;
            int64_t from = g.row > b.row ? g.row - b.row : 0, to = tile_min(b.n, g.row + g.rows - b.row);
            sum_rows(w, &g, dp, &b);
            pack_along(packed, speaker(w, &g, t), a->x_row, g.n, a->dim);
            for (int64_t r = from; r < to; r += TILE_ROWS)
                times_along((ses_dst){ sum + r * w->ld, true }, w->ld, w, dp + r * SPEAKERS, SPEAKERS,
                            tile_min(TILE_ROWS, to - r), packed, g.n, 1);
        }
    }
    for (int64_t r = 0; r < b.n; r++)
        for (int64_t d = 0; d < a->dim; d += VF_LANES)
            vf_put_sink(w->dr, ((b.row + r) * a->heads + head) * a->dim + d,
                        vf_mul(vf_set1(a->scale), vf_load(sum + r * w->ld + d)), a->dim - d);
}

/* ---- entries ---- */

/* Does what a chunk needs fit its scratch? Long tables of wide heads do not. */
static bool fits(const work *w)
{
    int64_t width = tile_round_up(w->a.rows, TILE_COLS), most = LIMIT / (w->ld + TILE_ROWS);
    return width <= most && (2 * ROWS + SPEAKERS) * (w->ld + SPEAKERS) <= LIMIT;
}

static work work_of(const ses_relative *a)
{
    int64_t longest = 0;
    const int32_t *cu = a->x_is_key ? a->cu_seqlens_k : a->cu_seqlens_q;
    for (int64_t s = 0; s < a->seqs; s++)
        if (cu[s + 1] - cu[s] > longest) longest = cu[s + 1] - cu[s];
    return (work){ .a = *a,
                   .ld = tile_round_up(a->dim, VF_LANES),
                   .blocks = (longest + SPEAKERS - 1) / SPEAKERS };
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
