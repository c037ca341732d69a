#include "vec_avx2.h"

#include "gather_simd.h"
