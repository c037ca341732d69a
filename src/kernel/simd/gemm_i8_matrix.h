/* Sums of the int8 register tile by matrix instructions: products of 2 x 8 bytes of A with 8 x 2 bytes of B. For
 * them a panel is packed in pairs of quads, [quads / 2][width][8]; an odd last quad stays as it is. Included by
 * gemm_i8_tile.h. */
#ifndef SES_KERNEL_GEMM_I8_MATRIX_H
#define SES_KERNEL_GEMM_I8_MATRIX_H

#ifdef VI_MATRIX

/* Packs a panel from the layout of gemm_i8_tile.h, in place. */
static inline void pack_quad_pairs(int8_t *panel, int64_t width, int64_t quads)
{
    enum { BYTES = 4 * VF_LANES };
    for (; quads >= 2; quads -= 2, panel += 8 * width) {
        vi first[TILE_VECS], second[TILE_VECS];
        for (int64_t v = 0; v < width / VF_LANES; v++) {
            first[v] = vi_load(panel + v * BYTES);
            second[v] = vi_load(panel + 4 * width + v * BYTES);
        }
        for (int64_t v = 0; v < width / VF_LANES; v++)
            vi_store_zipped(panel + 2 * v * BYTES, first[v], second[v]);
    }
}

/* c = A times `pairs` pairs of quads. Two rows of c hold the sums of two rows in blocks of 2 x 2 until the end.
 * next and stream: see tile_i8_sum. */
VF_INLINE void tile_i8_matrix(vi c[TILE_ROWS][TILE_VECS], const uint8_t *a, int64_t a_row, const int8_t *b,
                              const int8_t *next, int64_t pairs, const int rows, const int vecs,
                              const bool stream)
{
    enum { BYTES = 8 * VF_LANES };
    const int blocks = (rows + 1) / 2;
    TILE_UNROLL for (int i = 0; i < 2 * blocks; i++)
    {
        TILE_UNROLL for (int v = 0; v < vecs; v++) c[i][v] = vi_set1(0);
    }
    for (; pairs > 0; pairs--, a += 8, b += vecs * BYTES) {
        vr x[TILE_ROWS / 2];
        TILE_UNROLL for (int i = 0; i < blocks; i++)
        {
            int second =
                2 * i + 1 < rows ? 2 * i + 1 : 2 * i; /* its sums are not used if it does not exist */
            x[i] = vr_load(a + 2 * i * a_row, a + second * a_row);
        }
        if (stream) {
            TILE_UNROLL for (int at = 0; at < vecs * BYTES; at += LINE_BYTES)
            {
                __builtin_prefetch(b + AHEAD_BYTES + at, 0, 2);
            }
        } else if (next) {
            __builtin_prefetch(next, 0, 2), __builtin_prefetch(next + LINE_BYTES, 0, 2);
            next += 2 * LINE_BYTES;
        }
        TILE_UNROLL for (int v = 0; v < vecs; v++)
        {
            TILE_UNROLL for (int half = 0; half < 2; half++)
            {
                vi y = vi_load(b + v * BYTES + half * (BYTES / 2));
                TILE_UNROLL for (int i = 0; i < blocks; i++) c[2 * i + half][v] =
                    vi_matrix(c[2 * i + half][v], x[i], y);
            }
        }
    }
    TILE_UNROLL for (int i = 0; i < blocks; i++)
    {
        TILE_UNROLL for (int v = 0; v < vecs; v++) vi_blocks_to_rows(&c[2 * i][v], &c[2 * i + 1][v]);
    }
}

#else

/* No such instructions: has_vnni never asks for them. */
static inline void pack_quad_pairs(int8_t *panel, int64_t width, int64_t quads)
{
    (void)panel, (void)width, (void)quads;
}
VF_INLINE void tile_i8_matrix(vi c[TILE_ROWS][TILE_VECS], const uint8_t *a, int64_t a_row, const int8_t *b,
                              const int8_t *next, int64_t pairs, const int rows, const int vecs,
                              const bool stream)
{
    (void)c, (void)a, (void)a_row, (void)b, (void)next, (void)pairs, (void)rows, (void)vecs, (void)stream;
}

#endif

#endif
