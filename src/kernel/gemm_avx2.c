#include "vec_avx2.h"

#define TILE_ROWS 6 /* 12 accumulators of 16 registers */
#define TILE_VECS 2
#include "gemm_simd.h"
