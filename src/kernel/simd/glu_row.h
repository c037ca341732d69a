/* One row of a gated linear unit: y = act(a) b for ab = a | b. Include a vec_*.h first. */
#ifndef SES_KERNEL_GLU_ROW_H
#define SES_KERNEL_GLU_ROW_H

#include "kernel/simd/vec/vec_loop.h"
#include "kernel/simd/vec/vecmath.h"

VF_INLINE void glu_row_act(float *y, const float *ab, int64_t cols, const ses_act act)
{
    for (int64_t j = 0; j < cols; j += VF_LANES) {
        int64_t left = cols - j;
        vf a = vf_get(ab + j, left), b = vf_get(ab + cols + j, left);
        vf_put(y + j, vf_mul(vf_act(act, a), b), left);
    }
}

/* y may be ab. */
static void glu_row(float *y, const float *ab, int64_t cols, ses_act act)
{
    switch (act) {
    case SES_ACT_GELU: glu_row_act(y, ab, cols, SES_ACT_GELU); break;
    case SES_ACT_GELU_TANH: glu_row_act(y, ab, cols, SES_ACT_GELU_TANH); break;
    case SES_ACT_RELU: glu_row_act(y, ab, cols, SES_ACT_RELU); break;
    case SES_ACT_SILU: glu_row_act(y, ab, cols, SES_ACT_SILU); break;
    case SES_ACT_TANH: glu_row_act(y, ab, cols, SES_ACT_TANH); break;
    case SES_ACT_SIGMOID: glu_row_act(y, ab, cols, SES_ACT_SIGMOID); break;
    default: glu_row_act(y, ab, cols, SES_ACT_NONE); break;
    }
}

#endif
