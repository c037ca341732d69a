/* int8 matrix products over tiles: blocks of 32 x 32, 2 x 2 tiles. The sums are exact, as with VNNI. VNNI
 * multiplies blocks of few rows. */
#define TILE_ROWS 8
#define TILE_VECS 2
#include "gemm_i8_block.h"
#include "kernel/simd/vec/tile.h"

enum {
    BLOCK_ROWS = 2 * MT_ROWS,
    CHUNK_WORK = 1 << 23,
    CHUNKS = 3,
    QUAD_STEP = MT_BYTES / 4, /* quads of one step of tiles */
    EPILOGUE_ROWS = 256,      /* B comes from the L3 cache once per chunk */
    EPILOGUE_BYTES = 1 << 20, /* half of the L2 cache of processors with AMX */
    EPILOGUE_STEP = BLOCK_ROWS,
    EPILOGUE_CHUNKS = 1,
    SHARED_ROWS = BLOCK_ROWS,
    COPY_QUADS = 256, /* a panel of as many quads stays in the L1 cache */
    COPY_PANELS = 4,  /* panels for which a copy of A pays off */
    FEW = TILE_ROWS,  /* rows that VNNI multiplies faster */
};

_Static_assert(VF_LANES == MT_ROWS, "a vector is a row of a tile");

/* The sums of a block are scaled while the tiles compute the next one: the instructions of both overlap. */
typedef struct unscaled {
    i8_block in;
    float *t;
    int64_t row, rows, vecs; /* row: the first that is not scaled */
} unscaled;

typedef struct block_state {
    mt_set tiles;
    int64_t rows; /* the tiles are configured for; 0: not configured */
    unscaled last;
    int at;                          /* which sums receive the next block */
    const uint8_t *rows_of_a, *copy; /* rows of A and their copy; NULL: none */
    _Alignas(MT_BYTES) int32_t sum[2][BLOCK_ROWS * TILE_COLS];
} block_state;

static void blocks_begin(block_state *s)
{
    s->rows = s->last.row = s->last.rows = s->at = 0;
    s->copy = NULL;
}

/* Copies the rows in the order of tiles: [blocks][steps][BLOCK_ROWS][MT_BYTES]. A tile is then 16 adjacent
 * cache lines. */
static void blocks_rows(block_state *s, void *to, const uint8_t *q, int64_t rows, int64_t quads,
                        int64_t panels)
{
    const int64_t row = 4 * quads;
    s->copy = NULL;
    if (quads % QUAD_STEP || quads > COPY_QUADS || panels < COPY_PANELS || rows <= FEW) return;
    for (int64_t i = 0; i < rows; i++) {
        uint8_t *y = (uint8_t *)to + i / BLOCK_ROWS * BLOCK_ROWS * row + i % BLOCK_ROWS * MT_BYTES;
        for (int64_t at = 0; at < row; at += MT_BYTES, y += BLOCK_ROWS * MT_BYTES)
            vf_store((float *)(void *)y, vf_load((const float *)(const void *)(q + i * row + at)));
    }
    s->rows_of_a = q, s->copy = to;
}

static void blocks_end(block_state *s)
{
    if (s->rows) mt_release(&s->tiles);
}

/* t = sum * row scale * column scale + bias, with the operations of i8_tile_run, for n rows. */
VF_INLINE void scale_rows(block_state *s, int64_t n, const int vecs, const bool gelu)
{
    const i8_block *in = &s->last.in;
    const int32_t *sum = s->sum[!s->at] + s->last.row * TILE_COLS;
    const float *a_scale = in->a_scale + s->last.row;
    float *t = s->last.t + s->last.row * in->ldt;
    vf by[TILE_VECS], bias[TILE_VECS];
    vi zero[TILE_VECS];
    for (int v = 0; v < vecs; v++) {
        by[v] = vf_load(in->b_scale + v * VF_LANES);
        bias[v] = in->bias ? vf_load(in->bias + v * VF_LANES) : vf_zero();
        zero[v] = vi_load(in->zp_correction + v * VF_LANES);
    }
    for (int64_t i = 0; i < n; i++, t += in->ldt, sum += TILE_COLS) {
        vf row = vf_set1(a_scale[i]);
        TILE_UNROLL for (int v = 0; v < vecs; v++)
        {
            vi c = vi_sub(vi_load(sum + v * VF_LANES), zero[v]);
            vf x = i8_scaled(c, vf_mul(row, by[v]), bias[v]);
            vf_store(t + v * VF_LANES, gelu ? vf_gelu_approx(x) : x);
        }
    }
    s->last.row += n;
}

/* Scales the next n rows of the last block. */
static void scale_some(block_state *s, int64_t n)
{
    n = tile_min(n, s->last.rows - s->last.row);
    if (n <= 0) return;
    if (s->last.vecs == 2)
        s->last.in.gelu ? scale_rows(s, n, 2, true) : scale_rows(s, n, 2, false);
    else
        s->last.in.gelu ? scale_rows(s, n, 1, true) : scale_rows(s, n, 1, false);
}

static void blocks_finish(block_state *s) { scale_some(s, BLOCK_ROWS); }

static int64_t block_rows(int64_t left, bool dot)
{
    (void)dot;
    return tile_min(left, BLOCK_ROWS);
}

/* One step of 64 columns of A: rows at a and, in the lower tiles, 16 rows below. load_a, load_b: mt_load or
 * mt_load_once. */
#define BLOCK_STEP(t, load_a, load_b, a, a_row, b, b_row, lower, right) \
    load_a(t, MT_A0, a, a_row);                                         \
    load_b(t, MT_B0, b, b_row);                                         \
    mt_dot_i8(t, MT_C00, MT_A0, MT_B0);                                 \
    if (right) load_b(t, MT_B1, (b) + MT_BYTES, b_row);                 \
    if (right) mt_dot_i8(t, MT_C01, MT_A0, MT_B1);                      \
    if (lower) load_a(t, MT_A1, (a) + MT_ROWS * (a_row), a_row);        \
    if (lower) mt_dot_i8(t, MT_C10, MT_A1, MT_B0);                      \
    if (lower && right) mt_dot_i8(t, MT_C11, MT_A1, MT_B1)

/* Sums of a block. lower: more than 16 rows; right: two vectors of columns; shallow: the panel stays in the
 * L1 cache and A passes through it, else the other way round. */
VF_INLINE void block_sum(block_state *s, const i8_block *in, int64_t rows, const bool lower, const bool right,
                         const bool shallow)
{
    enum { STEP = QUAD_STEP, ROW = TILE_COLS * 4, AHEAD = 16 << 10 };
    const int64_t b_row = right ? 2 * MT_BYTES : MT_BYTES, a_row = s->copy ? MT_BYTES : 4 * in->quads,
                  a_step = s->copy ? BLOCK_ROWS * MT_BYTES : MT_BYTES;
    mt_set *t = &s->tiles;
    const uint8_t *a = s->copy ? s->copy + (in->a - s->rows_of_a) : in->a;
    const int8_t *b = in->b, *next = in->next;
    int32_t *sum = s->sum[s->at];
    const bool ahead = next != b; /* else there is nothing to prefetch */
    int64_t left = in->quads, some = ses_chunks(s->last.rows, 1 + left / STEP);
    mt_zero(t, MT_C00);
    if (right) mt_zero(t, MT_C01);
    if (lower) mt_zero(t, MT_C10);
    if (lower && right) mt_zero(t, MT_C11);
    for (; left >= STEP; left -= STEP, a += a_step, b += STEP * b_row, next += STEP * LINE_BYTES) {
        if (shallow) {
            BLOCK_STEP(t, mt_load_once, mt_load, a, a_row, b, b_row, lower, right);
        } else {
            BLOCK_STEP(t, mt_load, mt_load_once, a, a_row, b, b_row, lower, right);
        }
        for (int64_t at = 0; in->stream && at < STEP * b_row; at += LINE_BYTES)
            __builtin_prefetch(b + AHEAD + at, 0, 2);
        for (int64_t at = 0; ahead && at < STEP * LINE_BYTES; at += LINE_BYTES)
            __builtin_prefetch(next + at, 0, 2);
        scale_some(s, some);
    }
    if (left > 0) { /* the last columns of A, filled with zeros */
        _Alignas(MT_BYTES) float last[BLOCK_ROWS * VF_LANES];
        for (int64_t i = 0; i < rows; i++)
            vf_store(last + i * VF_LANES, vf_load_part((const float *)(const void *)(a + i * a_row), left));
        BLOCK_STEP(t, mt_load, mt_load, (const uint8_t *)last, MT_BYTES, b, b_row, lower, right);
    }
    mt_store(t, MT_C00, sum, ROW);
    if (right) mt_store(t, MT_C01, sum + VF_LANES, ROW);
    if (lower) mt_store(t, MT_C10, sum + MT_ROWS * TILE_COLS, ROW);
    if (lower && right) mt_store(t, MT_C11, sum + MT_ROWS * TILE_COLS + VF_LANES, ROW);
}

static void block_run(block_state *s, float *t, const i8_block *in, int64_t rows, int64_t vecs)
{
    if (rows <= FEW) {
        i8_vector_block(t, in, rows, vecs);
        return;
    }
    if (s->rows != rows) {
        mt_shapes shapes = mt_block_shapes(rows);
        mt_configure(&s->tiles, &shapes);
        s->rows = rows;
    }
    const bool tall = rows > MT_ROWS;
    if (vecs == 1)
        tall ? block_sum(s, in, rows, true, false, true) : block_sum(s, in, rows, false, false, true);
    else if (in->quads <= COPY_QUADS)
        tall ? block_sum(s, in, rows, true, true, true) : block_sum(s, in, rows, false, true, true);
    else
        tall ? block_sum(s, in, rows, true, true, false) : block_sum(s, in, rows, false, true, false);
    blocks_finish(s);
    s->last = (unscaled){ *in, t, 0, rows, vecs };
    s->at = !s->at;
}

#define SPARSE_SHARE 0.16 /* tiles multiply faster: equal at 0.16 on one thread, at 0.22 on eight */
#include "gemm_i8.h"
