#include "vec_avx2.h"

#include "rotary_simd.h"
