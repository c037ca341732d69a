#include "vec_avx512.h"

#include "reduce_simd.h"
