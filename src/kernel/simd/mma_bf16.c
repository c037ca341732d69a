/* The register tile of mma_dot.h: one function per height and width. */
#include "mma_bf16.h"

#ifdef SES_KERNEL_MMA_DOT_H

#define TILE_FMA(x, b, c) vb_dot(c, vi_of_bits(x), vi_of_bits(b))
#include "gemm_tile_run.h"

#define TILE_DIRECT(name, form, rows, vecs)                                                                 \
    static void name##_##rows##x##vecs(float *t, int64_t ldt, const float *a, int64_t a_row, const void *b, \
                                       int64_t k)                                                           \
    {                                                                                                       \
        tile_run(t, ldt, a, a_row, 1, b, k, rows, vecs, form);                                              \
    }

TILE_ALL(dot, SES_F32)

tile_direct_fn *const mma_dot[TILE_ROWS][TILE_VECS] = TILE_TABLE(dot);

#else
typedef int no_register_tile; /* a translation unit must not be empty */
#endif
