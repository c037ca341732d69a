#include "vec_avx2.h"

#include "peak_simd.h"
