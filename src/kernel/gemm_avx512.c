#include "vec_avx512.h"

#define TILE_ROWS 8 /* 24 accumulators of 32 registers */
#define TILE_VECS 3
#include "gemm_simd.h"
