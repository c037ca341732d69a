/* Products with a B of at most NARROW rows and columns: summed in double, rounded once, see vec_loop.h. The
 * choice depends on B only, so that the bits of a row do not depend on the other rows. Include a vec_*.h
 * first. */
#ifndef SES_KERNEL_GEMM_NARROW_H
#define SES_KERNEL_GEMM_NARROW_H

#include "gemm_tile_table.h"

#include <string.h>

enum {
    NARROW_ROWS = VF_LANES == 16 ? 4 : 2, /* rows summed together: their sums fit into the registers */
    VD_LANES = VF_LANES / 2,
    NARROW_VECS = TILE_COLS / VD_LANES
};

typedef double vd __attribute__((vector_size(VD_LANES * 8)));
typedef float vd_floats __attribute__((vector_size(VD_LANES * 4)));

static inline bool is_narrow(const ses_gemm *g) { return g->n <= NARROW && g->k <= NARROW; }

VF_INLINE vd vd_load_floats(const float *p)
{
    vd_floats x;
    memcpy(&x, p, sizeof x);
    return __builtin_convertvector(x, vd);
}

VF_INLINE void vd_store_floats(float *p, vd v)
{
    vd_floats x = __builtin_convertvector(v, vd_floats);
    memcpy(p, &x, sizeof x);
}

/* c + a x. The product of two floats is exact in double: fused or not, the bits are the same. */
VF_INLINE vd vd_add_product(vd c, vd a, vd x)
{
#if VF_LANES == 16 && defined __AVX512F__
    return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)x, (__m512d)c);
#elif VF_LANES == 8 && defined __FMA__
    return (vd)_mm256_fmadd_pd((__m256d)a, (__m256d)x, (__m256d)c);
#else
    return c + a * x;
#endif
}

/* First value of the sums of row i: C if it accumulates, otherwise the bias. */
VF_INLINE void narrow_start(float *to, const ses_gemm *g, int64_t i, int64_t j, int64_t cols)
{
    const float *from = g->accumulate ? g->c + i * g->ldc + j : g->bias ? g->bias + j : NULL;
    memset(to, 0, TILE_COLS * sizeof *to);
    if (from) memcpy(to, from, (size_t)cols * sizeof *to);
}

/* t[rows][TILE_COLS] = start + rows i .. i+rows-1 of A times the panel of columns at j. A product of two
 * floats is exact in double. */
VF_INLINE void narrow_rows(float *t, const ses_gemm *g, const float *panel, int64_t i, int64_t j,
                           int64_t cols, const int rows, const int vecs)
{
    vd sum[NARROW_ROWS][NARROW_VECS], x[NARROW_VECS];
    TILE_UNROLL for (int r = 0; r < rows; r++)
    {
        narrow_start(t + r * TILE_COLS, g, i + r, j, cols);
        TILE_UNROLL for (int v = 0; v < vecs; v++) sum[r][v] =
            vd_load_floats(t + r * TILE_COLS + v * VD_LANES);
    }
    const float *a = g->a + i * g->a_row;
    for (int64_t p = 0; p < g->k; p++, panel += vecs * VD_LANES, a += g->a_col) {
        TILE_UNROLL for (int v = 0; v < vecs; v++) x[v] = vd_load_floats(panel + v * VD_LANES);
        TILE_UNROLL for (int r = 0; r < rows; r++)
        {
            vd by = (double)a[r * g->a_row] - (vd){ 0 };
            TILE_UNROLL for (int v = 0; v < vecs; v++) sum[r][v] = vd_add_product(sum[r][v], by, x[v]);
        }
    }
    TILE_UNROLL for (int r = 0; r < rows; r++)
    {
        TILE_UNROLL for (int v = 0; v < vecs; v++)
            vd_store_floats(t + r * TILE_COLS + v * VD_LANES, sum[r][v]);
    }
}

VF_INLINE void narrow_tile_of(float *t, const ses_gemm *g, const float *panel, int64_t i, int64_t rows,
                              int64_t j, int64_t cols, const int vecs)
{
    int64_t r = 0;
    for (; rows - r >= NARROW_ROWS; r += NARROW_ROWS)
        narrow_rows(t + r * TILE_COLS, g, panel, i + r, j, cols, NARROW_ROWS, vecs);
    for (; r < rows; r++) narrow_rows(t + r * TILE_COLS, g, panel, i + r, j, cols, 1, vecs);
}

/* As above for any number of rows; bias and C are included. */
static inline void narrow_tile(float *t, const ses_gemm *g, const float *panel, int64_t i, int64_t rows,
                               int64_t j)
{
    int64_t cols = tile_min(TILE_COLS, g->n - j);
    switch (panel_width(g->n, j) / VF_LANES) {
    case 1: narrow_tile_of(t, g, panel, i, rows, j, cols, 2); break;
    case 2: narrow_tile_of(t, g, panel, i, rows, j, cols, 4); break;
    default: narrow_tile_of(t, g, panel, i, rows, j, cols, NARROW_VECS);
    }
}

#endif
