/* The register tile of gemm_tile.h: one function per height and width. */
#include "gemm_tile_table.h"

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
        TILE_UNROLL for (int v = 0; v < vecs; v++) c[i][v] = vf_fma_element(x, bv[v], c[i][v]);
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
