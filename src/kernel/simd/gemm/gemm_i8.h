/* int8 matrix products: packing, quantizing, the partition into chunks and the epilogues of rows. The
 * including file defines the block of rows and columns that is multiplied at once:
 *
 *     enum { BLOCK_ROWS, CHUNK_WORK, CHUNKS, QUAD_STEP };
 *         rows of a block; multiply-adds per chunk, more if there are more than CHUNKS chunks per thread
 *         (0: no more); the quads of a panel are a multiple of QUAD_STEP
 *     enum { EPILOGUE_ROWS, EPILOGUE_BYTES, EPILOGUE_STEP, EPILOGUE_CHUNKS, SHARED_ROWS };
 *         if rows get an epilogue: most rows and bytes of A and C per chunk; large chunks have a multiple of
 *         EPILOGUE_STEP rows; at least this many chunks per thread, unless they would have less than
 *         SHARED_ROWS rows
 *     block_state, blocks_begin(&s), blocks_end(&s)
 *         what a chunk keeps from its first block to its last
 *     enum { COPY_QUADS }, void blocks_rows(&s, to, q, rows, quads, panels)
 *         the rows of A that the next blocks multiply with `panels` panels; `to` has room for a copy of rows of
 *         at most COPY_QUADS quads, whole blocks of them
 *     void blocks_finish(&s)
 *         completes the results of all blocks so far
 *     int64_t block_rows(left, dot)
 *         rows of the next block if `left` rows remain
 *     void block_run(&s, t, &in, rows, vecs)
 *         t = the product of `rows` rows and a panel of `vecs` vectors, see i8_block; complete after
 *         blocks_finish
 */
#ifndef SES_KERNEL_GEMM_I8_H
#define SES_KERNEL_GEMM_I8_H

#include "gemm_epilogue.h"
#include "gemm_i8_block.h"
#include "gemm_pack.h"
#include "kernel/simd/glu_row.h"
#include "kernel/simd/norm_row.h"

/* Start of a packed B, followed by scale[width], zp_correction[width], panels */
typedef struct packed_header {
    int32_t dot; /* dot_kind of the processor that packed it */
    int32_t pad[15];
} packed_header;

typedef struct packed_panels {
    int dot;
    const float *scale;           /* scale per column */
    const int32_t *zp_correction; /* per column, see gemm_i8_tile.h */
    const int8_t *panel;
} packed_panels;

static packed_panels panels_of(const void *packed, int64_t n)
{
    const packed_header *h = packed;
    int64_t width = tile_round_up(n, VF_LANES);
    const float *scale = (const float *)(const void *)(h + 1);
    const int32_t *zp_correction = (const int32_t *)(const void *)(scale + width);
    return (packed_panels){ h->dot, scale, zp_correction, (const int8_t *)(zp_correction + width) };
}

/* ---- the product ---- */

enum {
    CHUNK_ROWS = 192, /* rows per chunk */
    FEW_ROWS = 8,     /* fewer rows take as long as this many */
};

typedef struct job {
    const ses_gemm *g; /* `count` of them */
    int64_t count;
    ses_i8_rows a;
    const ses_gemm_epilogue *epilogue; /* one per product, or NULL */
    int64_t rows, group, groups;       /* as in gemm_simd.c */
} job;

/* Data to prefetch once all panels are in the cache. */
typedef struct prefetch_range {
    const int8_t *at, *end;
} prefetch_range;

/* Quads of a panel. */
static int64_t panel_quads(int64_t k) { return tile_round_up(ses_quad_count(k), QUAD_STEP); }

/* Data to prefetch during a block of the panel at b, one line per quad: `left` bytes of the next panel, then
 * the range ahead; b: nothing. */
static const int8_t *next_bytes(const int8_t *b, int64_t panel, int64_t *left, int64_t quads,
                                prefetch_range *ahead)
{
    int64_t part = LINE_BYTES * quads;
    if (*left > 0) {
        *left -= part;
        return b + 2 * panel - *left - part;
    }
    if (!ahead || ahead->at >= ahead->end) return b;
    ahead->at += part;
    return ahead->at - part;
}

/* Multiplies rows i .. end - 1 of A with the panel of columns at j. */
static void run_panel(block_state *s, const ses_gemm *g, ses_i8_rows a, int64_t i, int64_t end, int64_t j,
                      prefetch_range *ahead)
{
    packed_panels b = panels_of(g->packed, g->n);
    int64_t width = panel_width(g->n, j), quads = ses_quad_count(g->k), depth = panel_quads(g->k);
    i8_block in = { .b = b.panel + j * 4 * depth,
                    .b_scale = b.scale + j,
                    .zp_correction = b.zp_correction + j,
                    .quads = quads,
                    .ldt = TILE_COLS,
                    .dot = b.dot,
                    .stream = block_rows(end - i, b.dot) == end - i };
    int64_t panel = 4 * width * depth, left = j + width < g->n && !in.stream ? panel : 0;
    float tile[BLOCK_ROWS * TILE_COLS];
    bool direct = !g->pre_act && !g->accumulate && j + width <= g->n &&
                  (g->act == SES_ACT_NONE || g->act == SES_ACT_GELU);
    if (direct) in.ldt = g->ldc, in.bias = g->bias ? g->bias + j : NULL, in.gelu = g->act == SES_ACT_GELU;
    for (int64_t rows; i < end; i += rows) {
        rows = block_rows(end - i, b.dot);
        in.a = a.q + i * 4 * quads, in.a_scale = a.scale + i;
        in.next = next_bytes(in.b, panel, &left, quads, ahead);
        block_run(s, direct ? g->c + i * g->ldc + j : tile, &in, rows, width / VF_LANES);
        if (!direct) blocks_finish(s);
        if (!direct)
            tile_store(g, (tile_pass){ true, true }, tile, i, rows, j, tile_min(TILE_COLS, g->n - j), true);
    }
}

static void run_chunk(void *ctx, int64_t index, void *scratch)
{
    const job *b = ctx;
    const ses_gemm *g = b->g + index % b->count;
    index /= b->count;
    int64_t i = index / b->groups * b->rows, end = tile_min(g->m, i + b->rows);
    int64_t j = index % b->groups * b->group * TILE_COLS, j_end = tile_min(g->n, j + b->group * TILE_COLS);
    int64_t quads = ses_quad_count(g->k);
    block_state s;
    blocks_begin(&s);
    blocks_rows(&s, scratch, b->a.q + i * 4 * quads, end - i, quads, ses_chunks(j_end - j, TILE_COLS));
    for (; j < j_end; j += TILE_COLS) run_panel(&s, g, b->a, i, end, j, NULL);
    blocks_finish(&s);
    blocks_end(&s);
}

static void quantize_row(ses_i8_rows to, int64_t r, const float *a, int64_t cols)
{
    int64_t width = 4 * ses_quad_count(cols);
    float max_abs = max_abs_of(a, cols);
    to.scale[r] = max_abs / 127;
    quantize_bytes(to.q + r * width, a, cols, width, quant_factor(max_abs));
}

/* Quantizes row i of m, each group of columns with its own scale. */
static void quantize_groups(const ses_gemm_epilogue *epilogue, int64_t i, const float *c, int64_t m,
                            int64_t n)
{
    int64_t groups = n / epilogue->group_cols, width = 4 * ses_quad_count(epilogue->group_cols);
    uint8_t *q = epilogue->i8_out.q + i * width;
    for (int64_t p = 0; p < groups; p += VF_LANES) {
        int64_t count = tile_min(VF_LANES, groups - p);
        float max_abs[VF_LANES], by[VF_LANES];
        vf_store(max_abs, max_abs_rows(c + p * epilogue->group_cols, epilogue->group_cols, count,
                                       epilogue->group_cols));
        vf_store(by, quant_factors(vf_load(max_abs)));
        for (int64_t k = 0; k < count; k++) {
            epilogue->i8_out.scale[(p + k) * m + i] = max_abs[k];
            quantize_bytes(q + (p + k) * m * width, c + (p + k) * epilogue->group_cols, epilogue->group_cols,
                           width, by[k]);
        }
    }
}

/* Epilogue of row i, which is at c. */
static void epilogue_row(const ses_gemm *g, const ses_gemm_epilogue *epilogue, int64_t i, float *c)
{
    int64_t n = epilogue->gated ? g->n / 2 : g->n;
    if (epilogue->gated) glu_row(c, c, n, epilogue->gate);
    if (epilogue->gain) {
        norm_job norm = {
            .a = c, .s = c, .gain = epilogue->gain, .bias = epilogue->bias, .cols = g->n, .eps = epilogue->eps
        };
        norm.y = c = g->c + i * g->ldc;
        norm.res = epilogue->residual ? epilogue->residual + i * g->n : NULL;
        norm_row(&norm, 0, NULL);
    }
    if (epilogue->i8_out.q && epilogue->group_cols)
        quantize_groups(epilogue, i, c, g->m, g->n);
    else if (epilogue->i8_out.q)
        quantize_row(epilogue->i8_out, i, c, n);
}

/* Scratch bytes per row with an epilogue: a row of C and a quantized row of A with its scale. Scales and rows
 * of A begin on cache lines. */
static int64_t row_bytes(const ses_gemm *g) { return 4 * (g->n + 1 + ses_quad_count(g->k)); }

enum { LINE_FLOATS = LINE_BYTES / 4, ROOM_BYTES = SES_SCRATCH_BYTES - 2 * LINE_BYTES };

/* Scratch bytes per row of a copy of A. */
static int64_t copy_bytes(const ses_gemm *g)
{
    return ses_quad_count(g->k) <= COPY_QUADS ? 4 * ses_quad_count(g->k) : 0;
}

_Static_assert(8 * 4 * (SES_GEMM_I8_MAX_N + 1 + SES_GEMM_I8_MAX_K / 4) <= ROOM_BYTES - 2 * LINE_BYTES,
               "scratch");
_Static_assert(4 * COPY_QUADS * (CHUNK_ROWS + BLOCK_ROWS) <= SES_SCRATCH_BYTES, "scratch");

/* Prefetches the rows of C that the epilogue writes during the last panels; earlier they would be evicted
 * again. */
static void prefetch_epilogue(const ses_gemm *g, const ses_gemm_epilogue *epilogue, ses_range rows,
                              int64_t left)
{
    enum { LINE = 16, LAST = 4 };
    if (!epilogue->gain || left > LAST) return;
    int64_t step = ses_chunks(rows.end - rows.begin, LAST), i = rows.begin + (LAST - left) * step;
    for (int64_t stop = tile_min(i + step, rows.end); i < stop; i++)
        for (int64_t at = 0; at < g->n; at += LINE) prefetch_write(g->c + i * g->ldc + at);
}

/* Quantized rows of A: the caller's, or quantized into scratch memory at `behind`. */
static ses_i8_rows rows_of(const job *b, ses_range rows, float *behind)
{
    int64_t n = rows.end - rows.begin, k = b->g->k, width = 4 * ses_quad_count(k);
    if (b->a.q) return (ses_i8_rows){ b->a.q + rows.begin * width, b->a.scale + rows.begin };
    ses_i8_rows a = { (uint8_t *)(behind + tile_round_up(n, LINE_FLOATS)), behind };
    for (int64_t r = 0; r < n; r++) quantize_row(a, r, b->g->a + (rows.begin + r) * k, k);
    return a;
}

/* Computes whole rows of C, which stay in the L2 cache until their epilogue. */
static void epilogue_rows(void *ctx, int64_t index, void *scratch)
{
    const job *b = ctx;
    ses_range rows = ses_chunk(b->g->m, b->rows, index);
    int64_t count = rows.end - rows.begin, n = b->g->n;
    float *c = scratch;
    ses_i8_rows a = rows_of(b, rows, c + tile_round_up(count * n, LINE_FLOATS));
    block_state s;
    blocks_begin(&s);
    uint8_t *copy = (uint8_t *)scratch + tile_round_up(count * row_bytes(b->g), LINE_BYTES) + 2 * LINE_BYTES;
    blocks_rows(&s, copy, a.q, count, ses_quad_count(b->g->k), b->count * ses_chunks(n, TILE_COLS));
    for (int64_t p = 0; p < b->count; p++) {
        const ses_gemm *g = b->g + p;
        ses_gemm part = *g;
        part.c = c, part.ldc = n, part.pre_act = NULL;
        const float *res = b->epilogue[p].residual ? b->epilogue[p].residual + rows.begin * n : NULL;
        prefetch_range ahead = { (const int8_t *)res, (const int8_t *)(res ? res + count * n : NULL) };
        for (int64_t j = 0; j < n; j += TILE_COLS) {
            prefetch_epilogue(g, b->epilogue + p, rows, ses_chunks(n - j, TILE_COLS));
            run_panel(&s, &part, a, 0, count, j, &ahead);
        }
        blocks_finish(&s);
        for (int64_t r = 0; r < count; r++) epilogue_row(g, b->epilogue + p, rows.begin + r, c + r * n);
    }
    blocks_end(&s);
}

/* Most rows of a chunk. */
static int64_t max_epilogue_rows(const ses_gemm *g)
{
    int64_t copy = copy_bytes(g), room = ROOM_BYTES - 2 * LINE_BYTES - BLOCK_ROWS * copy;
    int64_t fit = room / (row_bytes(g) + copy), cached = EPILOGUE_BYTES / row_bytes(g);
    cached = cached > EPILOGUE_STEP ? cached / EPILOGUE_STEP * EPILOGUE_STEP : EPILOGUE_STEP;
    return tile_min(EPILOGUE_ROWS, tile_min(fit, cached));
}

/* Chooses a number of chunks that keeps all threads busy. The partitioning does not change any bit. */
static void run_epilogue_rows(ses_exec *x, job *b)
{
    int64_t m = b->g->m, max_rows = max_epilogue_rows(b->g);
    int64_t threads = ses_thread_pool_size(x->pool), least = EPILOGUE_CHUNKS * threads;
    int64_t chunks = ses_chunks(m, max_rows);
    if (chunks < least) chunks = tile_min(least, ses_chunks(m, tile_min(max_rows, SHARED_ROWS)));
    chunks = ses_chunks(chunks, threads) * threads;
    b->rows = ses_chunks(m, chunks);
    int64_t whole = tile_round_up(b->rows, EPILOGUE_STEP);
    if (b->rows > EPILOGUE_STEP && whole <= max_rows && whole - b->rows <= EPILOGUE_STEP / 2) b->rows = whole;
    ses_parallel_for(x->pool, ses_chunks(m, b->rows), epilogue_rows, b);
}

void VF_NAME(ses_k_gemm_i8)(ses_exec *x, const ses_gemm *g, int64_t count, ses_i8_rows a,
                            const ses_gemm_epilogue *epilogue)
{
    if (g->m <= 0 || g->n <= 0) return;
    job b = { .g = g, .count = count, .a = a, .epilogue = epilogue };
    if (epilogue) {
        run_epilogue_rows(x, &b);
        return;
    }
    int64_t panels = (g->n + TILE_COLS - 1) / TILE_COLS;
    b.rows = tile_min(g->m, CHUNK_ROWS);
    int64_t work = b.rows < FEW_ROWS ? FEW_ROWS : b.rows; /* few rows are limited by loading B */
    b.group = tile_min(1 + CHUNK_WORK / (work * TILE_COLS * (g->k + 1)), panels);
    if (CHUNKS) { /* larger groups */
        int64_t threads = ses_thread_pool_size(x->pool), blocks = ses_chunks(g->m, b.rows) * count;
        int64_t even = ses_chunks(panels, threads > 1 ? ses_chunks(CHUNKS * threads, blocks) : 1);
        if (b.group < even) b.group = even;
    }
    b.groups = (panels + b.group - 1) / b.group;
    ses_parallel_for(x->pool, (g->m + b.rows - 1) / b.rows * b.groups * count, run_chunk, &b);
}

/* ---- quantizing ---- */

typedef struct quantizing {
    ses_i8_rows to;
    const float *a;
    int64_t rows, cols;
} quantizing;

static void quantize_chunk(void *ctx, int64_t index, void *scratch)
{
    (void)scratch;
    const quantizing *c = ctx;
    ses_range part = ses_chunk(c->rows, ses_chunk_rows(c->cols), index);
    for (int64_t r = part.begin; r < part.end; r++) quantize_row(c->to, r, c->a + r * c->cols, c->cols);
}

void VF_NAME(ses_k_quantize_rows)(ses_exec *x, ses_i8_rows to, const float *a, int64_t rows, int64_t cols)
{
    quantizing c = { to, a, rows, cols };
    if (rows > 0) ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), quantize_chunk, &c);
}

int64_t VF_NAME(ses_k_gemm_i8_pack_size)(int64_t n, int64_t k)
{
    return (int64_t)sizeof(packed_header) + tile_round_up(n, VF_LANES) * (8 + 4 * panel_quads(k));
}

/* Source of the panels: floats to quantize, or int8 numbers with one scale per column. */
typedef struct packing {
    float *scale;
    int32_t *zp_correction;
    int8_t *panel;
    const float *b;
    const int8_t *bytes; /* NULL: use b */
    const float *bytes_scale;
    int64_t b_row, b_col, n, k;
    int dot; /* see dot_kind */
} packing;

/* Column j as int8, padded with zeros to a multiple of 4. */
static void load_column(const packing *c, int64_t j, int8_t *q)
{
    int64_t p = 0;
    for (int64_t i = c->k; i < 4 * ses_quad_count(c->k); i++) q[i] = 0;
    if (c->bytes) {
        for (; p < c->k; p++) q[p] = c->bytes[p * c->b_row + j * c->b_col];
        return;
    }
    const float *b = c->b + j * c->b_col;
    float max_abs = c->b_row == 1 ? max_abs_of(b, c->k) : 0;
    for (; c->b_row != 1 && p < c->k; p++) max_abs = fmaxf(max_abs, fabsf(b[p * c->b_row]));
    float by = quant_factor(max_abs);
    c->scale[j] = max_abs / 127;
    if (c->b_row == 1) quantize_signed(q, b, c->k, c->k, by);
    for (p = 0; c->b_row != 1 && p < c->k; p++) q[p] = (int8_t)rintf(b[p * c->b_row] * by);
}

/* int values of VF_LANES adjacent columns in row p, for a B with unit column stride. */
VF_INLINE vi load_row(const packing *c, int64_t p, int64_t j, vf by)
{
    if (c->bytes) return vi_load_bytes(c->bytes + p * c->b_row + j);
    return vi_from_vf(vf_mul(vf_load(c->b + p * c->b_row + j), by));
}

/* Packs VF_LANES columns of such a B, row by row. */
static void pack_rows(const packing *c, int8_t *to, int64_t width, int64_t j)
{
    vf by = vf_zero();
    if (!c->bytes) {
        vf max_abs = vf_zero();
        for (int64_t p = 0; p < c->k; p++)
            max_abs = vf_max(vf_abs(vf_load(c->b + p * c->b_row + j)), max_abs);
        by = quant_factors(max_abs);
        vf_store(c->scale + j, vf_div(max_abs, vf_set1(127)));
    }
    for (int64_t p = 0; p < c->k; p += 4, to += 4 * width) {
        vi quad = vi_set1(0);
        for (int64_t i = tile_min(4, c->k - p); i-- > 0;)
            quad = vi_add(vi_shl(quad, 8), vi_and(load_row(c, p + i, j, by), vi_set1(255)));
        vi_store(to, quad);
    }
}

/* Packs VF_LANES columns, of which n exist, from contiguous columns: a transpose of groups of four bytes,
 * moved as 32-bit elements. */
static void pack_columns(const packing *c, int8_t *to, int64_t width, int64_t j, int64_t n, int8_t *buffer)
{
    int64_t quads = ses_quad_count(c->k), row = 4 * quads;
    const int8_t *from = buffer;
    if (c->bytes && c->b_row == 1 && c->k % 4 == 0 && c->b_col % 4 == 0)
        from = c->bytes + j * c->b_col, row = c->b_col;
    else
        for (int64_t i = 0; i < n; i++) load_column(c, j + i, buffer + i * row);
    transpose_vector((float *)(void *)to, width, (const float *)(const void *)from, row / 4, n, quads);
}

_Static_assert(VF_LANES *SES_GEMM_I8_MAX_K <= SES_SCRATCH_BYTES, "scratch");

static void pack_chunk(void *ctx, int64_t index, void *scratch)
{
    const packing *c = ctx;
    int64_t begin = index * TILE_COLS, width = panel_width(c->n, begin), quads = ses_quad_count(c->k),
            depth = panel_quads(c->k);
    int8_t *panel = c->panel + begin * 4 * depth;
    memset(panel + quads * 4 * width, 0, (size_t)((depth - quads) * 4 * width));
    for (int64_t v = 0; v < width; v += VF_LANES) {
        int64_t j = begin + v, n = tile_min(VF_LANES, c->n - j);
        for (int64_t i = c->bytes ? 0 : n; i < VF_LANES; i++)
            c->scale[j + i] = i < n ? c->bytes_scale[j + i] : 0;
        if (c->b_col == 1 && n == VF_LANES)
            pack_rows(c, panel + 4 * v, width, j);
        else
            pack_columns(c, panel + 4 * v, width, j, n, scratch);
        vi_store(c->zp_correction + j, zp_correction_of(panel + 4 * v, width, quads));
    }
    if (c->dot == MATRIX) zip_panel(panel, width, quads);
}

static void pack_b(ses_exec *x, void *packed, packing c)
{
    packed_header *h = packed;
    int64_t width = tile_round_up(c.n, VF_LANES);
    *h = (packed_header){ .dot = dot_kind() };
    c.dot = h->dot;
    c.scale = (float *)(void *)(h + 1);
    c.zp_correction = (int32_t *)(void *)(c.scale + width);
    c.panel = (int8_t *)(c.zp_correction + width);
    ses_parallel_for(x->pool, (c.n + TILE_COLS - 1) / TILE_COLS, pack_chunk, &c);
}

void VF_NAME(ses_k_gemm_i8_pack)(ses_exec *x, void *packed, const float *b, int64_t b_row, int64_t b_col,
                                 int64_t n, int64_t k)
{
    pack_b(x, packed, (packing){ .b = b, .b_row = b_row, .b_col = b_col, .n = n, .k = k });
}

void VF_NAME(ses_k_gemm_i8_pack_quantized)(ses_exec *x, void *packed, const int8_t *b, const float *scale,
                                           int64_t b_row, int64_t b_col, int64_t n, int64_t k)
{
    pack_b(x, packed,
           (packing){ .bytes = b, .bytes_scale = scale, .b_row = b_row, .b_col = b_col, .n = n, .k = k });
}

#endif
