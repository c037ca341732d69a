#include "vec_avx512.h"

#include "optim_simd.h"
