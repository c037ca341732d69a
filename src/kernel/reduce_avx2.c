#include "vec_avx2.h"

#include "reduce_simd.h"
