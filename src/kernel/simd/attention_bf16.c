/* Attention with operands rounded to bf16: scores, outputs and the five products of the backward pass.
 * Exponentials, sums and masks are f32. The vector level computes it if ses_exec.bf16 is not set. */
#include "blocks_bf16.h"

#include "attention_forward_simd.h"

#include "attention_grad_simd.h"

void VF_NAME(ses_k_attention)(ses_exec *x, const ses_attn *a)
{
    if (x->bf16)
        attention_forward(x, a);
    else
        VF_BASE(ses_k_attention)(x, a);
}

void VF_NAME(ses_k_attention_bwd)(ses_exec *x, const ses_attn *a, const ses_attn_grad *g)
{
    if (x->bf16)
        attention_backward(x, a, g);
    else
        VF_BASE(ses_k_attention_bwd)(x, a, g);
}
