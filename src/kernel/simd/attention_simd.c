/* The forward pass of attention over vectors, compiled once per SIMD level. */
#include "blocks_f32.h"

#include "attention_forward_simd.h"

void VF_NAME(ses_attention_chunk)(ses_attn *a, int64_t index, void *scratch)
{
    forward_chunk(a, index, scratch);
}

void VF_NAME(ses_k_attention)(ses_exec *x, const ses_attn *a) { attention_forward(x, a); }
