/* int8 additions to vec_avx512.h. vec_i8_avx2.h defines the same functions. */
#ifndef SES_KERNEL_VEC_I8_AVX512_H
#define SES_KERNEL_VEC_I8_AVX512_H

#include "vec_avx512.h"

#include <string.h>

/* Four bytes or two int16 of A, which the products of every lane share. */
typedef vi vq;
static inline vq vq_load(const void *a)
{
    int32_t x;
    memcpy(&x, a, sizeof x);
    return vi_set1(x);
}

/* c + sum of four products per lane: bytes q + 128 of a times signed bytes of b (AVX512_VNNI). Inline
 * assembly, because the compiler flags of the file do not include VNNI. */
static inline vi vi_dot4(vi c, vq a, vi b)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}

/* c + sum of two products of int16 per lane (AVX512_VNNI). */
static inline vi vi_dot2(vi c, vq a, vi b)
{
    __asm__("vpdpwssd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}

/* 0: no dot products of bytes; 1: the ones above; 2: also products of small matrices (VI_MATRIX, see
 * matrix_tile.h). Uses the compiler's cached CPUID result: executing CPUID takes 9 us in a virtual
 * machine. */
static inline int dot_kind(void) { return __builtin_cpu_supports("avx512vnni") != 0; }

/* The same without VNNI. B is split once for all rows of A: its even and odd bytes as int16. */
typedef struct vi_bytes {
    vi even, odd;
} vi_bytes;
static inline vi_bytes vi_split_bytes(vi b)
{
    return (vi_bytes){ _mm512_srai_epi16(_mm512_slli_epi16(b, 8), 8), _mm512_srai_epi16(b, 8) };
}
static inline vi vi_dot4_plain(vi c, vq a, vi_bytes b)
{
    vi even = vi_and(a, vi_set1(0x00ff00ff)), odd = _mm512_srli_epi16(a, 8);
    return vi_add(c, vi_add(_mm512_madd_epi16(even, b.even), _mm512_madd_epi16(odd, b.odd)));
}
/* The same with the roles exchanged: each lane has its own four bytes of A, and all share four bytes of B. */
static inline vi vi_dot4_each(vi c, vi a, vq b) { return vi_dot4(c, a, b); }
static inline vi vi_dot4_each_plain(vi c, vi a, vq b) { return vi_dot4_plain(c, a, vi_split_bytes(b)); }
static inline vi vi_dot2_plain(vi c, vq a, vi b) { return vi_add(c, _mm512_madd_epi16(a, b)); }

/* B of vi_dot2, prepared once for all rows of A. */
typedef vi vi_words;
static inline vi_words vi_split_words(vi b) { return b; }

/* Half vectors, for products of few rows: two are loaded in the time of one vector. */
#define VI_HALF
typedef __m256i vh;
static inline vh vh_zero(void) { return _mm256_setzero_si256(); }
static inline vh vh_load(const void *p) { return _mm256_loadu_si256(p); }
static inline void vh_store(void *p, vh a) { _mm256_storeu_si256(p, a); }
static inline vh vh_load_quad(const void *p) /* four bytes, which all lanes share */
{
    int32_t x;
    memcpy(&x, p, sizeof x);
    return _mm256_set1_epi32(x);
}
static inline vh vh_dot4_each(vh c, vh a, vh b)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}

/* Integers in -127 .. 127, stored as bytes plus 128. */
static inline void vi_store_bytes(uint8_t *p, vi a)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(_mm512_add_epi32(a, _mm512_set1_epi32(128))));
}

/* Four vectors of them. */
static inline void vi_store_bytes4(uint8_t *p, vi a, vi b, vi c, vi d)
{
    vi order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    vi bytes = _mm512_packs_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
    vi_store(p, vi_xor(_mm512_permutexvar_epi32(order, bytes), _mm512_set1_epi8((char)-128)));
}

static inline void vi_store_signed(int8_t *p, vi a)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(a));
}
static inline vi vi_load_bytes(const int8_t *p)
{
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
/* Quantized bytes, stored plus 128. */
static inline vi vi_load_quantized(const uint8_t *p)
{
    return vi_sub(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)), vi_set1(128));
}

/* Stores the low 16 bits of each lane, of one or two vectors. */
static inline void vi_store_words(int16_t *p, vi a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(a));
}
static inline void vi_store_words2(int16_t *p, vi a, vi b)
{
    static const uint16_t even[32] = { 0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
                                       32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62 };
    vi_store(p, _mm512_permutex2var_epi16(a, vi_load(even), b));
}

/* Four vectors of integers in 0 .. 16383 as bytes a / 128 and a % 128: byte 16 l + 4 v + i is lane 4 l + i of
 * vector v. */
static inline void vi_store_halves(uint8_t *high, uint8_t *low, const vi a[4])
{
    vi x = _mm512_packs_epi32(a[0], a[1]), y = _mm512_packs_epi32(a[2], a[3]), mask = vi_set1(0x007f007f);
    vi_store(high, _mm512_packus_epi16(_mm512_srli_epi16(x, 7), _mm512_srli_epi16(y, 7)));
    vi_store(low, _mm512_packus_epi16(vi_and(x, mask), vi_and(y, mask)));
}

#endif
