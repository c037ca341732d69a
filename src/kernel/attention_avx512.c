#include "vec8_avx512.h"

#include "attention_simd.h"

#include "attention8_simd.h"

#include "attention_grad_simd.h"
