/* What becomes of a finished tile: it goes to row i and column j of C, is added to what stands there, gets
 * the bias and the activation. */
#ifndef SES_KERNEL_GEMM_PUT_H
#define SES_KERNEL_GEMM_PUT_H

#include "gemm_tile.h"
#include "vecmath.h"

/* Of the passes over k: the first one's tiles are written, others are added; with the last comes the rest. */
typedef struct tile_turn {
    bool first, last;
} tile_turn;

VF_INLINE void tile_put_act(const ses_gemm *g, tile_turn s, const float *tile, int64_t i, int64_t rows,
                            int64_t j, int64_t cols, const ses_act act, const bool rough)
{
    bool add = g->accumulate || !s.first, bias = s.last && g->bias, pre = s.last && g->pre_act;
    for (int64_t r = 0; r < rows; r++, tile += TILE_COLS) {
        int64_t at = (i + r) * g->ldc + j;
        for (int64_t v = 0; v < cols; v += VF_LANES) {
            vf x = vf_load(tile + v);
            if (add) x = vf_add(vf_get(g->c + at + v, cols - v), x);
            if (bias) x = vf_add(x, vf_get(g->bias + j + v, cols - v));
            if (pre) vf_put(g->pre_act + at + v, x, cols - v);
            vf_put(g->c + at + v, rough ? vf_gelu_rough(x) : vf_act(act, x), cols - v);
        }
    }
}

/* rough: gelu need not be exact. */
VF_INLINE void tile_put(const ses_gemm *g, tile_turn s, const float *tile, int64_t i, int64_t rows, int64_t j,
                        int64_t cols, const bool rough)
{
    switch (s.last ? g->act : SES_ACT_NONE) {
    case SES_ACT_GELU: tile_put_act(g, s, tile, i, rows, j, cols, SES_ACT_GELU, rough); break;
    case SES_ACT_GELU_TANH: tile_put_act(g, s, tile, i, rows, j, cols, SES_ACT_GELU_TANH, false); break;
    case SES_ACT_RELU: tile_put_act(g, s, tile, i, rows, j, cols, SES_ACT_RELU, false); break;
    case SES_ACT_SILU: tile_put_act(g, s, tile, i, rows, j, cols, SES_ACT_SILU, false); break;
    case SES_ACT_TANH: tile_put_act(g, s, tile, i, rows, j, cols, SES_ACT_TANH, false); break;
    case SES_ACT_SIGMOID: tile_put_act(g, s, tile, i, rows, j, cols, SES_ACT_SIGMOID, false); break;
    default: tile_put_act(g, s, tile, i, rows, j, cols, SES_ACT_NONE, false);
    }
}

#endif
