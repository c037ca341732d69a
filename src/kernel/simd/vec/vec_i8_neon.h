/* int8 additions to vec_neon.h; vec_i8_avx512.h documents the functions. Quantized rows are signed here. */
#ifndef SES_KERNEL_VEC_I8_NEON_H
#define SES_KERNEL_VEC_I8_NEON_H

#include "vec_neon.h"

#include <string.h>
#include <sys/auxv.h>

/* The four bytes are in lane 0, where sdot and smlal take them. */
typedef float vq;
static inline vq vq_load(const void *a)
{
    vq x;
    memcpy(&x, a, sizeof x);
    return x;
}

/* Lets the assembler know the instructions below. It holds for the rest of the file, so it keeps SVE if the
 * compiler may use it. */
#if defined __ARM_FEATURE_DOTPROD && defined __ARM_FEATURE_MATMUL_INT8
#define VI_ARCH ""
#elif defined __ARM_FEATURE_SVE
#define VI_ARCH ".arch armv8.2-a+sve+dotprod+i8mm+bf16\n\t"
#else
#define VI_ARCH ".arch armv8.2-a+dotprod+i8mm+bf16\n\t"
#endif

/* sdot (FEAT_DotProd). Inline assembly, because the compiler flags of the file do not include it. */
static inline __attribute__((always_inline)) vi vi_dot4(vi c, vq a, vi b)
{
    __asm__(VI_ARCH "sdot %0.4s, %1.16b, %2.4b[0]" : "+w"(c.lo) : "w"(b.lo), "w"(a));
    __asm__(VI_ARCH "sdot %0.4s, %1.16b, %2.4b[0]" : "+w"(c.hi) : "w"(b.hi), "w"(a));
    return c;
}

/* Matrix products: smmla (FEAT_I8MM), which implies sdot. */
static inline int dot_kind(void)
{
    enum { HAS_DOTPROD = 1 << 20, HAS_I8MM = 1 << 13 }; /* HWCAP_ASIMDDP, HWCAP2_I8MM */
    if (!(getauxval(AT_HWCAP) & HAS_DOTPROD)) return 0;
    return getauxval(AT_HWCAP2) & HAS_I8MM ? 2 : 1;
}

/* c + products of two rows with four columns, 2 x 2 sums in each register. */
static inline __attribute__((always_inline)) vi vi_matrix(vi c, vr a, vi b)
{
    __asm__(VI_ARCH "smmla %0.4s, %1.16b, %2.16b" : "+w"(c.lo) : "w"(a), "w"(b.lo));
    __asm__(VI_ARCH "smmla %0.4s, %1.16b, %2.16b" : "+w"(c.hi) : "w"(a), "w"(b.hi));
    return c;
}
/* The two int16 of every lane: the first ones of all lanes, the second ones of all lanes. */
typedef struct vi_words {
    int16x8_t even, odd;
} vi_words;
static inline vi_words vi_split_words(vi b)
{
    int16x8_t lo = vreinterpretq_s16_s32(b.lo), hi = vreinterpretq_s16_s32(b.hi);
    return (vi_words){ vuzp1q_s16(lo, hi), vuzp2q_s16(lo, hi) };
}
static inline vi vi_dot2(vi c, vq a, vi_words b)
{
    int16x4_t x = vreinterpret_s16_f32(vdup_n_f32(a));
    c.lo = vmlal_lane_s16(c.lo, vget_low_s16(b.even), x, 0);
    c.hi = vmlal_high_lane_s16(c.hi, b.even, x, 0);
    c.lo = vmlal_lane_s16(c.lo, vget_low_s16(b.odd), x, 1);
    c.hi = vmlal_high_lane_s16(c.hi, b.odd, x, 1);
    return c;
}
static inline vi vi_dot2_plain(vi c, vq a, vi_words b) { return vi_dot2(c, a, b); }

/* The alternative to sdot: products as int16; the sum of two fits, 2 * 127 * 128 < 2^15. */
typedef vi vi_bytes;
static inline vi_bytes vi_split_bytes(vi b) { return b; }
static inline int32x4_t vi_dot4_plain4(int32x4_t c, int8x16_t a, int32x4_t b)
{
    int8x16_t y = vreinterpretq_s8_s32(b);
    int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(y)), high = vmull_high_s8(a, y);
    return vpadalq_s16(c, vpaddq_s16(low, high));
}
static inline vi vi_dot4_plain(vi c, vq a, vi_bytes b)
{
    int8x16_t x = vreinterpretq_s8_f32(vdupq_n_f32(a));
    return (vi){ vi_dot4_plain4(c.lo, x, b.lo), vi_dot4_plain4(c.hi, x, b.hi) };
}

static inline vi vi_dot4_each(vi c, vi a, vq b) { return vi_dot4(c, b, a); }
static inline vi vi_dot4_each_plain(vi c, vi a, vq b) { return vi_dot4_plain(c, b, a); }

static inline int16x8_t vi_narrow(vi a) { return vqmovn_high_s32(vqmovn_s32(a.lo), a.hi); }
static inline void vi_store_signed(int8_t *p, vi a) { vst1_s8(p, vqmovn_s16(vi_narrow(a))); }
static inline void vi_store_bytes(uint8_t *p, vi a) { vi_store_signed((int8_t *)p, a); }
static inline void vi_store_bytes4(uint8_t *p, vi a, vi b, vi c, vi d)
{
    vst1q_s8((int8_t *)p, vqmovn_high_s16(vqmovn_s16(vi_narrow(a)), vi_narrow(b)));
    vst1q_s8((int8_t *)p + 16, vqmovn_high_s16(vqmovn_s16(vi_narrow(c)), vi_narrow(d)));
}
static inline vi vi_load_bytes(const int8_t *p)
{
    int16x8_t x = vmovl_s8(vld1_s8(p));
    return (vi){ vmovl_s16(vget_low_s16(x)), vmovl_high_s16(x) };
}
static inline vi vi_load_quantized(const uint8_t *p) { return vi_load_bytes((const int8_t *)p); }

static inline void vi_store_words(int16_t *p, vi a) { vst1q_s16(p, vmovn_high_s32(vmovn_s32(a.lo), a.hi)); }
static inline void vi_store_words2(int16_t *p, vi a, vi b)
{
    vi_store_words(p, a);
    vi_store_words(p + VF_LANES, b);
}

#endif
