#include "vec8_avx512.h"

#include "gemm8_simd.h"
