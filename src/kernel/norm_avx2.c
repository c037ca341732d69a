#include "vec_avx2.h"

#include "norm_simd.h"
