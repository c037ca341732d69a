#include "vec_avx2.h"

#include "gemm_simd.h"
