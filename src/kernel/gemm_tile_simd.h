/* The tile's code, for gemm_tile_avx2.c and gemm_tile_avx512.c: one function for each height and width. */
#include "gemm_tile.h"

#define TILE_PRAGMA(text) _Pragma(#text)
#define TILE_UNROLL TILE_PRAGMA(GCC unroll 16)

/* c += x b. An instruction and not vf_fma, because compilers then choose a form that overwrites x and
 * shuffle the accumulators through memory. */
VF_INLINE vf tile_fma(vf x, vf b, vf c)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(x), "v"(b));
    return c;
}

/* One step of k: row i of A is at a[i / 3][i % 3 * a_row], so that few registers address all rows. */
VF_INLINE void tile_step(vf c[TILE_ROWS][TILE_VECS], const float *const a[3], int64_t a_row, const float *b,
                         const int rows, const int vecs)
{
    vf bv[TILE_VECS];
    TILE_UNROLL for (int v = 0; v < vecs; v++) bv[v] = vf_load(b + v * VF_LANES);
    TILE_UNROLL for (int i = 0; i < rows; i++)
    {
        vf x = vf_set1(a[i / 3][i % 3 * a_row]);
        TILE_UNROLL for (int v = 0; v < vecs; v++) c[i][v] = tile_fma(x, bv[v], c[i][v]);
    }
}

/* t[i][j] = sum over p of a[i * a_row + p * a_col] b[p][j], for `rows` rows and `vecs` vectors of columns. */
VF_INLINE void tile_run(float *t, int64_t ldt, const float *a, int64_t a_row, int64_t a_col, const float *b,
                        int64_t k, const int rows, const int vecs)
{
    enum { UNROLL = 4 };
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
            tile_step(c, at, a_row, b + u * vecs * VF_LANES, rows, vecs);
        }
        b += UNROLL * vecs * VF_LANES;
        TILE_UNROLL for (int i = 0; i < 3; i++) r[i] += UNROLL * a_col;
    }
    for (; k > 0; k--) {
        tile_step(c, r, a_row, b, rows, vecs);
        b += vecs * VF_LANES;
        TILE_UNROLL for (int i = 0; i < 3; i++) r[i] += a_col;
    }
    TILE_UNROLL for (int i = 0; i < rows; i++)
    {
        TILE_UNROLL for (int v = 0; v < vecs; v++) vf_store(t + i * ldt + v * VF_LANES, c[i][v]);
    }
}

#define TILE_DIRECT(rows, vecs)                                                                            \
    static void tile_##rows##x##vecs(float *t, int64_t ldt, const float *a, int64_t a_row, const float *b, \
                                     int64_t k)                                                            \
    {                                                                                                      \
        tile_run(t, ldt, a, a_row, 1, b, k, rows, vecs);                                                   \
    }
#define TILE_STRIP(vecs)                                                                             \
    static void tile_strip_x##vecs(float *t, int64_t ldt, const float *a, const float *b, int64_t k) \
    {                                                                                                \
        tile_run(t, ldt, a, 1, TILE_ROWS, b, k, TILE_ROWS, vecs);                                    \
    }

#if TILE_VECS == 2
#define TILE_EACH(rows) TILE_DIRECT(rows, 1) TILE_DIRECT(rows, 2)
#define TILE_NAMES(rows)                 \
    {                                    \
        tile_##rows##x1, tile_##rows##x2 \
    }
#else
#define TILE_EACH(rows) TILE_DIRECT(rows, 1) TILE_DIRECT(rows, 2) TILE_DIRECT(rows, 3)
#define TILE_NAMES(rows)                                  \
    {                                                     \
        tile_##rows##x1, tile_##rows##x2, tile_##rows##x3 \
    }
#endif

TILE_EACH(1)
TILE_EACH(2)
TILE_EACH(3)
TILE_EACH(4)
TILE_EACH(5)
TILE_EACH(6)
TILE_STRIP(1)
TILE_STRIP(2)
#if TILE_VECS == 3
TILE_STRIP(3)
#endif
#if TILE_ROWS == 8
TILE_EACH(7)
TILE_EACH(8)
#endif

tile_direct_fn *const tile_direct[TILE_ROWS][TILE_VECS] = {
    TILE_NAMES(1), TILE_NAMES(2), TILE_NAMES(3), TILE_NAMES(4), TILE_NAMES(5), TILE_NAMES(6),
#if TILE_ROWS == 8
    TILE_NAMES(7), TILE_NAMES(8),
#endif
};
tile_strip_fn *const tile_strip[TILE_VECS] = {
    tile_strip_x1,
    tile_strip_x2,
#if TILE_VECS == 3
    tile_strip_x3,
#endif
};
