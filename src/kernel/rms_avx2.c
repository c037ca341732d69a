#include "vec_avx2.h"

#include "rms_simd.h"
