/* Vector operations of the AVX-512 kernels: 16 floats. vec_avx2.h documents the functions. */
#ifndef SES_KERNEL_VEC_AVX512_H
#define SES_KERNEL_VEC_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#define VF_LANES 16

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

static inline vm vm_part(int64_t n) { return (vm)((1u << n) - 1); }

static inline vf vf_zero(void) { return _mm512_setzero_ps(); }
static inline vf vf_set1(float a) { return _mm512_set1_ps(a); }
static inline vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void vf_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
static inline vf vf_load_part(const float *p, int64_t n) { return _mm512_maskz_loadu_ps(vm_part(n), p); }
static inline void vf_store_part(float *p, vf a, int64_t n) { _mm512_mask_storeu_ps(p, vm_part(n), a); }

static inline vf vf_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
static inline void vf_store_f16(uint16_t *p, vf a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}
static inline vf vf_load_bf16(const uint16_t *p)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

static inline vf vf_load_i8(const int8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}

static inline vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
static inline vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
static inline vf vf_round(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline vf vf_abs(vf a) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a); }
static inline vf vf_copysign(vf a, vf sign)
{
    return _mm512_or_ps(vf_abs(a), _mm512_and_ps(_mm512_set1_ps(-0.0f), sign));
}

static inline vm vf_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline vm vf_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
static inline vm vf_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline vf vf_select(vm m, vf yes, vf no) { return _mm512_mask_blend_ps(m, no, yes); }
static inline int vm_bits(vm m) { return m; }

static inline vi vi_set1(int32_t a) { return _mm512_set1_epi32(a); }
static inline vi vi_load(const void *p) { return _mm512_loadu_si512(p); }
static inline void vi_store(void *p, vi a) { _mm512_storeu_si512(p, a); }
static inline vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
static inline vi vi_max(vi a, vi b) { return _mm512_max_epi32(a, b); }
static inline vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
static inline vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
static inline vi vi_shl(vi a, int n) { return _mm512_slli_epi32(a, (unsigned)n); }
static inline vi vi_shr(vi a, int n) { return _mm512_srli_epi32(a, (unsigned)n); }
static inline vi vi_sar(vi a, int n) { return _mm512_srai_epi32(a, (unsigned)n); }
static inline vm vi_eq(vi a, vi b) { return _mm512_cmpeq_epi32_mask(a, b); }
static inline vm vi_ge_unsigned(vi a, vi b) { return _mm512_cmpge_epu32_mask(a, b); }
static inline vi vi_from_vf(vf a) { return _mm512_cvtps_epi32(a); }
static inline vf vf_from_vi(vi a) { return _mm512_cvtepi32_ps(a); }
static inline vi vi_of_bits(vf a) { return _mm512_castps_si512(a); }
static inline vf vf_of_bits(vi a) { return _mm512_castsi512_ps(a); }

static inline vi vi_add_pairs(vi a, vi b) { return _mm512_add_epi64(a, b); }
static inline vi vi_mul_even(vi a, vi b) { return _mm512_mul_epu32(a, b); }
static inline vi vi_odd_to_even(vi a) { return _mm512_srli_epi64(a, 32); }
static inline vi vi_pairs(vi even, vi odd)
{
    return _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}
static inline vi vi_set1_pair(uint64_t a) { return _mm512_set1_epi64((int64_t)a); }
static inline vi vi_xor3(vi a, vi b, vi c) { return _mm512_ternarylogic_epi32(a, b, c, 0x96); }

static inline void vi_store_quads(uint32_t *p, vi a, vi b)
{
    vi_store(p, _mm512_unpacklo_epi64(a, b));
    vi_store(p + VF_LANES, _mm512_unpackhi_epi64(a, b));
}

static inline void vf_transpose(vf x[VF_LANES])
{
    vf y[VF_LANES];
    for (int i = 0; i < 16; i += 2) { /* pairs of rows */
        y[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) { /* then fours: x[4 q + c] holds columns c, c + 4, c + 8, c + 12 */
        x[i] = _mm512_shuffle_ps(y[i], y[i + 2], 0x44);
        x[i + 1] = _mm512_shuffle_ps(y[i], y[i + 2], 0xee);
        x[i + 2] = _mm512_shuffle_ps(y[i + 1], y[i + 3], 0x44);
        x[i + 3] = _mm512_shuffle_ps(y[i + 1], y[i + 3], 0xee);
    }
    for (int c = 0; c < 4; c++) { /* then 4 x 4 blocks */
        vf low01 = _mm512_shuffle_f32x4(x[c], x[c + 4], 0x44),
           high01 = _mm512_shuffle_f32x4(x[c], x[c + 4], 0xee);
        vf low23 = _mm512_shuffle_f32x4(x[c + 8], x[c + 12], 0x44);
        vf high23 = _mm512_shuffle_f32x4(x[c + 8], x[c + 12], 0xee);
        y[c] = _mm512_shuffle_f32x4(low01, low23, 0x88);
        y[c + 4] = _mm512_shuffle_f32x4(low01, low23, 0xdd);
        y[c + 8] = _mm512_shuffle_f32x4(high01, high23, 0x88);
        y[c + 12] = _mm512_shuffle_f32x4(high01, high23, 0xdd);
    }
    for (int i = 0; i < 16; i++) x[i] = y[i];
}

/* Table lookup: the low four bits of each lane select an entry. */
static inline vf vf_choose(const float table[VF_LANES], vf a)
{
    return _mm512_permutexvar_ps(_mm512_castps_si512(a), vf_load(table));
}

static inline vf vf_scale2(vf a, vf n) { return _mm512_scalef_ps(a, n); }
static inline vf vf_scale2_bounded(vf a, vf n) { return _mm512_scalef_ps(a, n); }
static inline vf vf_fraction(vf x) { return _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
static inline vf vf_scale2_floor(vf a, vf x) { return _mm512_scalef_ps(a, x); }

static inline __m256 vf_low_half(vf a) { return _mm512_castps512_ps256(a); }
static inline __m256 vf_high_half(vf a) { return _mm512_extractf32x8_ps(a, 1); }
static inline float vf_sum(vf a)
{
    __m256 q = _mm256_add_ps(vf_low_half(a), vf_high_half(a));
    __m128 h = _mm_add_ps(_mm256_castps256_ps128(q), _mm256_extractf128_ps(q, 1));
    h = _mm_add_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_add_ss(h, _mm_shuffle_ps(h, h, 1)));
}
static inline vf vf_sum_each(const vf x[VF_LANES])
{
    vf z[4], w[2];
    for (int q = 0; q < 4; q++) { /* rows 4 q .. 4 q + 3, within each 128 bits */
        const vf *r = x + 4 * q;
        vf a = vf_add(_mm512_unpacklo_ps(r[0], r[1]), _mm512_unpackhi_ps(r[0], r[1]));
        vf b = vf_add(_mm512_unpacklo_ps(r[2], r[3]), _mm512_unpackhi_ps(r[2], r[3]));
        z[q] = vf_add(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
    }
    for (int h = 0; h < 2; h++)
        w[h] = vf_add(_mm512_shuffle_f32x4(z[2 * h], z[2 * h + 1], 0x88),
                      _mm512_shuffle_f32x4(z[2 * h], z[2 * h + 1], 0xdd));
    return vf_add(_mm512_shuffle_f32x4(w[0], w[1], 0x88), _mm512_shuffle_f32x4(w[0], w[1], 0xdd));
}
static inline float vf_hmax(vf a)
{
    __m256 q = _mm256_max_ps(vf_low_half(a), vf_high_half(a));
    __m128 h = _mm_max_ps(_mm256_castps256_ps128(q), _mm256_extractf128_ps(q, 1));
    h = _mm_max_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_max_ss(h, _mm_shuffle_ps(h, h, 1)));
}
static inline double vf_sum_double(vf a)
{
    __m512d d = _mm512_add_pd(_mm512_cvtps_pd(vf_low_half(a)), _mm512_cvtps_pd(vf_high_half(a)));
    __m256d q = _mm256_add_pd(_mm512_castpd512_pd256(d), _mm512_extractf64x4_pd(d, 1));
    __m128d h = _mm_add_pd(_mm256_castpd256_pd128(q), _mm256_extractf128_pd(q, 1));
    return _mm_cvtsd_f64(_mm_add_sd(h, _mm_unpackhi_pd(h, h)));
}

#include "vec_x86.h"

#endif
