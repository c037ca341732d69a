/* The vector functions at the NEON level; see vecmath_cases.h. */
#include "kernel/simd/vec/vec_neon.h"

#define LEVEL SES_ISA_NEON
#include "vecmath_cases.h"
