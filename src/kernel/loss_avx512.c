#include "vec_avx512.h"

#include "loss_simd.h"
