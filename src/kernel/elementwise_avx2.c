#include "vec_avx2.h"

#include "elementwise_simd.h"
