/* Blocks of rows packed for the tile of gemm_tile.h and products with them, for attention and relative
 * scores. */
#ifndef SES_KERNEL_TILE_BLOCKS_H
#define SES_KERNEL_TILE_BLOCKS_H

#include "gemm_narrow.h"
#include "gemm_pack.h"

/* Panels of a [rows][dim] matrix have equal width. */
static inline int64_t dim_panel_width(int64_t dim)
{
    int64_t vecs = (dim + VF_LANES - 1) / VF_LANES, panels = (vecs + TILE_VECS - 1) / TILE_VECS;
    return (vecs + panels - 1) / panels * VF_LANES;
}

/* Packs x' in panels over its n rows, y[dim][n]: for products with a matrix of dim columns. */
static inline void pack_across(float *y, const float *x, int64_t row, int64_t n, int64_t dim)
{
    for (int64_t j = 0; j < n; j += TILE_COLS)
        pack_panel(y + j * dim, x + j * row, 1, row, tile_min(TILE_COLS, n - j), dim);
}

/* Packs x in panels over its columns, y[n][dim]. */
static inline void pack_along(float *y, const float *x, int64_t row, int64_t n, int64_t dim)
{
    int64_t width = dim_panel_width(dim);
    for (int64_t d = 0; d < dim; d += width)
        pack_panel(y + d * n, x + d, row, 1, tile_min(width, dim - d), n);
}

/* Products over so few columns are summed in double, for the reason given in gemm_narrow.h. */
enum { NARROW_HEAD = 16 };
static inline bool is_narrow_head(int64_t dim) { return dim <= NARROW_HEAD; }

static inline void mul_across_narrow(float *y, int64_t ldy, const ses_gemm *g, int64_t rows,
                                     const float *packed, int64_t begin, int64_t end)
{
    float tile[TILE_ROWS * TILE_COLS];
    for (int64_t j = begin; j < end; j += TILE_COLS) {
        narrow_tile(tile, g, packed + j * g->k, 0, rows, j);
        size_t size = (size_t)panel_width(g->n, j) * sizeof *y;
        for (int64_t r = 0; r < rows; r++) memcpy(y + r * ldy + j, tile + r * TILE_COLS, size);
    }
}

/* Columns begin .. end-1 of y[rows][n] = a[rows][dim] x', with x' packed by pack_across; begin is a multiple
 * of TILE_COLS. */
static inline void mul_across(float *y, int64_t ldy, const float *a, int64_t a_row, int64_t rows,
                              const float *packed, int64_t n, int64_t begin, int64_t end, int64_t dim)
{
    if (is_narrow_head(dim)) {
        ses_gemm g = { .n = n, .k = dim, .a = a, .a_row = a_row, .a_col = 1 };
        mul_across_narrow(y, ldy, &g, rows, packed, begin, end);
        return;
    }
    for (int64_t j = begin; j < end; j += TILE_COLS)
        tile_direct[rows - 1][panel_width(n, j) / VF_LANES - 1](y + j, ldy, a, a_row, packed + j * dim, dim);
}

/* Rows of the next tile if `tiles` tiles share n rows evenly. */
static inline int64_t even_rows(int64_t n, int64_t tiles) { return (n + tiles - 1) / tiles; }
static inline int64_t tile_count(int64_t n) { return (n + TILE_ROWS - 1) / TILE_ROWS; }

#endif
