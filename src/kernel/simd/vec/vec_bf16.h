/* Vectors of bf16 numbers, two per lane, for kernels of levels with bf16 products. Rounding is to nearest
 * even; NaN stays NaN. */
#ifndef SES_KERNEL_VEC_BF16_H
#define SES_KERNEL_VEC_BF16_H

#include "vec.h"

#ifdef __AVX512BF16__

/* Denormal numbers become 0, here and in vb_dot. */

/* a in the first half, b in the second: consecutive numbers */
static inline vi vb_row(vf a, vf b) { return (vi)_mm512_cvtne2ps_pbh(b, a); }

/* a in the low half of each lane, b in the high half */
static inline vi vb_pairs(vf a, vf b)
{
    static const uint16_t order[32] = { 0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31 };
    return _mm512_permutexvar_epi16(vi_load(order), vb_row(a, b));
}

/* c + the sum of both products per lane. Inline assembly: c stays in its register. */
static inline vf vb_dot(vf c, vi a, vi b)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}

#elif defined __ARM_FEATURE_BF16_VECTOR_ARITHMETIC

static inline int32x4_t vb_round(vf a)
{
    return vreinterpretq_s32_bf16(vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(a.lo), a.hi));
}
static inline vi vb_row(vf a, vf b) { return (vi){ vb_round(a), vb_round(b) }; }
static inline vi vb_pairs(vf a, vf b)
{
    int16x8_t x = vreinterpretq_s16_s32(vb_round(a)), y = vreinterpretq_s16_s32(vb_round(b));
    return (vi){ vreinterpretq_s32_s16(vzip1q_s16(x, y)), vreinterpretq_s32_s16(vzip2q_s16(x, y)) };
}

/* Two rows times two columns, four numbers of k each; see matrix_tile.h. */
static inline __attribute__((always_inline)) vi vb_matrix(vi c, vr a, vi b)
{
    __asm__("bfmmla %0.4s, %1.8h, %2.8h" : "+w"(c.lo) : "w"(a), "w"(b.lo));
    __asm__("bfmmla %0.4s, %1.8h, %2.8h" : "+w"(c.hi) : "w"(a), "w"(b.hi));
    return c;
}

#else /* over the integers of vec.h */

/* bf16 numbers in the high half of each lane */
static inline vi vb_high(vf a)
{
    vi bits = vi_of_bits(a), odd = vi_and(vi_shr(bits, 16), vi_set1(1)), high = vi_set1((int32_t)0xFFFF0000);
    vi rounded = vi_and(vi_add(bits, vi_add(odd, vi_set1(0x7FFF))), high);
    vi quiet = vi_of_bits(vf_set1(__builtin_nanf("")));
    return vi_of_bits(vf_select(vf_eq(a, a), vf_of_bits(rounded), vf_of_bits(quiet)));
}

static inline vi vb_pairs(vf a, vf b) { return vi_xor(vi_shr(vb_high(a), 16), vb_high(b)); }

static inline vi vb_row(vf a, vf b)
{
    uint16_t y[2 * VF_LANES];
    uint32_t pair[VF_LANES];
    vi_store(pair, vb_pairs(a, b));
    for (int i = 0; i < VF_LANES; i++) y[i] = (uint16_t)pair[i], y[VF_LANES + i] = (uint16_t)(pair[i] >> 16);
    return vi_load(y);
}

static inline vf vb_dot(vf c, vi a, vi b)
{
    vi high = vi_set1((int32_t)0xFFFF0000);
    c = vf_fma(vf_of_bits(vi_and(a, high)), vf_of_bits(vi_and(b, high)), c);
    return vf_fma(vf_of_bits(vi_shl(a, 16)), vf_of_bits(vi_shl(b, 16)), c);
}

#endif

#endif
