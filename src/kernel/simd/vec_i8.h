/* Vectors of 8-bit integers of the SIMD level that this translation unit is compiled for; see vec.h. */
#ifndef SES_KERNEL_VEC_I8_H
#define SES_KERNEL_VEC_I8_H

#ifdef __AVX512F__
#include "vec_i8_avx512.h"
#else
#include "vec_i8_avx2.h"
#endif

#endif
