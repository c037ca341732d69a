/* Vectors of the SIMD level that this translation unit is compiled for. CMake compiles each FAMILY_simd.c
 * once per level: kernels are written once, over the names that vec_avx2.h and vec_avx512.h both define. */
#ifndef SES_KERNEL_VEC_H
#define SES_KERNEL_VEC_H

#ifdef __AVX512F__
#include "vec_avx512.h"
#else
#include "vec_avx2.h"
#endif

#endif
