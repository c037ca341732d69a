/* Vectors of the level that this translation unit is compiled for. CMake compiles each FAMILY_simd.c once per
 * vector level, with SES_LEVEL defined as its name: kernels are written once, over the names that each
 * vec_LEVEL.h defines. */
#ifndef SES_KERNEL_VEC_H
#define SES_KERNEL_VEC_H

/* The name of this level's variant: ses_k_add -> ses_k_add_avx2 */
#define VF_NAME__(kernel, level) kernel##_##level
#define VF_NAME_(kernel, level) VF_NAME__(kernel, level)
#define VF_NAME(kernel) VF_NAME_(kernel, SES_LEVEL)

#if defined SES_PLAIN_VECTORS
#include "vec_plain.h"
#elif defined __aarch64__
#include "vec_neon.h"
#elif defined __AVX512F__
#include "vec_avx512.h"
#else
#include "vec_avx2.h"
#endif

#endif
