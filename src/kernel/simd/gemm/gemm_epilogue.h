/* Epilogue of a register tile: stores it to row i, column j of C, accumulates, adds the bias, applies the
 * activation. */
#ifndef SES_KERNEL_GEMM_EPILOGUE_H
#define SES_KERNEL_GEMM_EPILOGUE_H

#include "gemm_tile.h"
#include "kernel/simd/vec/vecmath.h"

#ifndef EPILOGUE_COLS
#define EPILOGUE_COLS TILE_COLS /* columns of a row of the tile in memory */
#endif

/* Position of a pass over k: the first pass stores the tile, later ones add to C, and the last one applies
 * bias and activation. */
typedef struct tile_pass {
    bool first, last;
} tile_pass;

VF_INLINE void tile_store_act(const ses_gemm *g, tile_pass s, const float *tile, int64_t i, int64_t rows,
                              int64_t j, int64_t cols, const ses_act act, const bool approx_gelu)
{
    bool add = g->accumulate || !s.first, bias = s.last && g->bias, pre = s.last && g->pre_act;
    for (int64_t r = 0; r < rows; r++, tile += EPILOGUE_COLS) {
        int64_t at = (i + r) * g->ldc + j;
        for (int64_t v = 0; v < cols; v += VF_LANES) {
            vf x = vf_load(tile + v);
            if (add) x = vf_add(vf_get(g->c + at + v, cols - v), x);
            if (bias) x = vf_add(x, vf_get(g->bias + j + v, cols - v));
            if (pre) vf_put(g->pre_act + at + v, x, cols - v);
            vf_put(g->c + at + v, approx_gelu ? vf_gelu_approx(x) : vf_act(act, x), cols - v);
        }
    }
}

/* approx_gelu: use the GELU with an error of at most 2e-4. */
VF_INLINE void tile_store(const ses_gemm *g, tile_pass s, const float *tile, int64_t i, int64_t rows,
                          int64_t j, int64_t cols, const bool approx_gelu)
{
    switch (s.last ? g->act : SES_ACT_NONE) {
    case SES_ACT_GELU: tile_store_act(g, s, tile, i, rows, j, cols, SES_ACT_GELU, approx_gelu); break;
    case SES_ACT_GELU_TANH: tile_store_act(g, s, tile, i, rows, j, cols, SES_ACT_GELU_TANH, false); break;
    case SES_ACT_RELU: tile_store_act(g, s, tile, i, rows, j, cols, SES_ACT_RELU, false); break;
    case SES_ACT_SILU: tile_store_act(g, s, tile, i, rows, j, cols, SES_ACT_SILU, false); break;
    case SES_ACT_TANH: tile_store_act(g, s, tile, i, rows, j, cols, SES_ACT_TANH, false); break;
    case SES_ACT_SIGMOID: tile_store_act(g, s, tile, i, rows, j, cols, SES_ACT_SIGMOID, false); break;
    default: tile_store_act(g, s, tile, i, rows, j, cols, SES_ACT_NONE, false);
    }
}

#endif
