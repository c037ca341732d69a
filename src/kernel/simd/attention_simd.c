/* Attention over vectors, compiled once per SIMD level. The forward pass, the int8 forward pass and the
 * backward pass share static helpers, so they form one translation unit. */
#include "attention_forward_simd.h"

#include "attention_i8_simd.h"

#include "attention_grad_simd.h"
