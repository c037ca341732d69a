#include "vec_avx512.h"

#include "softmax_simd.h"
