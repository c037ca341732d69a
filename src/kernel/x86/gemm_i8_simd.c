/* Products of 8-bit numbers, for gemm8_avx2.c and gemm8_avx512.c; see gemm_i8_tile.h. */
#include "gemm_epilogue.h"
#include "gemm_i8_tile.h"
#include "gemm_pack.h"
#include "glu_row.h"
#include "norm_row.h"

typedef struct head8 { /* at the beginning of what is packed; then scale[width], excess[width], panels */
    int32_t dot;       /* this processor has the instruction for a step */
    int32_t pad[15];
} head8;

typedef struct panels8 {
    bool dot;
    const float *scale;    /* of each column */
    const int32_t *excess; /* 128 times its sum */
    const int8_t *panel;
} panels8;

static panels8 panels_of(const void *packed, int64_t n)
{
    const head8 *h = packed;
    int64_t width = tile_round_up(n, VF_LANES);
    const float *scale = (const float *)(const void *)(h + 1);
    const int32_t *excess = (const int32_t *)(const void *)(scale + width);
    return (panels8){ h->dot, scale, excess, (const int8_t *)(excess + width) };
}

/* ---- the tile ---- */

/* Where a tile's numbers lie: rows of A and their scales, columns of B with scales and excess. */
typedef struct tile8_in {
    const uint8_t *a;
    const float *a_scale;
    const int8_t *b, *next; /* next: see tile8_sum */
    const float *b_scale;
    const int32_t *excess;
    int64_t quads;
    int64_t ldt;       /* from a row of the result to the next */
    const float *bias; /* NULL: none yet */
} tile8_in;

/* t = the sums times the scales of row and column, and the bias */
VF_INLINE void tile8_run(float *t, const tile8_in *in, const int rows, const int vecs, const bool dot,
                         const bool stream)
{
    vi c[TILE_ROWS][TILE_VECS];
    tile8_sum(c, in->a, 4 * in->quads, in->b, in->next, in->excess, in->quads, rows, vecs, dot, stream);
    vf by[TILE_VECS], bias[TILE_VECS]; /* read before t is written, which might be they for all gcc knows */
    TILE_UNROLL for (int v = 0; v < vecs; v++)
    {
        by[v] = vf_load(in->b_scale + v * VF_LANES);
        bias[v] = in->bias ? vf_load(in->bias + v * VF_LANES) : vf_zero();
    }
    const float *a_scale = in->a_scale;
    int64_t ldt = in->ldt;
    TILE_UNROLL for (int i = 0; i < rows; i++)
    {
        vf row = vf_set1(a_scale[i]);
        TILE_UNROLL for (int v = 0; v < vecs; v++)
        {
            vf x = vf_mul(vf_from_vi(c[i][v]), vf_mul(row, by[v]));
            vf_store(t + i * ldt + v * VF_LANES, vf_add(x, bias[v]));
        }
    }
}

typedef void tile8_fn(float *t, const tile8_in *in);

#define TILE_DIRECT(name, form, rows, vecs)                          \
    static void name##_##rows##x##vecs(float *t, const tile8_in *in) \
    {                                                                \
        tile8_run(t, in, rows, vecs, (form)&DOT, (form)&STREAM);     \
    }
enum { STEP = 0, DOT = 1, STREAM = 2 };
TILE_ALL(step, STEP)
TILE_ALL(dot, DOT)
TILE_ALL(step_stream, STEP | STREAM)
TILE_ALL(dot_stream, DOT | STREAM)
static tile8_fn *const tile8[4][TILE_ROWS][TILE_VECS] = { TILE_TABLE(step), TILE_TABLE(dot),
                                                          TILE_TABLE(step_stream), TILE_TABLE(dot_stream) };

/* ---- the product ---- */

enum {
    ROWS8 = 192,      /* rows of a chunk */
    WORK8 = 1 << 20,  /* multiply-adds worth a chunk */
    FEW8 = 8,         /* rows that take as long as one */
    ROWS8_WHOLE = 32, /* rows of a chunk that takes them to their end */
};

typedef struct job8 {
    const ses_gemm *g; /* `count` of them */
    int64_t count;
    ses_i8_rows a;
    const ses_gemm_epilogue *end; /* of each, or NULL */
    int64_t rows, group, groups;  /* as in gemm_simd.h */
} job8;

/* What is read soon beside the panels: tiles that have no more of these to fetch fetch it. */
typedef struct ahead8 {
    const int8_t *at, *end;
} ahead8;

/* A tile of whole vectors, which have their bias, goes to C by way of GELU. */
VF_INLINE void put_gelu(float *c, int64_t ldc, const float *tile, int64_t rows, const int vecs)
{
    for (int64_t r = 0; r < rows; r++) TILE_UNROLL for (int v = 0; v < vecs; v++)
        {
            vf x = vf_load(tile + r * TILE_COLS + v * VF_LANES);
            vf_store(c + r * ldc + v * VF_LANES, vf_gelu_rough(x));
        }
}

/* Rows i .. end - 1 of A meet the panel of columns from j on. */
static void run_panel8(const ses_gemm *g, ses_i8_rows a, int64_t i, int64_t end, int64_t j, ahead8 *ahead)
{
    panels8 b = panels_of(g->packed, g->n);
    int64_t tiles = ses_chunks(end - i, b.dot ? TILE_ROWS : STEP_ROWS);
    int64_t width = panel_width(g->n, j), quads = ses_quad_count(g->k);
    tile8_in in = { .b = b.panel + j * 4 * quads,
                    .b_scale = b.scale + j,
                    .excess = b.excess + j,
                    .quads = quads,
                    .ldt = TILE_COLS };
    int64_t size = 4 * width * quads, left = j + width < g->n ? size : 0; /* of the next panel */
    in.next = in.b + left;
    int form = (b.dot ? DOT : STEP) | (tiles == 1 ? STREAM : 0);
    float tile[TILE_ROWS * TILE_COLS];
    bool whole = !g->pre_act && !g->accumulate && j + width <= g->n, direct = whole && g->act == SES_ACT_NONE;
    bool gelu = whole && g->act == SES_ACT_GELU;
    if (direct) in.ldt = g->ldc;
    if (direct || gelu) in.bias = g->bias ? g->bias + j : NULL;
    for (; tiles > 0; tiles--) {
        int64_t rows = (end - i + tiles - 1) / tiles;
        in.a = a.q + i * 4 * quads, in.a_scale = a.scale + i;
        tile8[form][rows - 1][width / VF_LANES - 1](direct ? g->c + i * g->ldc + j : tile, &in);
        if (gelu && width == TILE_COLS)
            put_gelu(g->c + i * g->ldc + j, g->ldc, tile, rows, TILE_VECS);
        else if (gelu)
            put_gelu(g->c + i * g->ldc + j, g->ldc, tile, rows, (int)(width / VF_LANES));
        else if (!direct)
            tile_put(g, (tile_turn){ true, true }, tile, i, rows, j, tile_min(TILE_COLS, g->n - j), true);
        left -= LINE8 * quads;
        in.next = left > 0 ? in.next + LINE8 * quads : in.b;
        if (left <= 0 && ahead && ahead->at < ahead->end) in.next = ahead->at, ahead->at += LINE8 * quads;
        i += rows;
    }
}

static void run_chunk8(void *ctx, int64_t index, void *scratch)
{
    (void)scratch;
    const job8 *b = ctx;
    const ses_gemm *g = b->g + index % b->count;
    index /= b->count;
    int64_t i = index / b->groups * b->rows, end = tile_min(g->m, i + b->rows);
    int64_t j = index % b->groups * b->group * TILE_COLS, j_end = tile_min(g->n, j + b->group * TILE_COLS);
    for (; j < j_end; j += TILE_COLS) run_panel8(g, b->a, i, end, j, NULL);
}

static void round_row(ses_i8_rows to, int64_t r, const float *a, int64_t cols)
{
    int64_t width = 4 * ses_quad_count(cols);
    float most = most_of(a, cols);
    to.scale[r] = most / 127;
    round_bytes(to.q + r * width, a, cols, width, factor(most));
}

/* Row i, of m, each part of it for itself. */
static void round_parts(const ses_gemm_epilogue *end, int64_t i, const float *c, int64_t m, int64_t n)
{
    int64_t parts = n / end->group_cols, width = 4 * ses_quad_count(end->group_cols);
    uint8_t *q = end->i8_out.q + i * width;
    for (int64_t p = 0; p < parts; p += VF_LANES) {
        int64_t some = tile_min(VF_LANES, parts - p);
        float most[VF_LANES], by[VF_LANES];
        vf_store(most, most_of_rows(c + p * end->group_cols, end->group_cols, some, end->group_cols));
        vf_store(by, factors(vf_load(most)));
        for (int64_t k = 0; k < some; k++) {
            end->i8_out.scale[(p + k) * m + i] = most[k];
            round_bytes(q + (p + k) * m * width, c + (p + k) * end->group_cols, end->group_cols, width,
                        by[k]);
        }
    }
}

/* Row i of the product, which is at c. */
static void end_row(const ses_gemm *g, const ses_gemm_epilogue *end, int64_t i, float *c)
{
    int64_t n = end->gated ? g->n / 2 : g->n;
    if (end->gated) glu_row(c, c, n, end->gate);
    if (end->gain) {
        norm_job norm = {
            .a = c, .s = c, .gain = end->gain, .bias = end->bias, .cols = g->n, .eps = end->eps
        };
        norm.y = c = g->c + i * g->ldc;
        norm.res = end->residual ? end->residual + i * g->n : NULL;
        norm_row(&norm, 0, NULL);
    }
    if (end->i8_out.q && end->group_cols)
        round_parts(end, i, c, g->m, g->n);
    else if (end->i8_out.q)
        round_row(end->i8_out, i, c, n);
}

/* Scratch of a row that is taken to its end: numbers of C, and of A rounded. */
static int64_t row_bytes(const ses_gemm *g) { return 4 * (g->n + 1 + ses_quad_count(g->k)); }

_Static_assert(TILE_ROWS * 4 * (SES_GEMM_I8_MAX_N + 1 + SES_GEMM_I8_MAX_K / 4) <= SES_SCRATCH_BYTES,
               "scratch");

/* What the end of these rows writes, brought near by the last panels: what comes earlier is gone by then. */
static void prefetch_end(const ses_gemm *g, const ses_gemm_epilogue *end, ses_range rows, int64_t left)
{
    enum { LINE = 16, LAST = 4 };
    if (!end->gain || left > LAST) return;
    int64_t step = ses_chunks(rows.end - rows.begin, LAST), i = rows.begin + (LAST - left) * step;
    for (int64_t stop = tile_min(i + step, rows.end); i < stop; i++)
        for (int64_t at = 0; at < g->n; at += LINE) prefetch_own(g->c + i * g->ldc + at);
}

/* Rows of A are rounded to scratch behind c, or are there. */
static ses_i8_rows rows_of(const job8 *b, ses_range rows, float *behind)
{
    int64_t n = rows.end - rows.begin, k = b->g->k, width = 4 * ses_quad_count(k);
    if (b->a.q) return (ses_i8_rows){ b->a.q + rows.begin * width, b->a.scale + rows.begin };
    ses_i8_rows a = { (uint8_t *)(behind + n), behind };
    for (int64_t r = 0; r < n; r++) round_row(a, r, b->g->a + (rows.begin + r) * k, k);
    return a;
}

/* Whole rows of C, kept in the second-level cache until their end. */
static void whole_rows(void *ctx, int64_t index, void *scratch)
{
    const job8 *b = ctx;
    ses_range rows = ses_chunk(b->g->m, b->rows, index);
    int64_t count = rows.end - rows.begin, n = b->g->n;
    float *c = scratch;
    ses_i8_rows a = rows_of(b, rows, c + count * n);
    for (int64_t p = 0; p < b->count; p++) {
        const ses_gemm *g = b->g + p;
        ses_gemm part = *g;
        part.c = c, part.ldc = n, part.pre_act = NULL;
        const float *res = b->end[p].residual ? b->end[p].residual + rows.begin * n : NULL;
        ahead8 ahead = { (const int8_t *)res, (const int8_t *)(res ? res + count * n : NULL) };
        for (int64_t j = 0; j < n; j += TILE_COLS) {
            prefetch_end(g, b->end + p, rows, ses_chunks(n - j, TILE_COLS));
            run_panel8(&part, a, 0, count, j, &ahead);
        }
        for (int64_t r = 0; r < count; r++) end_row(g, b->end + p, rows.begin + r, c + r * n);
    }
}

/* As many chunks as keep all threads busy to the end: what a chunk is changes no bit. */
static void run_whole_rows(ses_exec *x, job8 *b)
{
    int64_t m = b->g->m, most = tile_min(ROWS8_WHOLE, SES_SCRATCH_BYTES / row_bytes(b->g));
    int64_t threads = ses_thread_pool_size(x->pool), chunks = ses_chunks(m, most);
    if (chunks < 2 * threads) chunks = tile_min(2 * threads, ses_chunks(m, tile_min(most, 2 * TILE_ROWS)));
    chunks = ses_chunks(chunks, threads) * threads;
    b->rows = ses_chunks(m, chunks);
    ses_parallel_for(x->pool, ses_chunks(m, b->rows), whole_rows, b);
}

void VF_NAME(ses_k_gemm_i8)(ses_exec *x, const ses_gemm *g, int64_t count, ses_i8_rows a,
                            const ses_gemm_epilogue *end)
{
    if (g->m <= 0 || g->n <= 0) return;
    job8 b = { .g = g, .count = count, .a = a, .end = end };
    if (end) {
        run_whole_rows(x, &b);
        return;
    }
    int64_t panels = (g->n + TILE_COLS - 1) / TILE_COLS;
    b.rows = tile_min(g->m, ROWS8);
    int64_t work = b.rows < FEW8 ? FEW8 : b.rows; /* a few rows wait for B */
    b.group = tile_min(1 + WORK8 / (work * TILE_COLS * (g->k + 1)), panels);
    b.groups = (panels + b.group - 1) / b.group;
    ses_parallel_for(x->pool, (g->m + b.rows - 1) / b.rows * b.groups * count, run_chunk8, &b);
}

/* ---- rounding ---- */

typedef struct rounding {
    ses_i8_rows to;
    const float *a;
    int64_t rows, cols;
} rounding;

static void round_chunk(void *ctx, int64_t index, void *scratch)
{
    (void)scratch;
    const rounding *c = ctx;
    ses_range part = ses_chunk(c->rows, ses_chunk_rows(c->cols), index);
    for (int64_t r = part.begin; r < part.end; r++) round_row(c->to, r, c->a + r * c->cols, c->cols);
}

void VF_NAME(ses_k_quantize_rows)(ses_exec *x, ses_i8_rows to, const float *a, int64_t rows, int64_t cols)
{
    rounding c = { to, a, rows, cols };
    if (rows > 0) ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), round_chunk, &c);
}

int64_t VF_NAME(ses_k_gemm_i8_pack_size)(int64_t n, int64_t k)
{
    return (int64_t)sizeof(head8) + tile_round_up(n, VF_LANES) * (8 + 4 * ses_quad_count(k));
}

/* What becomes panels: reals that are to be rounded, or multiples with the scale of each column. */
typedef struct packing8 {
    float *scale;
    int32_t *excess;
    int8_t *panel;
    const float *b;
    const int8_t *bytes; /* NULL: b */
    const float *bytes_scale;
    int64_t b_row, b_col, n, k;
} packing8;

/* Column j's multiples one after the other, zeros up to whole quads. */
static void take_column(const packing8 *c, int64_t j, int8_t *q)
{
    int64_t p = 0;
    for (int64_t i = c->k; i < 4 * ses_quad_count(c->k); i++) q[i] = 0;
    if (c->bytes) {
        for (; p < c->k; p++) q[p] = c->bytes[p * c->b_row + j * c->b_col];
        return;
    }
    const float *b = c->b + j * c->b_col;
    float most = c->b_row == 1 ? most_of(b, c->k) : 0;
    for (; c->b_row != 1 && p < c->k; p++) most = fmaxf(most, fabsf(b[p * c->b_row]));
    float by = factor(most);
    c->scale[j] = most / 127;
    if (c->b_row == 1) round_signed(q, b, c->k, c->k, by);
    for (p = 0; c->b_row != 1 && p < c->k; p++) q[p] = (int8_t)rintf(b[p * c->b_row] * by);
}

/* The multiples of a vector of columns in row p, where columns lie side by side. */
VF_INLINE vi take_row(const packing8 *c, int64_t p, int64_t j, vf by)
{
    if (c->bytes) return vi_load_bytes(c->bytes + p * c->b_row + j);
    return vi_from_vf(vf_mul(vf_load(c->b + p * c->b_row + j), by));
}

/* A vector of such columns becomes quads, a row after the other. */
static void lay_rows(const packing8 *c, int8_t *to, int64_t width, int64_t j)
{
    vf by = vf_zero();
    if (!c->bytes) {
        vf most = vf_zero();
        for (int64_t p = 0; p < c->k; p++) most = vf_max(vf_abs(vf_load(c->b + p * c->b_row + j)), most);
        by = factors(most);
        vf_store(c->scale + j, vf_div(most, vf_set1(127)));
    }
    for (int64_t p = 0; p < c->k; p += 4, to += 4 * width) {
        vi quad = vi_set1(0);
        for (int64_t i = tile_min(4, c->k - p); i-- > 0;)
            quad = vi_add(vi_shl(quad, 8), vi_and(take_row(c, p + i, j, by), vi_set1(255)));
        vi_store(to, quad);
    }
}

/* A vector of columns, n of them there, that lie one after the other: quads change places with columns, as
 * numbers of 32 bits. */
static void lay_columns(const packing8 *c, int8_t *to, int64_t width, int64_t j, int64_t n, int8_t *room)
{
    int64_t quads = ses_quad_count(c->k), row = 4 * quads;
    const int8_t *from = room;
    if (c->bytes && c->b_row == 1 && c->k % 4 == 0 && c->b_col % 4 == 0)
        from = c->bytes + j * c->b_col, row = c->b_col;
    else
        for (int64_t i = 0; i < n; i++) take_column(c, j + i, room + i * row);
    transpose_vector((float *)(void *)to, width, (const float *)(const void *)from, row / 4, n, quads);
}

_Static_assert(VF_LANES *SES_GEMM_I8_MAX_K <= SES_SCRATCH_BYTES, "scratch");

static void pack_chunk8(void *ctx, int64_t index, void *scratch)
{
    const packing8 *c = ctx;
    int64_t begin = index * TILE_COLS, width = panel_width(c->n, begin), quads = ses_quad_count(c->k);
    int8_t *panel = c->panel + begin * 4 * quads;
    for (int64_t v = 0; v < width; v += VF_LANES) {
        int64_t j = begin + v, n = tile_min(VF_LANES, c->n - j);
        for (int64_t i = c->bytes ? 0 : n; i < VF_LANES; i++)
            c->scale[j + i] = i < n ? c->bytes_scale[j + i] : 0;
        if (c->b_col == 1 && n == VF_LANES)
            lay_rows(c, panel + 4 * v, width, j);
        else
            lay_columns(c, panel + 4 * v, width, j, n, scratch);
        vi_store(c->excess + j, excess_of(panel + 4 * v, width, quads));
    }
}

static void pack8(ses_exec *x, void *packed, packing8 c)
{
    head8 *h = packed;
    int64_t width = tile_round_up(c.n, VF_LANES);
    *h = (head8){ .dot = has_dot() };
    c.scale = (float *)(void *)(h + 1);
    c.excess = (int32_t *)(void *)(c.scale + width);
    c.panel = (int8_t *)(c.excess + width);
    ses_parallel_for(x->pool, (c.n + TILE_COLS - 1) / TILE_COLS, pack_chunk8, &c);
}

void VF_NAME(ses_k_gemm_i8_pack)(ses_exec *x, void *packed, const float *b, int64_t b_row, int64_t b_col,
                                 int64_t n, int64_t k)
{
    pack8(x, packed, (packing8){ .b = b, .b_row = b_row, .b_col = b_col, .n = n, .k = k });
}

void VF_NAME(ses_k_gemm_i8_pack_quantized)(ses_exec *x, void *packed, const int8_t *b, const float *scale,
                                           int64_t b_row, int64_t b_col, int64_t n, int64_t k)
{
    pack8(x, packed,
          (packing8){ .bytes = b, .bytes_scale = scale, .b_row = b_row, .b_col = b_col, .n = n, .k = k });
}
