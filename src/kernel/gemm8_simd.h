/* Products of 8-bit numbers, for gemm8_avx2.c and gemm8_avx512.c, which say how a step of four is done.
 * B's multiples lie in panels of TILE_COLS columns, [quads][width][4]: a vector holds four consecutive
 * numbers of each of its columns. A's are bytes from 1 to 255, 128 too many; so 128 times the sum of a
 * column of B is taken off in the end. Sums of whole numbers are exact in any order: every way of a step
 * gives the same bits. */
#include "gemm_put.h"
#include "gemm_tiles.h"

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

enum { STEP_ROWS = 4 }; /* of a tile without the instruction, which needs registers for halves of B */

VF_INLINE vi four(const uint8_t *a)
{
    int32_t x;
    memcpy(&x, a, sizeof x);
    return vi_set1(x);
}

/* t[i][j] = sum over quads of a's four times b's four; the rows of A are a_row bytes apart. */
VF_INLINE void tile8_run(int32_t *t, const uint8_t *a, int64_t a_row, const int8_t *b, int64_t quads,
                         const int rows, const int vecs, const bool dot)
{
    vi c[TILE_ROWS][TILE_VECS];
    TILE_UNROLL for (int i = 0; i < rows; i++)
    {
        TILE_UNROLL for (int v = 0; v < vecs; v++) c[i][v] = vi_set1(0);
    }
    for (; quads > 0; quads--, a += 4, b += vecs * VF_LANES * 4) {
        vi bv[TILE_VECS];
        TILE_UNROLL for (int v = 0; v < vecs; v++) bv[v] = vi_load(b + v * VF_LANES * 4);
        if (dot) {
            TILE_UNROLL for (int i = 0; i < rows; i++)
            {
                vi x = four(a + i * a_row);
                TILE_UNROLL for (int v = 0; v < vecs; v++) c[i][v] = vi_dot4(c[i][v], x, bv[v]);
            }
        } else {
            vi odd[TILE_VECS];
            TILE_UNROLL for (int v = 0; v < vecs; v++) odd[v] = vi_odd_bytes(bv[v]),
                                                       bv[v] = vi_even_bytes(bv[v]);
            TILE_UNROLL for (int i = 0; i < rows; i++)
            {
                vi x = four(a + i * a_row), even = vi_and(x, vi_set1(0x00ff00ff)), rest = vi_shr16(x);
                TILE_UNROLL for (int v = 0; v < vecs; v++)
                {
                    vi both = vi_add(vi_dot2(even, bv[v]), vi_dot2(rest, odd[v]));
                    c[i][v] = vi_add(c[i][v], both);
                }
            }
        }
    }
    TILE_UNROLL for (int i = 0; i < rows; i++)
    {
        TILE_UNROLL for (int v = 0; v < vecs; v++) vi_store(t + i * TILE_COLS + v * VF_LANES, c[i][v]);
    }
}

typedef void tile8_fn(int32_t *t, const uint8_t *a, int64_t a_row, const int8_t *b, int64_t quads);

#define TILE_DIRECT(name, dot, rows, vecs)                                                           \
    static void name##_##rows##x##vecs(int32_t *t, const uint8_t *a, int64_t a_row, const int8_t *b, \
                                       int64_t quads)                                                \
    {                                                                                                \
        tile8_run(t, a, a_row, b, quads, rows, vecs, dot);                                           \
    }
TILE_ALL(dot, true)
TILE_ALL(step, false)
static tile8_fn *const tile8[2][TILE_ROWS][TILE_VECS] = { TILE_TABLE(step), TILE_TABLE(dot) };

/* ---- the product ---- */

enum {
    ROWS8 = 192,     /* rows of a chunk */
    WORK8 = 1 << 20, /* multiply-adds worth a chunk */
};

typedef struct job8 {
    ses_gemm g;
    const uint8_t *a;
    const float *a_scale;
    panels8 b;
    int64_t rows, group, groups; /* as in gemm_simd.h */
} job8;

/* Sums as numbers: t = sum without the excess, times the scales of row and column. */
static void tile8_real(float *t, const int32_t *sum, const job8 *b, int64_t i, int64_t rows, int64_t j,
                       int64_t width)
{
    for (int64_t r = 0; r < rows; r++) {
        vf row = vf_set1(b->a_scale[i + r]);
        for (int64_t v = 0; v < width; v += VF_LANES) {
            vf x = vf_from_vi(vi_sub(vi_load(sum + r * TILE_COLS + v), vi_load(b->b.excess + j + v)));
            vf_store(t + r * TILE_COLS + v, vf_mul(x, vf_mul(row, vf_load(b->b.scale + j + v))));
        }
    }
}

static void run_panel8(const job8 *b, int64_t i, int64_t end, int64_t j)
{
    const ses_gemm *g = &b->g;
    int64_t most = b->b.dot ? TILE_ROWS : STEP_ROWS, tiles = (end - i + most - 1) / most;
    int64_t width = panel_width(g->n, j), quads = ses_quads(g->k);
    const int8_t *panel = b->b.panel + j * 4 * quads;
    int32_t sum[TILE_ROWS * TILE_COLS];
    float tile[TILE_ROWS * TILE_COLS];
    for (; tiles > 0; tiles--) {
        int64_t rows = (end - i + tiles - 1) / tiles;
        tile8[b->b.dot][rows - 1][width / VF_LANES - 1](sum, b->a + i * 4 * quads, 4 * quads, panel, quads);
        tile8_real(tile, sum, b, i, rows, j, width);
        tile_put(g, (tile_turn){ true, true }, tile, i, rows, j, tile_min(TILE_COLS, g->n - j));
        i += rows;
    }
}

static void run_chunk8(void *ctx, int64_t index, void *scratch)
{
    (void)scratch;
    const job8 *b = ctx;
    int64_t i = index / b->groups * b->rows, end = tile_min(b->g.m, i + b->rows);
    int64_t j = index % b->groups * b->group * TILE_COLS, j_end = tile_min(b->g.n, j + b->group * TILE_COLS);
    for (; j < j_end; j += TILE_COLS) run_panel8(b, i, end, j);
}

void VF_NAME(ses_k_gemm8)(ses_exec *x, const ses_gemm *g, const uint8_t *a, const float *a_scale)
{
    if (g->m <= 0 || g->n <= 0) return;
    job8 b = { .g = *g, .a = a, .a_scale = a_scale, .b = panels_of(g->packed, g->n) };
    int64_t panels = (g->n + TILE_COLS - 1) / TILE_COLS;
    b.rows = tile_min(g->m, ROWS8);
    b.group = tile_min(1 + WORK8 / (b.rows * TILE_COLS * (g->k + 1)), panels);
    b.groups = (panels + b.group - 1) / b.group;
    ses_parallel(x->pool, (g->m + b.rows - 1) / b.rows * b.groups, run_chunk8, &b);
}

/* ---- rounding ---- */

typedef struct row8 {
    float most; /* largest magnitude */
    float odd;  /* 0, or NaN where something is not finite */
} row8;

static row8 look(const float *a, int64_t n)
{
    vf most = vf_zero(), odd = vf_zero();
    for (int64_t i = 0; i < n; i += VF_LANES) {
        vf x = vf_get(a + i, n - i);
        most = vf_max(vf_abs(x), most);
        odd = vf_add(odd, vf_sub(x, x));
    }
    return (row8){ vf_hmax(most), vf_sum(odd) };
}

static float factor(row8 r) { return r.most > 0 && r.odd == 0 ? 127 / r.most : 0; }

typedef struct rounding {
    uint8_t *q;
    float *scale;
    const float *a;
    int64_t rows, cols;
} rounding;

static void round_chunk(void *ctx, int64_t index, void *scratch)
{
    (void)scratch;
    const rounding *c = ctx;
    ses_range part = ses_chunk(c->rows, ses_chunk_rows(c->cols), index);
    int64_t width = 4 * ses_quads(c->cols), full = c->cols / VF_LANES * VF_LANES;
    for (int64_t r = part.begin; r < part.end; r++) {
        const float *a = c->a + r * c->cols;
        uint8_t *q = c->q + r * width;
        row8 at = look(a, c->cols);
        vf by = vf_set1(factor(at));
        c->scale[r] = at.most / 127 + at.odd;
        int64_t i = 0;
        for (; i < full; i += VF_LANES) vi_store_bytes(q + i, vi_from_vf(vf_mul(vf_load(a + i), by)));
        for (; i < width; i++)
            q[i] = (uint8_t)(128 + (i < c->cols && at.odd == 0 ? (int)rintf(a[i] * factor(at)) : 0));
    }
}

void VF_NAME(ses_k_round_rows)(ses_exec *x, uint8_t *q, float *scale, const float *a, int64_t rows,
                               int64_t cols)
{
    rounding c = { q, scale, a, rows, cols };
    if (rows > 0) ses_parallel(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), round_chunk, &c);
}

int64_t VF_NAME(ses_k_gemm8_pack_size)(int64_t n, int64_t k)
{
    return (int64_t)sizeof(head8) + tile_round_up(n, VF_LANES) * (8 + 4 * ses_quads(k));
}

typedef struct packing8 {
    float *scale;
    int32_t *excess;
    int8_t *panel;
    const float *b;
    int64_t b_row, b_col, n, k;
} packing8;

static void pack_chunk8(void *ctx, int64_t index, void *scratch)
{
    (void)scratch;
    const packing8 *c = ctx;
    int64_t begin = index * TILE_COLS, width = panel_width(c->n, begin), quads = ses_quads(c->k);
    int8_t *panel = c->panel + begin * 4 * quads;
    memset(panel, 0, (size_t)(width * 4 * quads));
    for (int64_t j = begin; j < begin + width; j++) {
        const float *b = c->b + j * c->b_col;
        float most = 0;
        int32_t sum = 0;
        for (int64_t p = 0; j < c->n && p < c->k; p++) most = fmaxf(most, fabsf(b[p * c->b_row]));
        float by = factor((row8){ most, most - most });
        for (int64_t p = 0; j < c->n && p < c->k; p++) {
            int32_t q = by > 0 ? (int32_t)rintf(b[p * c->b_row] * by) : 0;
            panel[(p / 4 * width + j - begin) * 4 + p % 4] = (int8_t)q;
            sum += q;
        }
        c->scale[j] = most / 127;
        c->excess[j] = 128 * sum;
    }
}

void VF_NAME(ses_k_gemm8_pack)(ses_exec *x, void *packed, const float *b, int64_t b_row, int64_t b_col,
                               int64_t n, int64_t k)
{
    head8 *h = packed;
    int64_t width = tile_round_up(n, VF_LANES);
    float *scale = (float *)(void *)(h + 1);
    int32_t *excess = (int32_t *)(void *)(scale + width);
    *h = (head8){ .dot = has_dot() };
    packing8 c = { scale, excess, (int8_t *)(excess + width), b, b_row, b_col, n, k };
    ses_parallel(x->pool, (n + TILE_COLS - 1) / TILE_COLS, pack_chunk8, &c);
}
