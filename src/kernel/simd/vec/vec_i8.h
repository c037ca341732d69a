/* Vectors of 8-bit integers of the SIMD level that this translation unit is compiled for; see vec.h. */
#ifndef SES_KERNEL_VEC_I8_H
#define SES_KERNEL_VEC_I8_H

#if defined SES_PLAIN_VECTORS
#include "vec_i8_plain.h"
#elif defined __aarch64__
#include "vec_i8_neon.h"
#elif defined __AVX512F__
#include "vec_i8_avx512.h"
#else
#include "vec_i8_avx2.h"
#endif

#endif
