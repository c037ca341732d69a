#include "vec_avx2.h"

#include "softmax_simd.h"
