/* The loop over k of a register tile; see gemm_tile.h. TILE_FMA(x, b, c), c + x b per lane, may be defined
 * before: mma_bf16.c takes the floats for pairs of bf16 numbers. */
#ifndef SES_KERNEL_GEMM_TILE_RUN_H
#define SES_KERNEL_GEMM_TILE_RUN_H

#include "gemm_tile_table.h"

#ifndef TILE_FMA
#define TILE_FMA vf_fma_element
#endif

VF_INLINE vf tile_load(const char *b, const ses_dtype dtype)
{
    const void *at = b;
    return dtype == SES_F16 ? vf_load_f16(at) : dtype == SES_BF16 ? vf_load_bf16(at) : vf_load(at);
}

/* One step of k. Row i of A is at a[i / 3][i % 3 * a_row], so that three registers address all rows. */
VF_INLINE void tile_step(vf c[TILE_ROWS][TILE_VECS], const float *const a[3], int64_t a_row, const char *b,
                         const int rows, const int vecs, const ses_dtype dtype)
{
    const int size = dtype == SES_F32 ? 4 : 2;
    vf bv[TILE_VECS];
    TILE_UNROLL for (int v = 0; v < vecs; v++) bv[v] = tile_load(b + v * VF_LANES * size, dtype);
    TILE_UNROLL for (int i = 0; i < rows; i++)
    {
        ve x = ve_load(&a[i / 3][i % 3 * a_row]);
        TILE_UNROLL for (int v = 0; v < vecs; v++) c[i][v] = TILE_FMA(x, bv[v], c[i][v]);
    }
}

/* Prefetching of B. FAR: to the L2 cache, for a panel read from memory. NEAR: to the L1 cache, for a panel in
 * the L2 cache. NEXT: NEAR, and TILE_NEXT_LINES lines of the next panel to the L2 cache with every UNROLL
 * rows of this one. */
enum { UNROLL = 4, LINE = 64, FAR = 0, NEAR, NEXT };

VF_INLINE void tile_prefetch(const char *b, const char *next, const int rows, const int bytes,
                             const int prefetch)
{
    const int ahead = prefetch != FAR ? 3 << 10 : rows > 3 ? 9 << 10 : 6 << 10;
    TILE_UNROLL for (int at = 0; at < bytes; at += LINE)
    {
        if (prefetch == FAR)
            __builtin_prefetch(b + ahead + at, 0, 2);
        else
            __builtin_prefetch(b + ahead + at, 0, 3);
    }
    TILE_UNROLL for (int i = 0; prefetch == NEXT && i < TILE_NEXT_LINES; i++)
    {
        __builtin_prefetch(next + i * LINE, 0, 2);
    }
}

/* t[i][j] = sum_p a[i * a_row + p * a_col] b[p][j], for `rows` rows and `vecs` vectors of columns. */
VF_INLINE void tile_run(float *t, int64_t ldt, const float *a, int64_t a_row, int64_t a_col,
                        const void *panel, int64_t k, const void *next_panel, const int rows, const int vecs,
                        const ses_dtype dtype, const int prefetch)
{
    const int step = vecs * VF_LANES * (dtype == SES_F32 ? 4 : 2); /* bytes per row of the panel */
    const char *b = panel, *next = next_panel;
    vf c[TILE_ROWS][TILE_VECS];
    TILE_UNROLL for (int i = 0; i < rows; i++)
    {
        TILE_UNROLL for (int v = 0; v < vecs; v++) c[i][v] = vf_zero();
    }
    const float *r[3] = { a, rows > 3 ? a + 3 * a_row : a, rows > 6 ? a + 6 * a_row : a };
    for (; k >= UNROLL; k -= UNROLL) {
        TILE_UNROLL for (int u = 0; u < UNROLL; u++)
        {
            const float *at[3] = { r[0] + u * a_col, r[1] + u * a_col, r[2] + u * a_col };
            tile_step(c, at, a_row, b + u * step, rows, vecs, dtype);
        }
        tile_prefetch(b, next, rows, UNROLL * step, prefetch);
        if (prefetch == NEXT) next += TILE_NEXT_LINES * LINE;
        b += UNROLL * step;
        TILE_UNROLL for (int i = 0; i < 3; i++) r[i] += UNROLL * a_col;
    }
    for (; k > 0; k--) {
        tile_step(c, r, a_row, b, rows, vecs, dtype);
        b += step;
        TILE_UNROLL for (int i = 0; i < 3; i++) r[i] += a_col;
    }
    TILE_UNROLL for (int i = 0; i < rows; i++)
    {
        TILE_UNROLL for (int v = 0; v < vecs; v++) vf_store(t + i * ldt + v * VF_LANES, c[i][v]);
    }
}

#endif
