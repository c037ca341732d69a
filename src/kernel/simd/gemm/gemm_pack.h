/* Packing of matrices into the layouts that the register tile reads; see gemm_tile.h. */
#ifndef SES_KERNEL_GEMM_PACK_H
#define SES_KERNEL_GEMM_PACK_H

#include "gemm_tile.h"

#include <string.h>

/* Transposes n rows of x, at most VF_LANES: y[c * y_row + r] = x[r * x_row + c] for c < cols, 0 for n <= r <
 * VF_LANES. */
static inline void transpose_vector(float *y, int64_t y_row, const float *x, int64_t x_row, int64_t n,
                                    int64_t cols)
{
    int64_t c = 0;
    vf r[VF_LANES];
    for (; n == VF_LANES && c + VF_LANES <= cols; c += VF_LANES) {
        for (int i = 0; i < VF_LANES; i++) r[i] = vf_load(x + i * x_row + c);
        vf_transpose(r);
        for (int i = 0; i < VF_LANES; i++) vf_store(y + (c + i) * y_row, r[i]);
    }
    for (; c < cols; c += VF_LANES) {
        int64_t part = tile_min(VF_LANES, cols - c);
        for (int i = 0; i < VF_LANES; i++) r[i] = i < n ? vf_load_part(x + i * x_row + c, part) : vf_zero();
        vf_transpose(r);
        for (int i = 0; i < part; i++) vf_store(y + (c + i) * y_row, r[i]);
    }
}

/* y[p][j] = b[p * b_row + j * b_col] for p < k, j < n. Rows of y are whole vectors, zeros past n. */
static inline void pack_panel(float *y, const float *b, int64_t b_row, int64_t b_col, int64_t n, int64_t k)
{
    int64_t width = tile_round_up(n, VF_LANES), full = n / VF_LANES * VF_LANES;
    if (b_col == 1) {
        for (int64_t p = 0; p < k; p++) {
            int64_t j = 0;
            for (; j < full; j += VF_LANES) vf_store(y + p * width + j, vf_load(b + p * b_row + j));
            if (j < n) vf_store(y + p * width + j, vf_load_part(b + p * b_row + j, n - j));
        }
    } else if (b_row == 1) {
        for (int64_t j = 0; j < n; j += VF_LANES)
            transpose_vector(y + j, width, b + j * b_col, b_col, tile_min(VF_LANES, n - j), k);
    } else {
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < width; j++) y[p * width + j] = j < n ? b[p * b_row + j * b_col] : 0;
    }
}

/* Packs A in strips of TILE_ROWS rows: y[s][p][i] = A(TILE_ROWS s + i, p), zeros past m. */
static inline void pack_strips(float *y, const float *a, int64_t a_row, int64_t a_col, int64_t m, int64_t k)
{
    /* memory rows read together: with an even a_col each occupies one way of a cache set */
    enum { BLOCK = 8 };
    int64_t full = a_row == 1 ? m / TILE_ROWS * TILE_ROWS : 0;
    for (int64_t p0 = 0; p0 < k; p0 += BLOCK) {
        int64_t end = tile_min(k, p0 + BLOCK);
        for (int64_t i = 0; i < full; i += TILE_ROWS)
            for (int64_t p = p0; p < end; p++)
                memcpy(y + i * k + p * TILE_ROWS, a + i + p * a_col, TILE_ROWS * sizeof *y);
    }
    for (int64_t i = full; i < m; i += TILE_ROWS)
        for (int64_t p = 0; p < k; p++)
            for (int64_t r = 0; r < TILE_ROWS; r++)
                y[i * k + p * TILE_ROWS + r] = i + r < m ? a[(i + r) * a_row + p * a_col] : 0;
}

#endif
