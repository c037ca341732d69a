/* The register tile of gemm_tile.h: one function per height and width. */
#include "gemm_tile_run.h"

#define TILE_DIRECT(name, dtype, rows, vecs)                                                                \
    static void name##_##rows##x##vecs(float *t, int64_t ldt, const float *a, int64_t a_row, const void *b, \
                                       int64_t k)                                                           \
    {                                                                                                       \
        tile_run(t, ldt, a, a_row, 1, b, k, rows, vecs, dtype);                                             \
    }
#define TILE_STRIP(vecs)                                                                             \
    static void tile_strip_x##vecs(float *t, int64_t ldt, const float *a, const float *b, int64_t k) \
    {                                                                                                \
        tile_run(t, ldt, a, 1, TILE_ROWS, b, k, TILE_ROWS, vecs, SES_F32);                           \
    }

TILE_ALL(tile, SES_F32)
TILE_ALL(tile_f16, SES_F16)
TILE_ALL(tile_bf16, SES_BF16)
TILE_STRIP(1)
TILE_STRIP(2)
#if TILE_VECS == 3
TILE_STRIP(3)
#endif

tile_direct_fn *const tile_direct[TILE_ROWS][TILE_VECS] = TILE_TABLE(tile);
tile_direct_fn *const tile_half[2][TILE_ROWS][TILE_VECS] = { TILE_TABLE(tile_f16), TILE_TABLE(tile_bf16) };
tile_strip_fn *const tile_strip[TILE_VECS] = {
    tile_strip_x1,
    tile_strip_x2,
#if TILE_VECS == 3
    tile_strip_x3,
#endif
};
