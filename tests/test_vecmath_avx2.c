/* The vector functions at the AVX2 level; see vecmath_cases.h. */
#include "kernel/simd/vec/vec_avx2.h"

#define LEVEL SES_ISA_AVX2
#include "vecmath_cases.h"
