#include "vec_avx512.h"

#include "elementwise_simd.h"
