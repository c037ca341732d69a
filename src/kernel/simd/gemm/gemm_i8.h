/* int8 matrix products: quantizing, the partition into chunks and the epilogues of rows. The
 * including file defines the block of rows and columns that is multiplied at once:
 *
 *     enum { BLOCK_ROWS, CHUNK_WORK, CHUNKS, QUAD_STEP };
 *         rows of a block; multiply-adds per chunk, more if there are more than CHUNKS chunks per thread
 *         (0: no more); the quads of a panel are a multiple of QUAD_STEP
 *     #define SPARSE_SHARE
 *         largest share of quads that are not zero for which a sparse B is faster, see gemm_i8_sparse.h
 *     enum { EPILOGUE_ROWS, EPILOGUE_BYTES, EPILOGUE_STEP, EPILOGUE_CHUNKS, SHARED_ROWS };
 *         if rows get an epilogue: most rows and bytes of A and C per chunk; large chunks have a multiple of
 *         EPILOGUE_STEP rows; at least this many chunks per thread, unless they would have less than
 *         SHARED_ROWS rows
 *     block_state, blocks_begin(&s), blocks_end(&s)
 *         what a chunk keeps from its first block to its last
 *     enum { COPY_QUADS }, void blocks_rows(&s, to, q, rows, quads, panels)
 *         the rows of A that the next blocks multiply with `panels` panels; `to` has room for a copy of
 *         rows of at most COPY_QUADS quads, whole blocks of them
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
#include "gemm_i8_pack.h"
#include "kernel/simd/glu_row.h"
#include "kernel/simd/norm_row.h"

static bool is_sparse(const ses_gemm *g) { return ((const packed_header *)g->packed)->sparse != 0; }

/* Whether sums of whole vectors, `width` columns from j on, may be stored to C at once. */
static bool is_direct(const ses_gemm *g, int64_t j, int64_t width)
{
    return !g->pre_act && !g->accumulate && j + width <= g->n &&
           (g->act == SES_ACT_NONE || g->act == SES_ACT_GELU);
}

#include "gemm_i8_sparse.h"

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
    bool direct = is_direct(g, j, width);
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

_Static_assert(8 * 4 * (SES_GEMM_I8_MAX_N + 1 + SES_GEMM_I8_MAX_K / 4) + SPARSE_SCRATCH <=
                   ROOM_BYTES - 2 * LINE_BYTES,
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
    sparse_rows sparse = sparse_scratch((char *)scratch + ROOM_BYTES - sparse_scratch_bytes(b->g->k));
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
        if (is_sparse(g)) run_sparse(&sparse, &part, a, 0, count, (ses_range){ 0, sparse_blocks(n) });
        for (int64_t j = 0; j < n && !is_sparse(g); j += TILE_COLS) {
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
    int64_t copy = copy_bytes(g);
    int64_t room = ROOM_BYTES - 2 * LINE_BYTES - BLOCK_ROWS * copy - sparse_scratch_bytes(g->k);
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
    if (is_sparse(b->g)) b->rows = tile_min(max_rows, tile_round_up(b->rows, VF_LANES));
    ses_parallel_for(x->pool, ses_chunks(m, b->rows), epilogue_rows, b);
}

/* Products without an epilogue. */
static void run_dense(ses_exec *x, job b)
{
    int64_t panels = (b.g->n + TILE_COLS - 1) / TILE_COLS;
    b.rows = tile_min(b.g->m, CHUNK_ROWS);
    int64_t work = b.rows < FEW_ROWS ? FEW_ROWS : b.rows; /* few rows are limited by loading B */
    b.group = tile_min(1 + CHUNK_WORK / (work * TILE_COLS * (b.g->k + 1)), panels);
    if (CHUNKS) { /* larger groups */
        int64_t threads = ses_thread_pool_size(x->pool), blocks = ses_chunks(b.g->m, b.rows) * b.count;
        int64_t even = ses_chunks(panels, threads > 1 ? ses_chunks(CHUNKS * threads, blocks) : 1);
        if (b.group < even) b.group = even;
    }
    b.groups = (panels + b.group - 1) / b.group;
    ses_parallel_for(x->pool, (b.g->m + b.rows - 1) / b.rows * b.groups * b.count, run_chunk, &b);
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
    bool any_sparse = false;
    for (int64_t i = 0; i < count; i++) any_sparse |= is_sparse(g + i);
    for (int64_t i = 0; i < count && any_sparse; i++) {
        if (is_sparse(g + i))
            run_sparse_product(x, g + i, a);
        else
            run_dense(x, (job){ .g = g + i, .count = 1, .a = a });
    }
    if (!any_sparse) run_dense(x, b);
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

#endif
