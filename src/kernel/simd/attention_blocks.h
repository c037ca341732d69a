/* Packed matrices of attention over the blocks of blocks_f32.h or blocks_bf16.h, one of which is included
 * before. */
#ifndef SES_KERNEL_ATTENTION_BLOCKS_H
#define SES_KERNEL_ATTENTION_BLOCKS_H

/* Panels of a [rows][dim] matrix have equal width. */
static inline int64_t bk_dim_width(int64_t dim)
{
    int64_t vecs = (dim + BK_LANES - 1) / BK_LANES, most = BK_COLS / BK_LANES,
            panels = (vecs + most - 1) / most;
    return (vecs + panels - 1) / panels * BK_LANES;
}

/* Packs x' in panels over its n rows, y[dim][n]: for products with a matrix of dim columns. */
static inline void bk_pack_across(bk_num *y, const float *x, int64_t row, int64_t n, int64_t dim)
{
    for (int64_t j = 0; j < n; j += BK_COLS)
        bk_pack(y + j * bk_depth(dim), x + j * row, 1, row, n - j < BK_COLS ? n - j : BK_COLS, dim);
}

/* Packs x in panels over its columns, y[n][dim]. */
static inline void bk_pack_along(bk_num *y, const float *x, int64_t row, int64_t n, int64_t dim)
{
    int64_t width = bk_dim_width(dim);
    for (int64_t d = 0; d < dim; d += width)
        bk_pack(y + d * bk_depth(n), x + d, row, 1, dim - d < width ? dim - d : width, n);
}

/* Columns begin .. end-1 of y[rows][n] = rows i .. of a times x', with x' from bk_pack_across; begin is a
 * multiple of BK_COLS. */
static inline void bk_mul_across(bk_unit *u, float *y, int64_t ldy, bk_rows a, int64_t i, int64_t rows,
                                 const bk_num *packed, int64_t n, int64_t begin, int64_t end, int64_t dim)
{
    if (bk_mul_narrow(y, ldy, a, i, rows, packed, n, begin, end, dim)) return;
    for (int64_t j = begin; j < end; j += BK_COLS)
        bk_mul(u, y + j, ldy, a, i, rows, packed + j * bk_depth(dim), bk_width(n, j), dim);
}

/* Blocks of n rows. */
static inline int64_t bk_count(int64_t n) { return (n + BK_ROWS - 1) / BK_ROWS; }

#endif
