#include "vec_avx512.h"

#include "peak_simd.h"
