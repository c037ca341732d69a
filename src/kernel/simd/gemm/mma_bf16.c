/* The register tile of mma_dot.h or mma_matrix.h: one function per height and width. */
#include "mma_bf16.h"

#ifdef SES_KERNEL_MMA_DOT_H

#define TILE_FMA(x, b, c) vb_dot(c, vi_of_bits(x), vi_of_bits(b))
#include "gemm_tile_run.h"

#define TILE_DIRECT(name, form, rows, vecs)                                                                 \
    static void name##_##rows##x##vecs(float *t, int64_t ldt, const float *a, int64_t a_row, const void *b, \
                                       int64_t k)                                                           \
    {                                                                                                       \
        tile_run(t, ldt, a, a_row, 1, b, k, NULL, rows, vecs, form, FAR);                                   \
    }

TILE_ALL(dot, SES_F32)

tile_direct_fn *const mma_dot[TILE_ROWS][TILE_VECS] = TILE_TABLE(dot);

#elif defined SES_KERNEL_MMA_MATRIX_H

VF_INLINE void run(float *t, int64_t ldt, const float *a, int64_t a_row, const void *b, int64_t k,
                   const int rows, const int vecs)
{
    enum { AHEAD = 6 << 10 };
    vi c[TILE_ROWS][TILE_VECS];
    tile_matrix(c, a, a_row * (int64_t)sizeof *a, b, NULL, AHEAD, k, rows, vecs, vb_matrix);
    TILE_UNROLL for (int i = 0; i < rows; i++)
    {
        TILE_UNROLL for (int v = 0; v < vecs; v++) vf_store(t + i * ldt + v * VF_LANES, vf_of_bits(c[i][v]));
    }
}

#define TILE_DIRECT(name, form, rows, vecs)                                                                 \
    static void name##_##rows##x##vecs(float *t, int64_t ldt, const float *a, int64_t a_row, const void *b, \
                                       int64_t k)                                                           \
    {                                                                                                       \
        run(t, ldt, a, a_row, b, k, rows, vecs);                                                            \
    }

TILE_ALL(matrix, SES_BF16)

tile_direct_fn *const mma_tile[TILE_ROWS][TILE_VECS] = TILE_TABLE(matrix);

#else
typedef int no_register_tile; /* a translation unit must not be empty */
#endif
