/* The backward pass of attention over vectors, compiled once per SIMD level. */
#include "blocks_f32.h"

#include "attention_grad_simd.h"

void VF_NAME(ses_k_attention_bwd)(ses_exec *x, const ses_attn *a, const ses_attn_grad *g)
{
    attention_backward(x, a, g);
}
