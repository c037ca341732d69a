/* The vector functions at the AVX-512 level; see vecmath_cases.h. */
#include "kernel/simd/vec/vec_avx512.h"

#define LEVEL SES_ISA_AVX512
#include "vecmath_cases.h"
