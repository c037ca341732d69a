/* int8 additions to vec_avx2.h; vec_i8_avx512.h documents the functions. */
#ifndef SES_KERNEL_VEC_I8_AVX2_H
#define SES_KERNEL_VEC_I8_AVX2_H

#include "vec_avx2.h"

#include <cpuid.h>
#include <string.h>

typedef vi vq;
static inline vq vq_load(const void *a)
{
    int32_t x;
    memcpy(&x, a, sizeof x);
    return vi_set1(x);
}

/* AVX-VNNI */
static inline vi vi_dot4(vi c, vq a, vi b)
{
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
    return c;
}

static inline vi vi_dot2(vi c, vq a, vi b)
{
    __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
    return c;
}

static inline int dot_kind(void)
{
#if defined __clang__ /* clang 14's __builtin_cpu_supports has no avxvnni */
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
#else
    return __builtin_cpu_supports("avxvnni") != 0;
#endif
}

typedef struct vi_bytes {
    vi even, odd;
} vi_bytes;
static inline vi_bytes vi_split_bytes(vi b)
{
    return (vi_bytes){ _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8), _mm256_srai_epi16(b, 8) };
}
static inline vi vi_dot4_plain(vi c, vq a, vi_bytes b)
{
    vi even = vi_and(a, vi_set1(0x00ff00ff)), odd = _mm256_srli_epi16(a, 8);
    return vi_add(c, vi_add(_mm256_madd_epi16(even, b.even), _mm256_madd_epi16(odd, b.odd)));
}
static inline vi vi_dot4_each(vi c, vi a, vq b) { return vi_dot4(c, a, b); }
static inline vi vi_dot4_each_plain(vi c, vi a, vq b) { return vi_dot4_plain(c, a, vi_split_bytes(b)); }
static inline vi vi_dot2_plain(vi c, vq a, vi b) { return vi_add(c, _mm256_madd_epi16(a, b)); }

typedef vi vi_words;
static inline vi_words vi_split_words(vi b) { return b; }

static inline void vi_store_bytes(uint8_t *p, vi a)
{
    __m128i pairs = _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    __m128i bytes = _mm_add_epi8(_mm_packs_epi16(pairs, pairs), _mm_set1_epi8((char)-128));
    _mm_storel_epi64((__m128i *)(void *)p, bytes);
}

static inline void vi_store_bytes4(uint8_t *p, vi a, vi b, vi c, vi d)
{
    vi order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    vi bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    vi_store(p, vi_xor(_mm256_permutevar8x32_epi32(bytes, order), _mm256_set1_epi8((char)-128)));
}

static inline void vi_store_signed(int8_t *p, vi a)
{
    __m128i pairs = _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packs_epi16(pairs, pairs));
}
static inline vi vi_load_bytes(const int8_t *p)
{
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
static inline vi vi_load_quantized(const uint8_t *p)
{
    return vi_sub(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)), vi_set1(128));
}
static inline void vi_store_words(int16_t *p, vi a)
{
    a = vi_and(a, vi_set1(0xffff));
    _mm_storeu_si128((__m128i *)(void *)p,
                     _mm_packus_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1)));
}
static inline void vi_store_words2(int16_t *p, vi a, vi b)
{
    vi low = vi_set1(0xffff), words = _mm256_packus_epi32(vi_and(a, low), vi_and(b, low));
    vi_store(p, _mm256_permute4x64_epi64(words, 0xd8));
}

#endif
