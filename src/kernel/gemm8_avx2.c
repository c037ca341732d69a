#include "vec8_avx2.h"

#include "gemm8_simd.h"
