/* The operands of blocks_f32.h rounded to bf16, on the blocks of mma_bf16.h. */
#ifndef SES_KERNEL_BLOCKS_BF16_H
#define SES_KERNEL_BLOCKS_BF16_H

#include "kernel/simd/gemm/bf16_pack.h"
#include "kernel/simd/gemm/gemm_pack.h"

enum { BK_ROWS = MMA_ROWS, BK_COLS = MMA_COLS, BK_LANES = MMA_LANES, BK_IN_PLACE = 0, BK_ROOM = 32 };

typedef uint16_t bk_num;
typedef struct bk_rows {
    const bk_num *data;
    int64_t row; /* depth */
} bk_rows;
typedef mma bk_unit;

static inline bk_unit bk_begin(void) { return mma_begin(); }
static inline void bk_end(bk_unit *u) { mma_end(u); }
static inline int64_t bk_depth(int64_t k) { return mma_depth(k); }
static inline int64_t bk_next(int64_t n, int64_t left)
{
    (void)left;
    return tile_min(MMA_ROWS, n);
}
static inline int64_t bk_width(int64_t n, int64_t j) { return mma_width(n, j); }

static inline bk_rows bk_take(bk_num *buffer, const float *x, int64_t row, int64_t n, int64_t k)
{
    pack_rows(buffer, x, row, 1, n, k);
    return (bk_rows){ buffer, mma_depth(k) };
}

static inline void bk_pack(bk_num *y, const float *x, int64_t x_row, int64_t x_col, int64_t n, int64_t k)
{
    pack_pairs(y, x, x_row, x_col, n, k);
}

static inline void bk_mul(bk_unit *u, float *t, int64_t ldt, bk_rows a, int64_t i, int64_t rows,
                          const bk_num *panel, int64_t width, int64_t k)
{
    mma_block(u, t, ldt, a.data + mma_a_index(i, 0, a.row), panel, width, mma_depth(k), rows);
}

static inline bool bk_is_narrow(int64_t dim)
{
    (void)dim;
    return false;
}

static inline bool bk_mul_narrow(float *y, int64_t ldy, bk_rows a, int64_t i, int64_t rows,
                                 const bk_num *packed, int64_t n, int64_t begin, int64_t end, int64_t dim)
{
    (void)y, (void)ldy, (void)a, (void)i, (void)rows, (void)packed, (void)n, (void)begin, (void)end,
        (void)dim;
    return false;
}

static inline void bk_transpose(bk_num *y, const float *x, int64_t row, int64_t n, int64_t k)
{
    pack_rows(y, x, 1, row, n, k);
}

static inline void bk_mul_transposed(bk_unit *u, float *t, int64_t ldt, const bk_num *transposed, int64_t i,
                                     int64_t n, const bk_num *panel, int64_t width, int64_t k)
{
    bk_rows a = { transposed, mma_depth(k) };
    bk_mul(u, t, ldt, a, i, tile_min(MMA_ROWS, n - i), panel, width, k);
}

#endif
