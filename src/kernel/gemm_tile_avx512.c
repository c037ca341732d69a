#include "vec_avx512.h"

#include "gemm_tile_simd.h"
