#include "vec_avx512.h"

#include "gemm_simd.h"
