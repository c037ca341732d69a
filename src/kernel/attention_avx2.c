#include "vec8_avx2.h"

#include "attention_simd.h"

#include "attention8_simd.h"

#include "attention_grad_simd.h"
