/* A tile of sums of products of 8-bit numbers, and how rows are rounded for it; include a vec8_*.h first.
 * B's multiples lie in panels of TILE_COLS columns, [quads][width][4]: a vector holds four consecutive
 * numbers of each of its columns. A's are bytes from 1 to 255, 128 too many; so 128 times the sum of a column
 * of B, its excess, is how far below zero the sum begins. Sums of whole numbers are exact in any order: every
 * way of a step gives the same bits. */
#ifndef SES_KERNEL_GEMM8_TILE_H
#define SES_KERNEL_GEMM8_TILE_H

#include "gemm_tile_table.h"
#include "vec_i8.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LINE8 = 64, AHEAD8 = 6 << 10 }; /* bytes */
enum { STEP_ROWS = 4 }; /* of a tile without the instruction, which needs registers for halves of B */

VF_INLINE vi four(const void *a)
{
    int32_t x;
    memcpy(&x, a, sizeof x);
    return vi_set1(x);
}

/* c[i][j] = sum over quads of a's four times b's four, less the excess; A's rows are a_row bytes apart. next:
 * what is read soon, a cache line for each quad, or NULL. stream: B is read once; more of it is what is read
 * soon. */
VF_INLINE void tile8_sum(vi c[TILE_ROWS][TILE_VECS], const uint8_t *a, int64_t a_row, const int8_t *b,
                         const int8_t *next, const int32_t *excess, int64_t quads, const int rows,
                         const int vecs, const bool dot, const bool stream)
{
    TILE_UNROLL for (int v = 0; v < vecs; v++)
    {
        vi start = vi_sub(vi_set1(0), vi_load(excess + v * VF_LANES));
        TILE_UNROLL for (int i = 0; i < rows; i++) c[i][v] = start;
    }
    for (; quads > 0; quads--, a += 4, b += vecs * VF_LANES * 4) {
        vi bv[TILE_VECS];
        TILE_UNROLL for (int v = 0; v < vecs; v++) bv[v] = vi_load(b + v * VF_LANES * 4);
        if (stream) {
            TILE_UNROLL for (int at = 0; at < vecs * VF_LANES * 4; at += LINE8)
            {
                __builtin_prefetch(b + AHEAD8 + at, 0, 2);
            }
        } else if (next) {
            __builtin_prefetch(next, 0, 2), next += LINE8;
        }
        if (dot) {
            TILE_UNROLL for (int i = 0; i < rows; i++)
            {
                vi x = four(a + i * a_row);
                TILE_UNROLL for (int v = 0; v < vecs; v++) c[i][v] = vi_dot4(c[i][v], x, bv[v]);
            }
        } else {
            vi odd[TILE_VECS];
            TILE_UNROLL for (int v = 0; v < vecs; v++) odd[v] = vi_odd_bytes(bv[v]),
                                                       bv[v] = vi_even_bytes(bv[v]);
            TILE_UNROLL for (int i = 0; i < rows; i++)
            {
                vi x = four(a + i * a_row), even = vi_and(x, vi_set1(0x00ff00ff)), rest = vi_shr16(x);
                TILE_UNROLL for (int v = 0; v < vecs; v++)
                {
                    vi both = vi_add(vi_dot2(even, bv[v]), vi_dot2(rest, odd[v]));
                    c[i][v] = vi_add(c[i][v], both);
                }
            }
        }
    }
}

/* 128 times the sum of each of a vector of columns, whose first quads are at b. */
VF_INLINE vi excess_of(const int8_t *b, int64_t width, int64_t quads)
{
    vi sum = vi_set1(0), ones = vi_set1(0x00010001);
    for (int64_t p = 0; p < quads; p++) {
        vi x = vi_load(b + 4 * p * width);
        sum = vi_add(sum, vi_add(vi_dot2(vi_even_bytes(x), ones), vi_dot2(vi_odd_bytes(x), ones)));
    }
    return vi_shl(sum, 7);
}

/* ---- rounding ---- */

/* The largest magnitude of a row, lane by lane, as bits: of magnitudes these are in the same order, and what
 * is not finite is above all. */
VF_INLINE vi most_bits(const float *a, int64_t n)
{
    vi most = vi_set1(0), other = most;
    int64_t i = 0;
    for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
        most = vi_max(most, vi_of_bits(vf_abs(vf_load(a + i))));
        other = vi_max(other, vi_of_bits(vf_abs(vf_load(a + i + VF_LANES))));
    }
    for (; i < n; i += VF_LANES) most = vi_max(most, vi_of_bits(vf_abs(vf_get(a + i, n - i))));
    return vi_max(most, other);
}

/* The largest magnitudes of n rows, at most VF_LANES, each in its lane; NaN where something is not finite. */
VF_INLINE vf most_of_rows(const float *a, int64_t row, int64_t n, int64_t cols)
{
    vf r[VF_LANES];
    for (int i = 0; i < VF_LANES; i++) r[i] = i < n ? vf_of_bits(most_bits(a + i * row, cols)) : vf_zero();
    vf_transpose(r);
    vi most = vi_of_bits(r[0]);
    for (int i = 1; i < VF_LANES; i++) most = vi_max(most, vi_of_bits(r[i]));
    return vf_add(vf_of_bits(most), vf_sub(vf_of_bits(most), vf_of_bits(most)));
}

/* The largest magnitude of one row. */
VF_INLINE float most_of(const float *a, int64_t n)
{
    vi most = most_bits(a, n);
    int32_t lane[VF_LANES], top = 0;
    vi_store(lane, most);
    for (int i = 0; i < VF_LANES; i++) top = lane[i] > top ? lane[i] : top;
    float x;
    memcpy(&x, &top, sizeof x);
    return x + (x - x);
}

/* What turns a row's numbers into multiples; what turns them back is most / 127. A row of numbers so small
 * that this would be infinite is zeros. */
static inline float factor(float most) { return most > 127 / FLT_MAX ? 127 / most : 0; }
VF_INLINE vf factors(vf most)
{
    return vf_select(vf_lt(vf_set1(127 / FLT_MAX), most), vf_div(vf_set1(127), most), vf_zero());
}

/* q = a's multiples, zeros from n to width. */
VF_INLINE void round_signed(int8_t *q, const float *a, int64_t n, int64_t width, float by)
{
    int64_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vi_store_signed(q + i, vi_from_vf(vf_mul(vf_load(a + i), vf_set1(by))));
    for (; i < width; i++) q[i] = (int8_t)(i < n && by > 0 ? (int)rintf(a[i] * by) : 0);
}

VF_INLINE vi round_vector(const float *a, float by) { return vi_from_vf(vf_mul(vf_load(a), vf_set1(by))); }

/* The same, 128 more. */
VF_INLINE void round_bytes(uint8_t *q, const float *a, int64_t n, int64_t width, float by)
{
    enum { V = VF_LANES };
    int64_t i = 0;
    for (; i + 4 * V <= n; i += 4 * V)
        vi_store_bytes4(q + i, round_vector(a + i, by), round_vector(a + i + V, by),
                        round_vector(a + i + 2 * V, by), round_vector(a + i + 3 * V, by));
    for (; i + VF_LANES <= n; i += VF_LANES) vi_store_bytes(q + i, round_vector(a + i, by));
    for (; i < width; i++) q[i] = (uint8_t)(128 + (i < n && by > 0 ? (int)rintf(a[i] * by) : 0));
}

#endif
