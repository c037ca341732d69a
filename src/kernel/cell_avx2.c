#include "vec_avx2.h"

#include "cell_simd.h"
