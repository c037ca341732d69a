/* ses_gemm with bf16 operands, on the blocks of mma_bf16.h.
 *
 * A chunk is a block of rows times a group of panels. It rounds its rows of A once, then multiplies them with
 * one panel after another. k is split into passes of at most PASS, depending on k only; later passes add to
 * C. The partitioning does not change any bit. The vector level computes the product if ses_exec.bf16 is not
 * set. */
#include "bf16_pack.h"
#define EPILOGUE_COLS MMA_COLS
#include "gemm_epilogue.h"

enum {
    PASS = 4096,    /* a multiple of MMA_DEPTH */
    MAX_ROWS = 256, /* rows per chunk */
    WORK = 1 << 20, /* multiply-adds per chunk */
};

_Static_assert((MMA_COLS * PASS + MAX_ROWS * 64) * 2 + 2 * MMA_A_BYTES <= SES_SCRATCH_BYTES, "scratch");
_Static_assert(SES_PACK_STEP % MMA_COLS == 0, "panels");

typedef struct job {
    ses_gemm g;
    int64_t rows, blocks;  /* rows per chunk, a multiple of MMA_ROWS; blocks of rows */
    int64_t group, groups; /* panels per chunk; chunks per block of rows */
} job;

/* A range of k. */
typedef struct pass {
    int64_t begin, k;
    tile_pass position;
} pass;

static pass pass_at(int64_t k, int64_t begin)
{
    int64_t n = k > PASS ? (k + PASS - 1) / PASS : 1, size = mma_depth((k + n - 1) / n);
    return (pass){ begin, tile_min(size, k - begin), { begin == 0, begin + size >= k } };
}

enum { LINE_BYTES = 64 };

/* Prefetches the cache lines of C that a block is stored to, while the block is computed. */
static void prefetch_block(const ses_gemm *g, int64_t i, int64_t rows, int64_t j, int64_t cols)
{
    for (int64_t r = i; r < i + rows; r++)
        for (int64_t at = 0; at < cols; at += LINE_BYTES / 4) prefetch_write(g->c + r * g->ldc + j + at);
}

/* Multiplies rows i .. end-1, packed in a, with one panel. next: the next panel, prefetched block by block,
 * or NULL. */
static void run_panel(mma *m, const ses_gemm *g, pass s, const uint16_t *a, const uint16_t *panel,
                      const uint16_t *next, int64_t i, int64_t end, int64_t j)
{
    int64_t depth = mma_depth(s.k), cols = tile_min(MMA_COLS, g->n - j), first = i;
    int64_t lines = MMA_COLS * MMA_DEPTH * (int64_t)sizeof *next / LINE_BYTES;
    lines = next ? ses_chunks(lines, ses_chunks(end - i, MMA_ROWS)) : 0;
    _Alignas(LINE_BYTES) float tile[MMA_ROWS * MMA_COLS];
    for (; i < end; i += MMA_ROWS) {
        int64_t rows = tile_min(MMA_ROWS, end - i);
        if (MMA_FAR) prefetch_block(g, i, rows, j, cols);
        mma_ahead(m, next, lines);
        if (next) next += lines * LINE_BYTES / (int64_t)sizeof *next * (depth / MMA_DEPTH);
        mma_block(m, tile, MMA_COLS, a + mma_a_index(i - first, 0, depth), panel, mma_width(g->n, j), depth,
                  rows);
        tile_store(g, s.position, tile, i, rows, j, cols, !g->pre_act);
    }
}

/* The pass's part of the packed panel of columns at j. */
static const uint16_t *packed_panel(const ses_gemm *g, pass s, int64_t j)
{
    return (const uint16_t *)g->packed + j * mma_depth(g->k) + s.begin * mma_width(g->n, j);
}

static void run_pass(mma *m, const job *b, pass s, int64_t index, uint16_t *scratch)
{
    const ses_gemm *g = &b->g;
    int64_t i = index / b->groups * b->rows, end = tile_min(g->m, i + b->rows);
    int64_t j = index % b->groups * b->group * MMA_COLS, j_end = tile_min(g->n, j + b->group * MMA_COLS);
    uint16_t *buffer = scratch, *rows = scratch + MMA_COLS * PASS;
    pack_rows(rows, g->a + i * g->a_row + s.begin * g->a_col, g->a_row, g->a_col, end - i, s.k);
    for (; j < j_end; j += MMA_COLS) {
        const uint16_t *panel = buffer, *next = NULL;
        if (g->packed) {
            panel = packed_panel(g, s, j);
            if (j + MMA_COLS < j_end) next = packed_panel(g, s, j + MMA_COLS);
        } else
            pack_pairs(buffer, g->b + s.begin * g->b_row + j * g->b_col, g->b_row, g->b_col,
                       tile_min(MMA_COLS, g->n - j), s.k);
        run_panel(m, g, s, rows, panel, next, i, end, j);
    }
}

static void run_chunk(void *ctx, int64_t index, void *scratch)
{
    const job *b = ctx;
    mma m = mma_begin();
    pass s = pass_at(b->g.k, 0);
    run_pass(&m, b, s, index, scratch);
    while (!s.position.last) {
        s = pass_at(b->g.k, s.begin + s.k);
        run_pass(&m, b, s, index, scratch);
    }
    mma_end(&m);
}

/* Rows first: chunks of other columns would round the same rows again. */
static job job_of(const ses_gemm *g, int64_t threads)
{
    int64_t panels = (g->n + MMA_COLS - 1) / MMA_COLS, k = tile_min(g->k, PASS) + 1;
    int64_t most = tile_min(MAX_ROWS, MMA_A_BYTES / (2 * k)), even = (g->m + 2 * threads - 1) / (2 * threads);
    int64_t least = g->packed ? MMA_MIN_ROWS : MMA_PACK_ROWS;
    int64_t rows = tile_min(even > least || threads == 1 ? even : least, most);
    job b = { .g = *g, .rows = tile_round_up(rows > 0 ? rows : 1, MMA_ROWS) };
    b.blocks = (g->m + b.rows - 1) / b.rows;
    int64_t wanted = threads > 1 ? (MMA_CHUNKS * threads + b.blocks - 1) / b.blocks : 1;
    int64_t small = 1 + WORK / (tile_min(b.rows, g->m) * MMA_COLS * k);
    b.group = (panels + wanted - 1) / wanted;
    b.group = tile_min(b.group > small ? b.group : small, panels);
    b.groups = (panels + b.group - 1) / b.group;
    return b;
}

void VF_NAME(ses_k_gemm)(ses_exec *x, const ses_gemm *g)
{
    if (!x->bf16 || (g->packed && g->packed_dtype != SES_BF16)) {
        VF_BASE(ses_k_gemm)(x, g);
        return;
    }
    if (g->m <= 0 || g->n <= 0) return;
    job b = job_of(g, ses_thread_pool_size(x->pool));
    ses_parallel_for(x->pool, b.blocks * b.groups, run_chunk, &b);
}

void VF_NAME(ses_k_gemm_batch)(ses_exec *x, const ses_gemm_batch *b)
{
    ses_gemm_one_by_one(x, b, VF_NAME(ses_k_gemm));
}

int64_t VF_NAME(ses_k_gemm_pack_size)(int64_t n, int64_t k)
{
    return tile_round_up(n, MMA_LANES) * mma_depth(k);
}

typedef struct packing {
    uint16_t *packed;
    const float *b;
    int64_t b_row, b_col, n, k;
} packing;

static void pack_chunk(void *ctx, int64_t index, void *scratch)
{
    const packing *c = ctx;
    int64_t j = index * MMA_COLS;
    (void)scratch;
    pack_pairs(c->packed + j * mma_depth(c->k), c->b + j * c->b_col, c->b_row, c->b_col,
               tile_min(MMA_COLS, c->n - j), c->k);
}

void VF_NAME(ses_k_gemm_pack)(ses_exec *x, void *packed, ses_dtype dtype, const float *b, int64_t b_row,
                              int64_t b_col, int64_t n, int64_t k)
{
    if (!x->bf16 || dtype != SES_BF16) {
        VF_BASE(ses_k_gemm_pack)(x, packed, dtype, b, b_row, b_col, n, k);
        return;
    }
    packing c = { packed, b, b_row, b_col, n, k };
    ses_parallel_for(x->pool, (n + MMA_COLS - 1) / MMA_COLS, pack_chunk, &c);
}
