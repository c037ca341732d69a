#include "vec_avx512.h"

#include "rms_simd.h"
