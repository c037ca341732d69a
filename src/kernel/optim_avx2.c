#include "vec_avx2.h"

#include "optim_simd.h"
