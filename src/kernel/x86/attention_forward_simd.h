/* Attention on the register tile of gemm_tile.h: what both passes share, then the forward pass. For
 * attention_avx2.c and attention_avx512.c.
 *
 * A chunk is some queries of one head of one sequence. It takes the keys in blocks; of a block and TILE_ROWS
 * queries the scores are computed, turned into exponentials and multiplied with the values while they are in
 * the first-level cache. When another block has a larger score, what was summed up so far is scaled down
 * (Milakov and Gimelshein 2018; Dao et al. 2022). Blocks of keys end at multiples of KEYS and panels begin
 * at multiples of TILE_COLS whatever the queries, so a query's bits depend on what it sees alone: not on the
 * queries around it, nor on whether the keys come from a cache. */
#include "kernel/attention_chunking.h"
#include "tile_blocks.h"
#include "vecmath.h"

#include <math.h>

enum {
    MAX_DIM = 256, /* larger heads are left to ref */
    QUERIES = 128, /* of a chunk; keys and values are packed once for them */
    KEYS = 528,    /* of a block; whole panels, and BERT's 512 are one block */
};

/* Pieces of work that may be too small to be handed out one by one: in runs of `each`. */
typedef struct pieces {
    ses_chunk_fn *fn;
    void *ctx;
    int64_t n, each;
} pieces;

static void run_pieces(void *ctx, int64_t index, void *scratch)
{
    const pieces *p = ctx;
    ses_range run = ses_chunk(p->n, p->each, index);
    for (int64_t i = run.begin; i < run.end; i++) p->fn(p->ctx, i, scratch);
}

/* cost: multiply-adds of one */
static void parallel_pieces(ses_exec *x, int64_t n, int64_t cost, ses_chunk_fn *fn, void *ctx)
{
    enum { WORTH = 1 << 19, ALONE = 1 << 16 }; /* ALONE: what a piece costs beside its products */
    if (n <= 0) return;
    int64_t chunks = ses_chunks(n, 1 + WORTH / (cost + ALONE));
    pieces p = { fn, ctx, n, ses_chunks(n, chunks) };
    ses_parallel_for(x->pool, ses_chunks(n, p.each), run_pieces, &p);
}

/* 0, or `scale` for what is kept, by the draws at `draw`. */
static inline vf keep_factor(const uint32_t *draw, vi threshold, vf scale)
{
    return vf_select(vi_ge_unsigned(vi_load(draw), threshold), scale, vf_zero());
}

enum { DRAWS = KEYS + 31 + 8 * VF_LANES }; /* room for draw_row */

/* The draws of query i for keys j .. j+n-1; the result points to the first. */
static const uint32_t *draw_row(uint32_t *buffer, const ses_attn *a, ses_attn_part part, int64_t i, int64_t j,
                                int64_t n)
{
    uint64_t first = ses_attn_draw(a, part, i, j & ~(int64_t)31) / 8;
    int64_t skipped = j % 32;
    for (int64_t at = 0; at < skipped + n; at += 8 * VF_LANES)
        vf_drop_keys(buffer + at, a->rng_key, first + (uint64_t)at / 8);
    return buffer + skipped;
}

/* out[t] = dist at distance r + t from the query, for a head; 0 where there is no such distance. */
static void dist_row(float *out, const ses_attn *a, int64_t head, int64_t r, int64_t n)
{
    for (int64_t t = 0; t < n; t++, r++)
        out[t] = r > -a->max_seqlen_k && r < a->max_seqlen_k
                     ? a->rel_bias[(r + a->max_seqlen_k - 1) * a->heads + head]
                     : 0;
}

/* x in lanes begin .. end-1 counted from lane `at`, else `other`. */
VF_INLINE vf within(vf x, vf other, int64_t begin, int64_t end, int64_t at)
{
    if (begin <= at && end >= at + VF_LANES) return x;
    int64_t low = begin - at, high = end - at;
    low = low < 0 ? 0 : tile_min(low, VF_LANES);
    high = high < 0 ? 0 : tile_min(high, VF_LANES);
    return vf_select(vm_part(low), other, vf_select(vm_part(high), x, other));
}

/* A chunk of the forward pass. The arrays are in scratch. */
typedef struct forward {
    const ses_attn *a;
    ses_attn_part part;
    int64_t i, n; /* its queries */
    int64_t j, m; /* the keys of the block */
    const float *q;
    int64_t ld;           /* dim in whole vectors */
    float *keys, *values; /* the block, packed */
    float *scores;        /* [TILE_ROWS][KEYS] */
    float *sum_v;         /* [n][ld]: sums of exponentials times values so far */
    float *max, *sum;     /* [n]: the largest score so far, the sum of exponentials */
    float *dist;          /* by distance, the last query's from the block's first key first */
    uint32_t *draws;
} forward;

_Static_assert(((2 * KEYS + QUERIES) * (MAX_DIM + VF_LANES) + (TILE_ROWS + 1) * KEYS + 3 * QUERIES +
                VF_LANES + DRAWS) *
                       4 <=
                   SES_SCRATCH_BYTES,
               "scratch");

static forward forward_of(const ses_attn *a, int64_t index, float *scratch)
{
    int64_t blocks = (a->max_seqlen_q + QUERIES - 1) / QUERIES, ld = tile_round_up(a->dim, VF_LANES);
    forward f = {
        .a = a, .part = ses_attn_part_of(a, index / blocks), .i = index % blocks * QUERIES, .ld = ld
    };
    f.n = tile_min(QUERIES, f.part.len_q - f.i);
    f.q = a->q + (f.part.q0 + f.i) * a->q_row + f.part.head * ses_attn_head(a->q_head, a);
    f.keys = scratch;
    f.values = f.keys + KEYS * ld;
    f.scores = f.values + KEYS * ld;
    f.sum_v = f.scores + TILE_ROWS * KEYS;
    f.max = f.sum_v + QUERIES * ld;
    f.sum = f.max + QUERIES;
    f.dist = f.sum + QUERIES;
    f.draws = (uint32_t *)(void *)(f.dist + KEYS + QUERIES + VF_LANES);
    return f;
}

/* What query i of the chunk sees of the block, counted from the block's first key. */
static ses_attn_view view(const forward *f, int64_t i)
{
    ses_attn_view v = ses_attn_sees(f->a, f->part, f->i + i);
    v.begin = v.begin < f->j ? 0 : tile_min(v.begin - f->j, f->m);
    v.end = v.end < f->j ? 0 : tile_min(v.end - f->j, f->m);
    return v;
}

/* Products of query i with keys begin .. end-1 of the block become scores, minus infinity for keys it does
 * not see. Returns the largest. */
static float scores(const forward *f, float *s, int64_t i, int64_t begin, int64_t end)
{
    const ses_attn *a = f->a;
    ses_attn_view sees = view(f, i);
    const float *dist = a->rel_bias ? f->dist + f->n - 1 - i : NULL;
    const float *bias = a->bias ? a->bias + f->part.probs + (f->i + i) * f->part.len_k + f->j : NULL;
    vf scale = vf_set1(a->scale), none = vf_set1(-INFINITY), top = none;
    for (int64_t v = begin; v < end; v += VF_LANES) {
        vf x = vf_mul(vf_load(s + v), scale);
        if (dist) x = vf_add(x, vf_load(dist + v));
        if (bias) x = vf_add(x, vf_get(bias + v, f->m - v));
        x = within(x, none, sees.begin, sees.end, v);
        vf_store(s + v, x);
        top = vf_max(top, x);
    }
    return vf_hmax(top);
}

/* Scores become exponentials, dropped out, against the largest score so far. Returns the factor for what was
 * summed up against an earlier one. */
static float exponentials(forward *f, float *s, int64_t i, int64_t begin, int64_t end)
{
    const ses_attn *a = f->a;
    float before = f->max[i], max = fmaxf(before, scores(f, s, i, begin, end));
    float down = max == before ? 1 : before == -INFINITY ? 0 : expf(before - max);
    vf m = vf_set1(max == -INFINITY ? 0 : max), sum = vf_zero();
    for (int64_t v = begin; v < end; v += VF_LANES) {
        vf p = vf_exp(vf_sub(vf_load(s + v), m));
        sum = vf_add(sum, p);
        vf_store(s + v, p);
    }
    f->max[i] = max;
    f->sum[i] = f->sum[i] * down + vf_sum(sum);
    if (a->dropout > 0) {
        const uint32_t *draw = draw_row(f->draws, a, f->part, f->i + i, f->j + begin, end - begin);
        vf scale = vf_set1(ses_drop_scale(a->dropout));
        vi threshold = vi_set1((int32_t)ses_dropout_threshold(a->dropout));
        for (int64_t v = begin; v < end; v += VF_LANES)
            vf_store(s + v, vf_mul(vf_load(s + v), keep_factor(draw + v - begin, threshold, scale)));
    }
    return down;
}

/* Queries i .. i+rows-1 of the chunk meet the block. */
static void attend(forward *f, int64_t i, int64_t rows)
{
    const ses_attn *a = f->a;
    int64_t begin = view(f, i).begin / TILE_COLS * TILE_COLS, end = view(f, i + rows - 1).end;
    int64_t width = part_width(a->dim);
    float down[TILE_ROWS], tile[TILE_ROWS * TILE_COLS];
    if (begin >= end) return;
    times_across(f->scores, KEYS, f->q + i * a->q_row, a->q_row, rows, f->keys, f->m, begin, end, a->dim);
    for (int64_t r = 0; r < rows; r++) down[r] = exponentials(f, f->scores + r * KEYS, i + r, begin, end);
    for (int64_t d = 0; d < a->dim; d += width) {
        int64_t w = tile_min(width, f->ld - d);
        tile_direct[rows - 1][w / VF_LANES - 1](tile, TILE_COLS, f->scores + begin, KEYS,
                                                f->values + d * f->m + begin * w, end - begin);
        for (int64_t r = 0; r < rows; r++) {
            float *to = f->sum_v + (i + r) * f->ld + d;
            for (int64_t v = 0; v < w; v += VF_LANES)
                vf_store(to + v,
                         vf_fma(vf_load(to + v), vf_set1(down[r]), vf_load(tile + r * TILE_COLS + v)));
        }
    }
}

/* ---- a query alone, as each new token of a text is: keys and values are read where they lie ---- */

/* Sums over d of x[d] times the rows j .. j+VF_LANES-1 of y, n of which are there: in the order of d, as a
 * tile does it. */
VF_INLINE vf times_rows(const float *x, const float *y, int64_t row, int64_t n, int64_t dim)
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

/* A row on its way to the first-level cache: where heads lie side by side no prefetcher sees the rows of
 * one. */
VF_INLINE void fetch(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 64 / (int64_t)sizeof *x) __builtin_prefetch(x + i);
}

enum { WIDE = 64 / VF_LANES }; /* vectors: most models' heads in one go */

/* y = y down + sum over n rows of p[j] v[j], for `vecs` vectors of columns; the last has `left` of them. */
VF_INLINE void add_rows(float *y, float down, const float *p, const float *v, int64_t row, int64_t n,
                        const int vecs, int64_t left)
{
    enum { AHEAD = 12 };
    vf sum[WIDE];
    for (int i = 0; i < vecs; i++) sum[i] = vf_zero();
    for (int64_t j = 0; j < n; j++, v += row) {
        vf by = vf_set1(p[j]);
        fetch(v + tile_min(AHEAD, n - 1 - j) * row, vecs * VF_LANES);
        for (int i = 0; i < vecs - 1; i++) sum[i] = vf_fma(by, vf_load(v + i * VF_LANES), sum[i]);
        sum[vecs - 1] = vf_fma(by, vf_get(v + (vecs - 1) * VF_LANES, left), sum[vecs - 1]);
    }
    for (int i = 0; i < vecs; i++)
        vf_store(y + i * VF_LANES, vf_fma(vf_load(y + i * VF_LANES), vf_set1(down), sum[i]));
}

/* As attend, of the chunk's only query. */
static void attend_alone(forward *f)
{
    const ses_attn *a = f->a;
    ses_attn_view sees = view(f, 0);
    int64_t begin = sees.begin / TILE_COLS * TILE_COLS, end = sees.end, at = f->part.k0 + f->j + begin;
    const float *k = a->k + at * a->k_row + f->part.head * ses_attn_head(a->k_head, a),
                *v = a->v + at * a->v_row + f->part.head * ses_attn_head(a->v_head, a);
    float *s = f->scores + begin;
    int64_t n = end - begin, there = f->m - begin, d = 0;
    if (n <= 0) return;
    for (int64_t j = 0; j < n; j += VF_LANES) {
        for (int64_t i = j + VF_LANES; i < tile_min(j + 2 * VF_LANES, n); i++)
            fetch(k + i * a->k_row, a->dim);
        vf_store(s + j, times_rows(f->q, k + j * a->k_row, a->k_row, tile_min(VF_LANES, there - j), a->dim));
    }
    float down = exponentials(f, f->scores, 0, begin, end);
    for (; d + WIDE * VF_LANES <= a->dim; d += WIDE * VF_LANES)
        add_rows(f->sum_v + d, down, s, v + d, a->v_row, n, WIDE, VF_LANES);
    for (; d < a->dim; d += VF_LANES) add_rows(f->sum_v + d, down, s, v + d, a->v_row, n, 1, a->dim - d);
}

static bool blind(const forward *f, int64_t i)
{
    ses_attn_view v = ses_attn_sees(f->a, f->part, f->i + i);
    return v.begin >= v.end;
}

/* Divide by the sum of exponentials; a query that sees no key gets zeros. */
static void finish(const forward *f)
{
    const ses_attn *a = f->a;
    for (int64_t i = 0; i < f->n; i++) {
        vf by = vf_set1(blind(f, i) ? 0 : 1 / f->sum[i]);
        float *out = a->out + (f->part.q0 + f->i + i) * a->out_row + f->part.head * a->dim;
        for (int64_t d = 0; d < a->dim; d += VF_LANES)
            vf_put(out + d, vf_mul(vf_load(f->sum_v + i * f->ld + d), by), a->dim - d);
        if (a->lse) a->lse[ses_attn_stat(a, f->part, f->i + i)] = f->max[i] + logf(f->sum[i]);
    }
}

/* Once the sums are known, the scores are computed again and stored as probabilities. */
static void write_probs(forward *f, int64_t i, int64_t rows)
{
    const ses_attn *a = f->a;
    times_across(f->scores, KEYS, f->q + i * a->q_row, a->q_row, rows, f->keys, f->m, 0, f->m, a->dim);
    for (int64_t r = 0; r < rows; r++) {
        float *s = f->scores + r * KEYS,
              *to = a->probs + f->part.probs + (f->i + i + r) * f->part.len_k + f->j;
        bool none = blind(f, i + r);
        vf m = vf_set1(none ? 0 : f->max[i + r]), by = vf_set1(none ? 0 : 1 / f->sum[i + r]);
        scores(f, s, i + r, 0, f->m);
        for (int64_t v = 0; v < f->m; v += VF_LANES)
            vf_put(to + v, vf_mul(vf_exp(vf_sub(vf_load(s + v), m)), by), f->m - v);
    }
}

typedef void meet_fn(forward *f, int64_t i, int64_t rows);

/* Every tile of queries meets every block of keys from `begin` to `end`. */
static void for_blocks(forward *f, int64_t begin, int64_t end, meet_fn *meet)
{
    const ses_attn *a = f->a;
    for (f->j = begin / TILE_COLS * TILE_COLS; f->j < end; f->j += f->m) {
        f->m = tile_min(KEYS - f->j % KEYS, end - f->j);
        int64_t at = f->part.k0 + f->j, h = f->part.head;
        bool alone = f->n == 1 && meet == attend;
        if (!alone)
            pack_across(f->keys, a->k + at * a->k_row + h * ses_attn_head(a->k_head, a), a->k_row, f->m,
                        a->dim);
        if (meet == attend && !alone)
            pack_along(f->values, a->v + at * a->v_row + h * ses_attn_head(a->v_head, a), a->v_row, f->m,
                       a->dim);
        if (a->rel_bias) { /* a block of keys and all queries of the chunk: row i begins at dist + n - 1 - i */
            int64_t last = f->i + f->n - 1 + f->part.len_k - f->part.len_q;
            dist_row(f->dist, a, h, f->j - last, f->m + f->n - 1);
        }
        if (alone) attend_alone(f);
        for (int64_t i = 0, rows, left = alone ? 0 : tiles_of(f->n); left > 0; left--, i += rows) {
            rows = even_rows(f->n - i, left);
            meet(f, i, rows);
        }
    }
}

static void forward_chunk(void *ctx, int64_t index, void *scratch)
{
    forward f = forward_of(ctx, index, scratch);
    if (f.n <= 0) return;
    memset(f.sum_v, 0, (size_t)(f.n * f.ld) * sizeof *f.sum_v);
    for (int64_t i = 0; i < f.n; i++) f.max[i] = -INFINITY, f.sum[i] = 0;
    for_blocks(&f, ses_attn_sees(f.a, f.part, f.i).begin, ses_attn_sees(f.a, f.part, f.i + f.n - 1).end,
               attend);
    finish(&f);
    if (f.a->probs) for_blocks(&f, 0, f.part.len_k, write_probs);
}

void VF_NAME(ses_k_attention)(ses_exec *x, const ses_attn *a)
{
    if (a->dim > MAX_DIM) {
        ses_k_attention_ref(x, a);
        return;
    }
    ses_attn copy = *a;
    int64_t blocks = (a->max_seqlen_q + QUERIES - 1) / QUERIES;
    parallel_pieces(x, a->seqs * a->heads * blocks,
                    2 * tile_min(QUERIES, a->max_seqlen_q) * a->max_seqlen_k * a->dim, forward_chunk, &copy);
}
