#include "vec_avx512.h"

#include "gather_simd.h"
