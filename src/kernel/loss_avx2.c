#include "vec_avx2.h"

#include "loss_simd.h"
