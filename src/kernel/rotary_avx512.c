#include "vec_avx512.h"

#include "rotary_simd.h"
