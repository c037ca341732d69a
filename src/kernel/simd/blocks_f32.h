/* Blocks of rows as operands of products, for attention. attention_forward_simd.h and attention_grad_simd.h
 * are written over the names below; blocks_bf16.h defines them for operands rounded to bf16. A block product
 * has up to BK_ROWS rows; panels have up to BK_COLS columns, multiples of BK_LANES.
 *
 *     bk_rows      rows of a left operand; in products they begin at a multiple of BK_ROWS or with bk_next
 *     bk_depth(k)  rows of k that a panel has room for */
#ifndef SES_KERNEL_BLOCKS_F32_H
#define SES_KERNEL_BLOCKS_F32_H

#include "kernel/simd/gemm/tile_blocks.h"

enum {
    BK_ROWS = TILE_ROWS,
    BK_COLS = TILE_COLS,
    BK_LANES = VF_LANES,
    BK_IN_PLACE = 1, /* products may read rows in place */
    BK_ROOM = 32,    /* see bk_take, bk_transpose */
};

typedef float bk_num;
typedef struct bk_rows {
    const bk_num *data;
    int64_t row;
} bk_rows;
typedef struct bk_unit { /* what the products of a thread need */
    char unused;
} bk_unit;

static inline bk_unit bk_begin(void) { return (bk_unit){ 0 }; }
static inline void bk_end(bk_unit *u) { (void)u; }
static inline int64_t bk_depth(int64_t k) { return k; }
/* Rows of the next block if `left` blocks cover n rows. */
static inline int64_t bk_next(int64_t n, int64_t left) { return even_rows(n, left); }
static inline int64_t bk_width(int64_t n, int64_t j) { return panel_width(n, j); }

/* n rows of k floats of x as a left operand. buffer: [n][k + BK_ROOM] floats */
static inline bk_rows bk_take(bk_num *buffer, const float *x, int64_t row, int64_t n, int64_t k)
{
    (void)buffer, (void)n, (void)k;
    return (bk_rows){ x, row };
}

/* One panel of x: y[k][n], B(p, j) = x[p * x_row + j * x_col]. */
static inline void bk_pack(bk_num *y, const float *x, int64_t x_row, int64_t x_col, int64_t n, int64_t k)
{
    pack_panel(y, x, x_row, x_col, n, k);
}

/* t[rows][width] = rows i .. of a times a panel */
static inline void bk_mul(bk_unit *u, float *t, int64_t ldt, bk_rows a, int64_t i, int64_t rows,
                          const bk_num *panel, int64_t width, int64_t k)
{
    (void)u;
    tile_direct[rows - 1][width / VF_LANES - 1](t, ldt, a.data + i * a.row, a.row, panel, k);
}

/* Products over so few columns are summed in double, see gemm_narrow.h. */
static inline bool bk_is_narrow(int64_t dim) { return is_narrow_head(dim); }

/* bk_mul_across for narrow heads; false: this head is not narrow. */
static inline bool bk_mul_narrow(float *y, int64_t ldy, bk_rows a, int64_t i, int64_t rows,
                                 const bk_num *packed, int64_t n, int64_t begin, int64_t end, int64_t dim)
{
    ses_gemm g = { .n = n, .k = dim, .a = a.data + i * a.row, .a_row = a.row, .a_col = 1 };
    if (is_narrow_head(dim)) mul_across_narrow(y, ldy, &g, rows, packed, begin, end);
    return is_narrow_head(dim);
}

/* x' as a left operand of n rows and k columns, x [k][row]. y: [n][k + BK_ROOM] floats */
static inline void bk_transpose(bk_num *y, const float *x, int64_t row, int64_t n, int64_t k)
{
    pack_strips(y, x, 1, row, n, k);
}

/* t = rows i .. of the n rows from bk_transpose times a panel; i is a multiple of BK_ROWS. Writes BK_ROWS
 * rows. */
static inline void bk_mul_transposed(bk_unit *u, float *t, int64_t ldt, const bk_num *transposed, int64_t i,
                                     int64_t n, const bk_num *panel, int64_t width, int64_t k)
{
    (void)u, (void)n;
    tile_strip[width / VF_LANES - 1](t, ldt, transposed + i * k, panel, k);
}

#endif
