/* Attention over vectors, compiled once per SIMD level. The forward pass, the int8 forward pass and the
 * backward pass share static helpers, so they form one translation unit. */
#include "blocks_f32.h"

#include "attention_forward_simd.h"

#include "attention_i8_simd.h"

#include "attention_grad_simd.h"

void VF_NAME(ses_k_attention)(ses_exec *x, const ses_attn *a) { attention_forward(x, a); }

void VF_NAME(ses_k_attention_bwd)(ses_exec *x, const ses_attn *a, const ses_attn_grad *g)
{
    attention_backward(x, a, g);
}
