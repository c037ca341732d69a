#include "vec_avx2.h"

#include "gemm_tile_simd.h"
