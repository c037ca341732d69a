#include "vec_avx512.h"

#include "cell_simd.h"
