/* The register tile of gemm_tile.h: one function per height and width. */
#include "gemm_tile_run.h"

#define TILE_DIRECT(name, dtype, rows, vecs)                                                                \
    static void name##_##rows##x##vecs(float *t, int64_t ldt, const float *a, int64_t a_row, const void *b, \
                                       int64_t k)                                                           \
    {                                                                                                       \
        tile_run(t, ldt, a, a_row, 1, b, k, NULL, rows, vecs, dtype, FAR);                                  \
    }
#define TILE_STRIP(name, vecs, prefetch)                                                         \
    static void name##_x##vecs(float *t, int64_t ldt, const float *a, const float *b, int64_t k) \
    {                                                                                            \
        tile_run(t, ldt, a, 1, TILE_ROWS, b, k, NULL, TILE_ROWS, vecs, SES_F32, prefetch);       \
    }

TILE_ALL(tile, SES_F32)
TILE_ALL(tile_f16, SES_F16)
TILE_ALL(tile_bf16, SES_BF16)
TILE_STRIP(strip, 1, FAR)
TILE_STRIP(strip, 2, FAR)
#if TILE_VECS == 3
TILE_STRIP(strip, 3, FAR)
#endif

tile_direct_fn *const tile_direct[TILE_ROWS][TILE_VECS] = TILE_TABLE(tile);
tile_direct_fn *const tile_half[2][TILE_ROWS][TILE_VECS] = { TILE_TABLE(tile_f16), TILE_TABLE(tile_bf16) };
tile_strip_fn *const tile_strip[TILE_VECS] = {
    strip_x1,
    strip_x2,
#if TILE_VECS == 3
    strip_x3,
#endif
};

#if TILE_HAS_NEXT
TILE_STRIP(near_strip, 1, NEAR)
TILE_STRIP(near_strip, 2, NEAR)
TILE_STRIP(near_strip, 3, NEAR)
tile_strip_fn *const tile_near_strip[TILE_VECS] = { near_strip_x1, near_strip_x2, near_strip_x3 };

#undef TILE_DIRECT
#define TILE_DIRECT(name, dtype, rows, vecs)                                                                \
    static void name##_##rows##x##vecs(float *t, int64_t ldt, const float *a, int64_t a_row, const void *b, \
                                       int64_t k, const void *next)                                         \
    {                                                                                                       \
        tile_run(t, ldt, a, a_row, 1, b, k, next, rows, vecs, dtype, NEXT);                                 \
    }
TILE_ALL(tile_next, SES_F32)
tile_next_fn *const tile_next[TILE_ROWS][TILE_VECS] = TILE_TABLE(tile_next);
#endif
