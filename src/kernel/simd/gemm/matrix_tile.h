/* A register tile by matrix instructions, which multiply two rows of A with two columns of B, eight bytes
 * each: int8 (smmla) or bf16 numbers (bfmmla). Include a vec_*.h that defines VI_MATRIX first.
 *
 * Panels are packed as for dot products, [steps][width] of 32-bit elements, and then zipped: element j of two
 * steps becomes eight bytes. An odd last step stays as it is. */
#ifndef SES_KERNEL_MATRIX_TILE_H
#define SES_KERNEL_MATRIX_TILE_H

#include "gemm_tile_table.h"

/* Zips the steps of a panel in place. */
static inline void zip_steps(void *panel, int64_t width, int64_t steps)
{
    enum { BYTES = 4 * VF_LANES };
    char *at = panel;
    for (; steps >= 2; steps -= 2, at += 8 * width) {
        vi first[TILE_VECS], second[TILE_VECS];
        for (int64_t v = 0; v < width / VF_LANES; v++) {
            first[v] = vi_load(at + v * BYTES);
            second[v] = vi_load(at + 4 * width + v * BYTES);
        }
        for (int64_t v = 0; v < width / VF_LANES; v++)
            vi_store_zipped(at + 2 * v * BYTES, first[v], second[v]);
    }
}

typedef vi matrix_fn(vi c, vr a, vi b);

/* c = A times `pairs` pairs of steps. Rows of A are a_row bytes apart. Two rows of c hold sums of two rows
 * in blocks of 2 x 2 until the end. ahead: prefetch distance in bytes of B, or 0; next: data to prefetch, two
 * cache lines per pair, or NULL. */
VF_INLINE void tile_matrix(vi c[TILE_ROWS][TILE_VECS], const void *a, int64_t a_row, const void *b,
                           const void *next, const int ahead, int64_t pairs, const int rows, const int vecs,
                           matrix_fn *multiply)
{
    enum { BYTES = 8 * VF_LANES, LINE = 64 };
    const int blocks = (rows + 1) / 2;
    const char *row = a, *column = b, *other = next;
    TILE_UNROLL for (int i = 0; i < 2 * blocks; i++)
    {
        TILE_UNROLL for (int v = 0; v < vecs; v++) c[i][v] = vi_set1(0);
    }
    for (; pairs > 0; pairs--, row += 8, column += vecs * BYTES) {
        vr x[TILE_ROWS / 2];
        TILE_UNROLL for (int i = 0; i < blocks; i++)
        {
            int second =
                2 * i + 1 < rows ? 2 * i + 1 : 2 * i; /* its sums are not used if it does not exist */
            x[i] = vr_load(row + 2 * i * a_row, row + second * a_row);
        }
        if (ahead) {
            TILE_UNROLL for (int at = 0; at < vecs * BYTES; at += LINE)
            {
                __builtin_prefetch(column + ahead + at, 0, 2);
            }
        } else if (other) {
            __builtin_prefetch(other, 0, 2), __builtin_prefetch(other + LINE, 0, 2), other += 2 * LINE;
        }
        TILE_UNROLL for (int v = 0; v < vecs; v++)
        {
            TILE_UNROLL for (int half = 0; half < 2; half++)
            {
                vi y = vi_load(column + v * BYTES + half * (BYTES / 2));
                TILE_UNROLL for (int i = 0; i < blocks; i++) c[2 * i + half][v] =
                    multiply(c[2 * i + half][v], x[i], y);
            }
        }
    }
    TILE_UNROLL for (int i = 0; i < blocks; i++)
    {
        TILE_UNROLL for (int v = 0; v < vecs; v++) vi_blocks_to_rows(&c[2 * i][v], &c[2 * i + 1][v]);
    }
}

#endif
