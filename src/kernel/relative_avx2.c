#include "vec_avx2.h"

#include "relative_simd.h"
