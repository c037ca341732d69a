#include "vec_avx512.h"

#include "norm_simd.h"
