/* Register tile of an int8 product, and quantization of rows for it.
 *
 * B is packed in panels of TILE_COLS columns, [quads][width][4]: a vector holds four consecutive rows of each
 * of its columns. A is stored as bytes q + SES_I8_ZERO. Each sum therefore starts at minus the zero-point
 * correction of its column, the zero point times the column's sum. Integer sums are exact in any order, so
 * all instruction sequences give the same bits. */
#ifndef SES_KERNEL_GEMM_I8_TILE_H
#define SES_KERNEL_GEMM_I8_TILE_H

#include "gemm_tile_table.h"
#include "kernel/simd/vec/vec_i8.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LINE_BYTES = 64, AHEAD_BYTES = 6 << 10 }; /* bytes */
enum { PLAIN_ROWS = 4 };                         /* tile height of PLAIN, which needs more registers for B */

/* Instructions for the sums, see dot_kind. */
enum { PLAIN = 0, DOT = 1, MATRIX = 2 };

#ifdef VI_MATRIX
#include "matrix_tile.h"
#endif

/* c[i][j] = sum_p A(i, p) B(p, j). Rows of A are a_row bytes apart. next: data to prefetch, one cache line
 * per quad, or NULL. stream: B is read only once, so prefetch more of B instead. */
VF_INLINE void tile_i8_sum(vi c[TILE_ROWS][TILE_VECS], const uint8_t *a, int64_t a_row, const int8_t *b,
                           const int8_t *next, const int32_t *zp_correction, int64_t quads, const int rows,
                           const int vecs, const int dot, const bool stream)
{
#ifdef VI_MATRIX
    if (dot == MATRIX) {
        tile_matrix(c, a, a_row, b, next, stream ? AHEAD_BYTES : 0, quads / 2, rows, vecs, vi_matrix);
        a += quads / 2 * 8, b += quads / 2 * 8 * vecs * VF_LANES, quads %= 2;
    }
#endif
    TILE_UNROLL for (int v = 0; v < vecs; v++)
    {
        vi start = vi_sub(vi_set1(0), vi_load(zp_correction + v * VF_LANES));
        TILE_UNROLL for (int i = 0; i < rows; i++) c[i][v] = dot == MATRIX ? vi_add(c[i][v], start) : start;
    }
    for (; quads > 0; quads--, a += 4, b += vecs * VF_LANES * 4) {
        vi bv[TILE_VECS];
        TILE_UNROLL for (int v = 0; v < vecs; v++) bv[v] = vi_load(b + v * VF_LANES * 4);
        if (stream) {
            TILE_UNROLL for (int at = 0; at < vecs * VF_LANES * 4; at += LINE_BYTES)
            {
                __builtin_prefetch(b + AHEAD_BYTES + at, 0, 2);
            }
        } else if (next) {
            __builtin_prefetch(next, 0, 2), next += LINE_BYTES;
        }
        if (dot) {
            TILE_UNROLL for (int i = 0; i < rows; i++)
            {
                vq x = vq_load(a + i * a_row);
                TILE_UNROLL for (int v = 0; v < vecs; v++) c[i][v] = vi_dot4(c[i][v], x, bv[v]);
            }
        } else {
            vi_bytes split[TILE_VECS];
            TILE_UNROLL for (int v = 0; v < vecs; v++) split[v] = vi_split_bytes(bv[v]);
            TILE_UNROLL for (int i = 0; i < rows; i++)
            {
                vq x = vq_load(a + i * a_row);
                TILE_UNROLL for (int v = 0; v < vecs; v++) c[i][v] = vi_dot4_plain(c[i][v], x, split[v]);
            }
        }
    }
}

/* Packs a panel for MATRIX. */
static inline void zip_panel(int8_t *panel, int64_t width, int64_t quads)
{
#ifdef VI_MATRIX
    zip_steps(panel, width, quads);
#else
    (void)panel, (void)width, (void)quads; /* dot_kind never asks for it */
#endif
}

/* Zero-point corrections of VF_LANES columns whose first quads are at b: the zero point times each column's
 * sum. */
VF_INLINE vi zp_correction_of(const int8_t *b, int64_t width, int64_t quads)
{
    vi sum = vi_set1(0);
    vq ones = vq_load(&(int32_t){ 0x01010101 });
    if (SES_I8_ZERO == 0) return sum;
    for (int64_t p = 0; p < quads; p++)
        sum = vi_dot4_plain(sum, ones, vi_split_bytes(vi_load(b + 4 * p * width)));
    return vi_shl(sum, 7); /* times 128 */
}

/* ---- quantizing ---- */

/* Largest magnitude of a row per lane, as integer bits: magnitudes compare like their bits, and NaN and
 * infinity are above all finite numbers. */
VF_INLINE vi max_abs_bits(const float *a, int64_t n)
{
    vi max = vi_set1(0), other = max;
    int64_t i = 0;
    for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
        max = vi_max(max, vi_of_bits(vf_abs(vf_load(a + i))));
        other = vi_max(other, vi_of_bits(vf_abs(vf_load(a + i + VF_LANES))));
    }
    for (; i < n; i += VF_LANES) max = vi_max(max, vi_of_bits(vf_abs(vf_get(a + i, n - i))));
    return vi_max(max, other);
}

/* Largest magnitudes of n rows, at most VF_LANES, one per lane; NaN if a number of the row is not finite. */
VF_INLINE vf max_abs_rows(const float *a, int64_t row, int64_t n, int64_t cols)
{
    vf r[VF_LANES];
    for (int i = 0; i < VF_LANES; i++) r[i] = i < n ? vf_of_bits(max_abs_bits(a + i * row, cols)) : vf_zero();
    vf_transpose(r);
    vi max = vi_of_bits(r[0]);
    for (int i = 1; i < VF_LANES; i++) max = vi_max(max, vi_of_bits(r[i]));
    return vf_add(vf_of_bits(max), vf_sub(vf_of_bits(max), vf_of_bits(max)));
}

/* Largest magnitude of one row; NaN if a number is not finite. */
VF_INLINE float max_abs_of(const float *a, int64_t n)
{
    vi max = max_abs_bits(a, n);
    int32_t lane[VF_LANES], top = 0;
    vi_store(lane, max);
    for (int i = 0; i < VF_LANES; i++) top = lane[i] > top ? lane[i] : top;
    float x;
    memcpy(&x, &top, sizeof x);
    return x + (x - x);
}

/* Factor from floats to int8; the inverse is max_abs / 127. 0 if the factor would overflow: the row becomes
 * zeros. */
static inline float quant_factor(float max) { return max > 127 / FLT_MAX ? 127 / max : 0; }
VF_INLINE vf quant_factors(vf max)
{
    return vf_select(vf_lt(vf_set1(127 / FLT_MAX), max), vf_div(vf_set1(127), max), vf_zero());
}

/* q = int8 of a, zeros from n to width. */
VF_INLINE void quantize_signed(int8_t *q, const float *a, int64_t n, int64_t width, float by)
{
    int64_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vi_store_signed(q + i, vi_from_vf(vf_mul(vf_load(a + i), vf_set1(by))));
    for (; i < width; i++) q[i] = (int8_t)(i < n && by > 0 ? (int)rintf(a[i] * by) : 0);
}

VF_INLINE vi quantize_vector(const float *a, float by) { return vi_from_vf(vf_mul(vf_load(a), vf_set1(by))); }

/* q = int8 of a, plus the zero point. */
VF_INLINE void quantize_bytes(uint8_t *q, const float *a, int64_t n, int64_t width, float by)
{
    enum { V = VF_LANES };
    int64_t i = 0;
    for (; i + 4 * V <= n; i += 4 * V)
        vi_store_bytes4(q + i, quantize_vector(a + i, by), quantize_vector(a + i + V, by),
                        quantize_vector(a + i + 2 * V, by), quantize_vector(a + i + 3 * V, by));
    for (; i + VF_LANES <= n; i += VF_LANES) vi_store_bytes(q + i, quantize_vector(a + i, by));
    for (; i < width; i++) q[i] = (uint8_t)(SES_I8_ZERO + (i < n && by > 0 ? (int)rintf(a[i] * by) : 0));
}

#endif
