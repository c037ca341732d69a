/* Packing of matrices into the layouts of mma_bf16.h, rounded to bf16. */
#ifndef SES_KERNEL_BF16_PACK_H
#define SES_KERNEL_BF16_PACK_H

#include "mma_bf16.h"

/* VF_LANES floats, of which `left` exist; none if it is 0 or negative. */
VF_INLINE vf get_some(const float *p, int64_t left) { return left > 0 ? vf_get(p, left) : vf_zero(); }

VF_INLINE void transpose_pairs(vi r[VF_LANES])
{
    vf x[VF_LANES];
    for (int i = 0; i < VF_LANES; i++) x[i] = vf_of_bits(r[i]);
    vf_transpose(x);
    for (int i = 0; i < VF_LANES; i++) r[i] = vi_of_bits(x[i]);
}

/* VF_LANES elements of a row or column with any stride. */
static inline vf get_spread(const float *p, int64_t step, int64_t left)
{
    float x[VF_LANES];
    for (int64_t i = 0; i < VF_LANES; i++) x[i] = i < left ? p[i * step] : 0;
    return vf_load(x);
}

/* y[p / 2][j][p % 2] = b[p * b_row + j * b_col] for p < k, j < n. */
static inline void round_pairs(uint16_t *y, const float *b, int64_t b_row, int64_t b_col, int64_t n,
                               int64_t k)
{
    int64_t width = tile_round_up(n, MMA_LANES), depth = mma_depth(k);
    if (b_row == 1 && b_col != 1) {
        for (int64_t j = 0; j < width; j += VF_LANES)
            for (int64_t p = 0; p < depth; p += 2 * VF_LANES) {
                vi r[VF_LANES];
                for (int i = 0; i < VF_LANES; i++) {
                    const float *at = b + (j + i) * b_col + p;
                    int64_t left = j + i < n ? k - p : 0;
                    r[i] = vb_row(get_some(at, left), get_some(at + VF_LANES, left - VF_LANES));
                }
                transpose_pairs(r);
                for (int64_t i = 0; i < VF_LANES && p + 2 * i < depth; i++)
                    vi_store(y + (p + 2 * i) * width + 2 * j, r[i]);
            }
        return;
    }
    for (int64_t p = 0; p < depth; p += 2)
        for (int64_t j = 0; j < width; j += VF_LANES) {
            const float *at = b + p * b_row + j * b_col;
            int64_t even = p < k ? n - j : 0, odd = p + 1 < k ? n - j : 0;
            vi pairs = b_col == 1 ? vb_pairs(get_some(at, even), get_some(at + b_row, odd))
                                  : vb_pairs(get_spread(at, b_col, even), get_spread(at + b_row, b_col, odd));
            vi_store(y + p * width + 2 * j, pairs);
        }
}

/* Packs a panel of B. */
static inline void pack_pairs(uint16_t *y, const float *b, int64_t b_row, int64_t b_col, int64_t n, int64_t k)
{
    round_pairs(y, b, b_row, b_col, n, k);
    mma_arrange(y, tile_round_up(n, MMA_LANES), mma_depth(k));
}

/* Packs A(i, p) = a[i * a_row + p * a_col] for i < m, p < k, with zeros up to mma_depth(k). y has room for
 * whole blocks of rows, or m + 1 rows if that is less. */
static inline void pack_rows(uint16_t *y, const float *a, int64_t a_row, int64_t a_col, int64_t m, int64_t k)
{
    enum { STEP = 2 * VF_LANES };
    int64_t depth = mma_depth(k);
    if (a_row == 1 && a_col != 1) {
        for (int64_t p = 0; p < depth; p += STEP)
            for (int64_t i = 0; i < m; i += VF_LANES) {
                vi r[VF_LANES];
                for (int64_t q = 0; q < VF_LANES; q++) {
                    const float *at = a + i + (p + 2 * q) * a_col;
                    r[q] = vb_pairs(get_some(at, p + 2 * q < k ? m - i : 0),
                                    get_some(at + a_col, p + 2 * q + 1 < k ? m - i : 0));
                }
                transpose_pairs(r);
                for (int64_t q = 0; q < VF_LANES && i + q < m; q++)
                    vi_store(y + mma_a_index(i + q, p, depth), r[q]);
            }
        return;
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < depth; p += STEP) {
            const float *at = a + i * a_row + p * a_col;
            int64_t left = k - p;
            vi row = a_col == 1 ? vb_row(get_some(at, left), get_some(at + VF_LANES, left - VF_LANES))
                                : vb_row(get_spread(at, a_col, left),
                                         get_spread(at + VF_LANES * a_col, a_col, left - VF_LANES));
            vi_store(y + mma_a_index(i, p, depth), row);
        }
}

#endif
