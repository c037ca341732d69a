#include "vec_avx512.h"

#include "relative_simd.h"
