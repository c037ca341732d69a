/* Vector operations of the AVX2 kernels: 8 floats. vec_avx512.h defines the same functions for 16 floats, so
 * a kernel FAMILY_simd.c is written once and compiled for both.
 * Types: vf floats, vi 32-bit integers, vm a mask per lane. Pointers need no alignment. A part is the first n
 * lanes, 0 <= n <= VF_LANES; memory past it is not accessed. */
#ifndef SES_KERNEL_VEC_AVX2_H
#define SES_KERNEL_VEC_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#define VF_LANES 8

typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm;

static inline vm vm_part(int64_t n)
{
    static const int32_t ones[2 * VF_LANES] = { -1, -1, -1, -1, -1, -1, -1, -1 };
    return _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)(const void *)(ones + VF_LANES - n)));
}

static inline vf vf_zero(void) { return _mm256_setzero_ps(); }
static inline vf vf_set1(float a) { return _mm256_set1_ps(a); }
static inline vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void vf_store(float *p, vf a) { _mm256_storeu_ps(p, a); }
static inline vf vf_load_part(const float *p, int64_t n) /* 0 in the other lanes */
{
    return _mm256_maskload_ps(p, _mm256_castps_si256(vm_part(n)));
}
static inline void vf_store_part(float *p, vf a, int64_t n)
{
    _mm256_maskstore_ps(p, _mm256_castps_si256(vm_part(n)), a);
}

/* 16-bit numbers to and from floats. Every processor with AVX2 has F16C. */
static inline vf vf_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline void vf_store_f16(uint16_t *p, vf a)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}
static inline vf vf_load_bf16(const uint16_t *p)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

static inline vf vf_load_i8(const int8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}

static inline vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
static inline vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
static inline vf vf_sqrt(vf a) { return _mm256_sqrt_ps(a); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }   /* a b + c */
static inline vf vf_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); } /* c - a b */
static inline vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }              /* NaN if b is NaN */
static inline vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }              /* NaN if b is NaN */
static inline vf vf_round(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline vf vf_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
static inline vf vf_copysign(vf a, vf sign)
{
    return _mm256_or_ps(vf_abs(a), _mm256_and_ps(_mm256_set1_ps(-0.0f), sign));
}

static inline vm vf_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
static inline vm vf_le(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
static inline vm vf_eq(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
static inline vf vf_select(vm m, vf yes, vf no) { return _mm256_blendv_ps(no, yes, m); }
static inline int vm_bits(vm m) { return _mm256_movemask_ps(m); } /* bit i: lane i */

static inline vi vi_set1(int32_t a) { return _mm256_set1_epi32(a); }
static inline vi vi_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
static inline void vi_store(void *p, vi a) { _mm256_storeu_si256((__m256i *)p, a); }
static inline vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
static inline vi vi_max(vi a, vi b) { return _mm256_max_epi32(a, b); }
static inline vi vi_and(vi a, vi b) { return _mm256_and_si256(a, b); }
static inline vi vi_xor(vi a, vi b) { return _mm256_xor_si256(a, b); }
static inline vi vi_shl(vi a, int n) { return _mm256_slli_epi32(a, n); }
static inline vi vi_shr(vi a, int n) { return _mm256_srli_epi32(a, n); } /* shifts in zeros */
static inline vi vi_sar(vi a, int n) { return _mm256_srai_epi32(a, n); } /* shifts in the sign */
static inline vm vi_eq(vi a, vi b) { return _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)); }
static inline vm vi_ge_unsigned(vi a, vi b) { return vi_eq(_mm256_max_epu32(a, b), a); }
static inline vi vi_from_vf(vf a) { return _mm256_cvtps_epi32(a); } /* to nearest */
static inline vf vf_from_vi(vi a) { return _mm256_cvtepi32_ps(a); }
static inline vi vi_of_bits(vf a) { return _mm256_castps_si256(a); }
static inline vf vf_of_bits(vi a) { return _mm256_castsi256_ps(a); }

/* Two neighboring lanes as one 64-bit number; the even lane is the low half. */
static inline vi vi_add_pairs(vi a, vi b) { return _mm256_add_epi64(a, b); }
/* per pair: even lane of a times even lane of b */
static inline vi vi_mul_even(vi a, vi b) { return _mm256_mul_epu32(a, b); }
static inline vi vi_odd_to_even(vi a) { return _mm256_srli_epi64(a, 32); } /* 0 in the odd lanes */
static inline vi vi_pairs(vi even, vi odd)                                 /* the even lanes of both */
{
    return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}
static inline vi vi_set1_pair(uint64_t a) { return _mm256_set1_epi64x((int64_t)a); }
static inline vi vi_xor3(vi a, vi b, vi c) { return vi_xor(vi_xor(a, b), c); }

/* Stores pairs i of a and b alternately: first the even i, then the odd i. */
static inline void vi_store_quads(uint32_t *p, vi a, vi b)
{
    vi_store(p, _mm256_unpacklo_epi64(a, b));
    vi_store(p + VF_LANES, _mm256_unpackhi_epi64(a, b));
}

/* Transposes an 8 x 8 matrix. */
static inline void vf_transpose(vf x[VF_LANES])
{
    vf y[VF_LANES];
    for (int i = 0; i < 8; i += 2) { /* pairs of rows */
        y[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
        y[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) { /* then fours */
        x[i] = _mm256_shuffle_ps(y[i], y[i + 2], 0x44);
        x[i + 1] = _mm256_shuffle_ps(y[i], y[i + 2], 0xee);
        x[i + 2] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0x44);
        x[i + 3] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) { /* then all eight */
        y[i] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x20);
        y[i + 4] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x31);
    }
    for (int i = 0; i < 8; i++) x[i] = y[i];
}

/* a 2^n for |n| <= 200, correct for overflow and denormals: two multiplications by normal powers of two. */
static inline vf vf_scale2(vf a, vf n)
{
    vi i = vi_from_vf(n), half = vi_sar(i, 1), bias = vi_set1(127);
    vf s1 = vf_of_bits(vi_shl(vi_add(half, bias), 23));
    vf s2 = vf_of_bits(vi_shl(vi_add(vi_sub(i, half), bias), 23));
    return vf_mul(vf_mul(a, s1), s2);
}

/* The same if the power of two and the result are normal numbers. */
static inline vf vf_scale2_bounded(vf a, vf n)
{
    return vf_mul(a, vf_of_bits(vi_shl(vi_add(vi_from_vf(n), vi_set1(127)), 23)));
}

/* x - floor(x) and a 2^floor(x), for x <= 0. x is clamped at -126, minus infinity included. */
static inline vf vf_fraction(vf x)
{
    x = vf_max(vf_set1(-126), x);
    return vf_sub(x, _mm256_floor_ps(x));
}
static inline vf vf_scale2_floor(vf a, vf x)
{
    return vf_scale2_bounded(a, _mm256_floor_ps(vf_max(vf_set1(-126), x)));
}

/* Reductions fold halves onto each other in a fixed order. */
static inline float vf_sum(vf a)
{
    __m128 h = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    h = _mm_add_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_add_ss(h, _mm_shuffle_ps(h, h, 1)));
}
/* Lane i: the sum of the lanes of x[i]. */
static inline vf vf_sum_each(const vf x[VF_LANES])
{
    vf a = _mm256_hadd_ps(_mm256_hadd_ps(x[0], x[1]), _mm256_hadd_ps(x[2], x[3]));
    vf b = _mm256_hadd_ps(_mm256_hadd_ps(x[4], x[5]), _mm256_hadd_ps(x[6], x[7]));
    return vf_add(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}
static inline float vf_hmax(vf a)
{
    __m128 h = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    h = _mm_max_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_max_ss(h, _mm_shuffle_ps(h, h, 1)));
}
/* Sum of all lanes in double, for norms and losses. */
static inline double vf_sum_double(vf a)
{
    __m256d d = _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(a)),
                              _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)));
    __m128d h = _mm_add_pd(_mm256_castpd256_pd128(d), _mm256_extractf128_pd(d, 1));
    return _mm_cvtsd_f64(_mm_add_sd(h, _mm_unpackhi_pd(h, h)));
}

#include "vec_x86.h"

#endif
