/* ses_gemm on the register tile of gemm_tile.h.
 *
 * k is split into passes of at most PASS, depending on k only. A tile's accumulators start each pass at zero
 * and are added to C, which also keeps rounding errors small. A chunk is a block of rows times a group of
 * panels; the partitioning does not change any bit. */
#include "base/half.h"
#include "gemm_epilogue.h"
#include "gemm_narrow.h"
#include "gemm_pack.h"

enum {
    PASS = 768,
    STRIP_ROWS = 1032, /* most rows per chunk if A is packed; a multiple of TILE_ROWS */
    WORK = 1 << 18,    /* multiply-adds per chunk */
    FEW = 4,           /* fewer rows take as long as this many */
};

_Static_assert((TILE_COLS + STRIP_ROWS) * PASS * sizeof(float) <= SES_SCRATCH_BYTES, "scratch");

typedef struct job {
    ses_gemm g;
    /* tiles of TILE_ROWS rows; blocks of nearly equal numbers of tiles, one per chunk */
    int64_t tiles, blocks;
    int64_t group;  /* panels per chunk */
    int64_t groups; /* chunks per block of rows */
    bool strips;    /* A is packed */
    bool half;      /* tiles convert 16-bit B themselves: there is only one tile of rows */
    bool narrow;    /* sums are in double, see gemm_narrow.h */
    bool next;      /* tiles prefetch the next panel */
} job;

/* A range of k. */
typedef struct pass {
    int64_t begin, k;
    tile_pass position;
} pass;

static pass pass_at(int64_t k, int64_t begin)
{
    int64_t n = k > PASS ? (k + PASS - 1) / PASS : 1, size = tile_round_up((k + n - 1) / n, 4);
    return (pass){ begin, tile_min(size, k - begin), { begin == 0, begin + size >= k } };
}

/* Prefetches the cache lines of C that a tile is stored to, while the tile is computed. */
VF_INLINE void prefetch_tile(const ses_gemm *g, int64_t i, int64_t rows, int64_t j, int64_t cols)
{
    enum { LINE = 16 };
    for (int64_t r = i; r < i + rows; r++) {
        const float *c = g->c + r * g->ldc + j;
        for (int64_t at = 0; at < cols; at += LINE) prefetch_write(c + at);
        prefetch_write(c + cols - 1);
    }
}

/* run_panel for a narrow B. */
static void run_narrow_panel(const job *b, const float *panel, int64_t i, int64_t end, int64_t j)
{
    float tile[TILE_ROWS * TILE_COLS];
    ses_gemm rest = b->g; /* what the epilogue has left to do */
    rest.bias = NULL, rest.accumulate = false;
    for (; i < end; i += TILE_ROWS) {
        int64_t rows = tile_min(TILE_ROWS, end - i);
        narrow_tile(tile, &b->g, panel, i, rows, j);
        tile_store(&rest, (tile_pass){ true, true }, tile, i, rows, j, tile_min(TILE_COLS, rest.n - j),
                   false);
    }
}

/* Memory that the next panel will be read from. */
typedef struct next_panel {
    const char *at, *end;
} next_panel;

/* A tile by the functions that prefetch more. */
static void run_next_tile(const job *b, float *tile, const float *a, int64_t rows, int64_t vecs,
                          const void *panel, int64_t k, next_panel *next)
{
#if TILE_HAS_NEXT
    if (b->strips) {
        tile_near_strip[vecs - 1](tile, TILE_COLS, a, panel, k);
        return;
    }
    bool more = next->at < next->end; /* both are NULL if B is packed on the fly */
    tile_next[rows - 1][vecs - 1](tile, TILE_COLS, a, b->g.a_row, panel, k, more ? next->at : panel);
    if (more) next->at += tile_next_bytes(k);
#else
    (void)b, (void)tile, (void)a, (void)rows, (void)vecs, (void)panel, (void)k, (void)next;
#endif
}

/* Multiplies rows i .. end-1 with one panel. Tiles have nearly equal heights, so none is very small. */
static void run_panel(const job *b, pass s, const float *strips, const void *panel, next_panel next,
                      int64_t i, int64_t end, int64_t j)
{
    const ses_gemm *g = &b->g;
    tile_direct_fn *const(*direct)[TILE_VECS] =
        b->half ? tile_half[g->packed_dtype == SES_BF16] : tile_direct;
    int64_t width = panel_width(g->n, j), cols = tile_min(TILE_COLS, g->n - j), vecs = width / VF_LANES;
    int64_t tiles = (end - i + TILE_ROWS - 1) / TILE_ROWS;
    float tile[TILE_ROWS * TILE_COLS];
    for (; tiles > 0; tiles--) {
        int64_t rows = b->strips ? tile_min(TILE_ROWS, end - i) : (end - i + tiles - 1) / tiles;
        prefetch_tile(g, i, rows, j, cols);
        const float *a = b->strips ? strips : g->a + i * g->a_row + s.begin;
        if (b->next)
            run_next_tile(b, tile, a, rows, vecs, panel, s.k, &next);
        else if (b->strips)
            tile_strip[vecs - 1](tile, TILE_COLS, a, panel, s.k);
        else
            direct[rows - 1][vecs - 1](tile, TILE_COLS, a, g->a_row, panel, s.k);
        tile_store(g, s.position, tile, i, rows, j, cols, false);
        strips += b->strips ? TILE_ROWS * s.k : 0;
        i += rows;
    }
}

/* Converts a panel of 16-bit numbers to floats, which pays off from a few tiles on. */
static void convert_panel(float *y, const uint16_t *x, ses_dtype from, int64_t n)
{
    if (from == SES_F16)
        for (int64_t i = 0; i < n; i += VF_LANES) vf_store(y + i, vf_load_f16(x + i));
    else
        for (int64_t i = 0; i < n; i += VF_LANES) vf_store(y + i, vf_load_bf16(x + i));
}

/* The packed panel after the one of columns at j in pass s: the next one of the chunk, the chunk's first
 * panel in the next pass, or the next chunk's. Nothing if B is packed on the fly. */
static next_panel panel_after(const job *b, pass s, int64_t j0, int64_t j, int64_t j_end)
{
    const ses_gemm *g = &b->g;
    int64_t size = g->packed_dtype == SES_F32 ? 4 : 2, begin = s.begin;
    if (!g->packed) return (next_panel){ NULL, NULL };
    j += TILE_COLS;
    if (j >= j_end && !s.position.last)
        j = j0, begin += s.k;
    else if (j >= j_end)
        j = j < g->n ? j : 0, begin = 0;
    int64_t width = panel_width(g->n, j);
    const char *at = (const char *)g->packed + size * (j * g->k + begin * width);
    return (next_panel){ at, at + size * width * tile_min(s.k, g->k - begin) };
}

static void run_pass(const job *b, pass s, int64_t i, int64_t end, int64_t j, int64_t j_end, float *scratch)
{
    const ses_gemm *g = &b->g;
    float *buffer = scratch, *strips = scratch + TILE_COLS * PASS;
    int64_t j0 = j;
    if (b->strips)
        pack_strips(strips, g->a + i * g->a_row + s.begin * g->a_col, g->a_row, g->a_col, end - i, s.k);
    for (; j < j_end; j += TILE_COLS) {
        int64_t width = panel_width(g->n, j);
        const void *panel = buffer;
        if (g->packed && g->packed_dtype == SES_F32)
            panel = (const float *)g->packed + j * g->k + s.begin * width;
        else if (g->packed && b->half)
            panel = (const uint16_t *)g->packed + j * g->k + s.begin * width;
        else if (g->packed)
            convert_panel(buffer, (const uint16_t *)g->packed + j * g->k + s.begin * width, g->packed_dtype,
                          s.k * width);
        else
            pack_panel(buffer, g->b + s.begin * g->b_row + j * g->b_col, g->b_row, g->b_col,
                       tile_min(TILE_COLS, g->n - j), s.k);
        if (b->narrow)
            run_narrow_panel(b, panel, i, end, j);
        else
            run_panel(b, s, strips, panel, panel_after(b, s, j0, j, j_end), i, end, j);
    }
}

static int64_t first_row(const job *b, int64_t block) { return block * b->tiles / b->blocks * TILE_ROWS; }

static void run_chunk(void *ctx, int64_t index, void *scratch)
{
    const job *b = ctx;
    const ses_gemm *g = &b->g;
    int64_t block = index / b->groups, i = first_row(b, block), end = tile_min(g->m, first_row(b, block + 1));
    int64_t j = index % b->groups * b->group * TILE_COLS, j_end = tile_min(g->n, j + b->group * TILE_COLS);
    pass s = pass_at(g->k, 0);
    run_pass(b, s, i, end, j, j_end, scratch);
    while (!s.position.last) {
        s = pass_at(g->k, s.begin + s.k);
        run_pass(b, s, i, end, j, j_end, scratch);
    }
}

void VF_NAME(ses_k_gemm)(ses_exec *x, const ses_gemm *g)
{
    if (g->m <= 0 || g->n <= 0) return;
    job b = { .g = *g, .narrow = is_narrow(g) };
    b.strips = g->a_col != 1 && !b.narrow;
    b.half = g->packed && g->packed_dtype != SES_F32 && !b.strips && !b.narrow && g->m <= TILE_ROWS;
    int64_t panels = (g->n + TILE_COLS - 1) / TILE_COLS;
    ses_blocks size = ses_blocks_complete(x->blocks);
    int64_t rows = tile_min(g->m, b.strips ? size.strip_rows : g->packed ? size.packed_rows : size.rows);
    int64_t work = rows < FEW ? FEW : rows; /* few rows are limited by loading B */
    b.next = TILE_HAS_NEXT && size.far_memory && !b.half && g->m > TILE_ROWS;
    b.tiles = (g->m + TILE_ROWS - 1) / TILE_ROWS;
    b.blocks = (g->m + rows - 1) / rows;
    b.group = 1 + WORK / (work * TILE_COLS * (g->k + 1));
    if (b.strips) b.group = ses_chunks(size.strip_cols, TILE_COLS);
    b.group = tile_min(b.group, panels);
    b.groups = (panels + b.group - 1) / b.group;
    ses_parallel_for(x->pool, b.blocks * b.groups, run_chunk, &b);
}

void VF_NAME(ses_k_gemm_batch)(ses_exec *x, const ses_gemm_batch *b)
{
    ses_gemm_one_by_one(x, b, VF_NAME(ses_k_gemm));
}

int64_t VF_NAME(ses_k_gemm_pack_size)(int64_t n, int64_t k) { return tile_round_up(n, VF_LANES) * k; }

typedef struct packing {
    void *packed;
    ses_dtype dtype;
    const float *b;
    int64_t b_row, b_col, n, k;
} packing;

static void pack_chunk(void *ctx, int64_t index, void *scratch)
{
    const packing *c = ctx;
    int64_t j = index * TILE_COLS, n = tile_min(TILE_COLS, c->n - j), width = panel_width(c->n, j);
    if (c->dtype == SES_F32) {
        pack_panel((float *)c->packed + j * c->k, c->b + j * c->b_col, c->b_row, c->b_col, n, c->k);
        return;
    }
    for (int64_t p = 0; p < c->k; p += PASS) {
        int64_t depth = tile_min(PASS, c->k - p);
        float *floats = scratch;
        uint16_t *y = (uint16_t *)c->packed + j * c->k + p * width;
        pack_panel(floats, c->b + p * c->b_row + j * c->b_col, c->b_row, c->b_col, n, depth);
        if (c->dtype == SES_F16)
            for (int64_t i = 0; i < depth * width; i += VF_LANES) vf_store_f16(y + i, vf_load(floats + i));
        else
            for (int64_t i = 0; i < depth * width; i++) y[i] = ses_f32_to_bf16(floats[i]);
    }
}

void VF_NAME(ses_k_gemm_pack)(ses_exec *x, void *packed, ses_dtype dtype, const float *b, int64_t b_row,
                              int64_t b_col, int64_t n, int64_t k)
{
    packing c = { packed, dtype, b, b_row, b_col, n, k };
    ses_parallel_for(x->pool, (n + TILE_COLS - 1) / TILE_COLS, pack_chunk, &c);
}
