/* Vector operations of the NEON kernels: 8 floats in two registers. The same tiles and the same order of sums
 * as at the AVX2 level, so both give the same bits. vec_avx2.h documents the functions. */
#ifndef SES_KERNEL_VEC_NEON_H
#define SES_KERNEL_VEC_NEON_H

#include <arm_neon.h>
#include <stdint.h>

#define VF_LANES 8

typedef struct vf {
    float32x4_t lo, hi;
} vf;
typedef struct vi {
    int32x4_t lo, hi;
} vi;
typedef struct vm {
    uint32x4_t lo, hi;
} vm;

static inline vm vm_part(int64_t n)
{
    static const uint32_t ones[2 * VF_LANES] = { ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u };
    return (vm){ vld1q_u32(ones + VF_LANES - n), vld1q_u32(ones + VF_LANES - n + 4) };
}

static inline vf vf_set1(float a) { return (vf){ vdupq_n_f32(a), vdupq_n_f32(a) }; }
static inline vf vf_zero(void) { return vf_set1(0); }
static inline vf vf_load(const float *p) { return (vf){ vld1q_f32(p), vld1q_f32(p + 4) }; }
static inline void vf_store(float *p, vf a)
{
    vst1q_f32(p, a.lo);
    vst1q_f32(p + 4, a.hi);
}

/* The first n < 4 numbers. NEON lacks masked loads and stores. */
static inline float32x4_t vf_load_few(const float *p, int64_t n)
{
    float32x4_t x = vdupq_n_f32(0);
    if (n & 2) {
        x = vcombine_f32(vld1_f32(p), vdup_n_f32(0));
        if (n & 1) x = vld1q_lane_f32(p + 2, x, 2);
    } else if (n & 1) {
        x = vld1q_lane_f32(p, x, 0);
    }
    return x;
}
static inline void vf_store_few(float *p, float32x4_t a, int64_t n)
{
    if (n & 2) {
        vst1_f32(p, vget_low_f32(a));
        if (n & 1) vst1q_lane_f32(p + 2, a, 2);
    } else if (n & 1) {
        vst1q_lane_f32(p, a, 0);
    }
}
static inline vf vf_load_part(const float *p, int64_t n)
{
    if (n >= VF_LANES) return vf_load(p);
    if (n >= 4) return (vf){ vld1q_f32(p), vf_load_few(p + 4, n - 4) };
    return (vf){ vf_load_few(p, n), vdupq_n_f32(0) };
}
static inline void vf_store_part(float *p, vf a, int64_t n)
{
    if (n >= VF_LANES) {
        vf_store(p, a);
    } else if (n >= 4) {
        vst1q_f32(p, a.lo);
        vf_store_few(p + 4, a.hi, n - 4);
    } else {
        vf_store_few(p, a.lo, n);
    }
}

/* Prefetches a cache line for writing. */
static inline void prefetch_write(const float *p) { __builtin_prefetch(p, 1, 3); }

/* fcvtl and fcvtn belong to the base instructions; only arithmetic in f16 does not. */
static inline vf vf_load_f16(const uint16_t *p)
{
    float16x8_t half = vreinterpretq_f16_u16(vld1q_u16(p));
    return (vf){ vcvt_f32_f16(vget_low_f16(half)), vcvt_high_f32_f16(half) };
}
static inline void vf_store_f16(uint16_t *p, vf a)
{
    vst1q_u16(p, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(a.lo), a.hi)));
}
static inline vf vf_load_bf16(const uint16_t *p)
{
    uint16x8_t half = vld1q_u16(p);
    return (vf){ vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(half), 16)),
                 vreinterpretq_f32_u32(vshll_high_n_u16(half, 16)) };
}
static inline vf vf_load_i8(const int8_t *p)
{
    int16x8_t x = vmovl_s8(vld1_s8(p));
    return (vf){ vcvtq_f32_s32(vmovl_s16(vget_low_s16(x))), vcvtq_f32_s32(vmovl_high_s16(x)) };
}

static inline vf vf_add(vf a, vf b) { return (vf){ vaddq_f32(a.lo, b.lo), vaddq_f32(a.hi, b.hi) }; }
static inline vf vf_sub(vf a, vf b) { return (vf){ vsubq_f32(a.lo, b.lo), vsubq_f32(a.hi, b.hi) }; }
static inline vf vf_mul(vf a, vf b) { return (vf){ vmulq_f32(a.lo, b.lo), vmulq_f32(a.hi, b.hi) }; }
static inline vf vf_div(vf a, vf b) { return (vf){ vdivq_f32(a.lo, b.lo), vdivq_f32(a.hi, b.hi) }; }
static inline vf vf_sqrt(vf a) { return (vf){ vsqrtq_f32(a.lo), vsqrtq_f32(a.hi) }; }
static inline vf vf_fma(vf a, vf b, vf c)
{
    return (vf){ vfmaq_f32(c.lo, a.lo, b.lo), vfmaq_f32(c.hi, a.hi, b.hi) };
}
static inline vf vf_fnma(vf a, vf b, vf c)
{
    return (vf){ vfmsq_f32(c.lo, a.lo, b.lo), vfmsq_f32(c.hi, a.hi, b.hi) };
}
static inline vf vf_max(vf a, vf b) { return (vf){ vmaxq_f32(a.lo, b.lo), vmaxq_f32(a.hi, b.hi) }; }
static inline vf vf_min(vf a, vf b) { return (vf){ vminq_f32(a.lo, b.lo), vminq_f32(a.hi, b.hi) }; }
static inline vf vf_round(vf a) { return (vf){ vrndnq_f32(a.lo), vrndnq_f32(a.hi) }; }
static inline vf vf_floor(vf a) { return (vf){ vrndmq_f32(a.lo), vrndmq_f32(a.hi) }; }
static inline vf vf_abs(vf a) { return (vf){ vabsq_f32(a.lo), vabsq_f32(a.hi) }; }
static inline vf vf_copysign(vf a, vf sign)
{
    uint32x4_t bit = vdupq_n_u32(0x80000000u);
    return (vf){ vbslq_f32(bit, sign.lo, a.lo), vbslq_f32(bit, sign.hi, a.hi) };
}

static inline vm vf_lt(vf a, vf b) { return (vm){ vcltq_f32(a.lo, b.lo), vcltq_f32(a.hi, b.hi) }; }
static inline vm vf_le(vf a, vf b) { return (vm){ vcleq_f32(a.lo, b.lo), vcleq_f32(a.hi, b.hi) }; }
static inline vm vf_eq(vf a, vf b) { return (vm){ vceqq_f32(a.lo, b.lo), vceqq_f32(a.hi, b.hi) }; }
static inline vf vf_select(vm m, vf yes, vf no)
{
    return (vf){ vbslq_f32(m.lo, yes.lo, no.lo), vbslq_f32(m.hi, yes.hi, no.hi) };
}

static inline vi vi_set1(int32_t a) { return (vi){ vdupq_n_s32(a), vdupq_n_s32(a) }; }
static inline vi vi_load(const void *p)
{
    const int8_t *at = p;
    return (vi){ vreinterpretq_s32_s8(vld1q_s8(at)), vreinterpretq_s32_s8(vld1q_s8(at + 16)) };
}
static inline void vi_store(void *p, vi a)
{
    int8_t *at = p;
    vst1q_s8(at, vreinterpretq_s8_s32(a.lo));
    vst1q_s8(at + 16, vreinterpretq_s8_s32(a.hi));
}
static inline vi vi_add(vi a, vi b) { return (vi){ vaddq_s32(a.lo, b.lo), vaddq_s32(a.hi, b.hi) }; }
static inline vi vi_sub(vi a, vi b) { return (vi){ vsubq_s32(a.lo, b.lo), vsubq_s32(a.hi, b.hi) }; }
static inline vi vi_max(vi a, vi b) { return (vi){ vmaxq_s32(a.lo, b.lo), vmaxq_s32(a.hi, b.hi) }; }
static inline vi vi_and(vi a, vi b) { return (vi){ vandq_s32(a.lo, b.lo), vandq_s32(a.hi, b.hi) }; }
static inline vi vi_xor(vi a, vi b) { return (vi){ veorq_s32(a.lo, b.lo), veorq_s32(a.hi, b.hi) }; }
static inline vi vi_shl(vi a, int n) { return (vi){ a.lo << n, a.hi << n }; }
static inline vi vi_shr(vi a, int n)
{
    return (vi){ vreinterpretq_s32_u32(vreinterpretq_u32_s32(a.lo) >> n),
                 vreinterpretq_s32_u32(vreinterpretq_u32_s32(a.hi) >> n) };
}
static inline vi vi_sar(vi a, int n) { return (vi){ a.lo >> n, a.hi >> n }; }
static inline vm vi_eq(vi a, vi b) { return (vm){ vceqq_s32(a.lo, b.lo), vceqq_s32(a.hi, b.hi) }; }
static inline vm vi_ge_unsigned(vi a, vi b)
{
    return (vm){ vcgeq_u32(vreinterpretq_u32_s32(a.lo), vreinterpretq_u32_s32(b.lo)),
                 vcgeq_u32(vreinterpretq_u32_s32(a.hi), vreinterpretq_u32_s32(b.hi)) };
}
static inline vi vi_from_vf(vf a) { return (vi){ vcvtnq_s32_f32(a.lo), vcvtnq_s32_f32(a.hi) }; }
static inline vf vf_from_vi(vi a) { return (vf){ vcvtq_f32_s32(a.lo), vcvtq_f32_s32(a.hi) }; }
static inline vi vi_of_bits(vf a) { return (vi){ vreinterpretq_s32_f32(a.lo), vreinterpretq_s32_f32(a.hi) }; }
static inline vf vf_of_bits(vi a) { return (vf){ vreinterpretq_f32_s32(a.lo), vreinterpretq_f32_s32(a.hi) }; }

static inline vi vi_add_pairs(vi a, vi b)
{
    return (vi){ vreinterpretq_s32_s64(vaddq_s64(vreinterpretq_s64_s32(a.lo), vreinterpretq_s64_s32(b.lo))),
                 vreinterpretq_s32_s64(vaddq_s64(vreinterpretq_s64_s32(a.hi), vreinterpretq_s64_s32(b.hi))) };
}
static inline int32x4_t vi_mul_even4(int32x4_t a, int32x4_t b)
{
    uint32x2_t x = vmovn_u64(vreinterpretq_u64_s32(a)), y = vmovn_u64(vreinterpretq_u64_s32(b));
    return vreinterpretq_s32_u64(vmull_u32(x, y));
}
static inline vi vi_mul_even(vi a, vi b)
{
    return (vi){ vi_mul_even4(a.lo, b.lo), vi_mul_even4(a.hi, b.hi) };
}
static inline vi vi_odd_to_even(vi a)
{
    return (vi){ vreinterpretq_s32_u64(vreinterpretq_u64_s32(a.lo) >> 32),
                 vreinterpretq_s32_u64(vreinterpretq_u64_s32(a.hi) >> 32) };
}
static inline vi vi_pairs(vi even, vi odd)
{
    return (vi){ vtrn1q_s32(even.lo, odd.lo), vtrn1q_s32(even.hi, odd.hi) };
}
static inline vi vi_set1_pair(uint64_t a)
{
    int32x4_t x = vreinterpretq_s32_u64(vdupq_n_u64(a));
    return (vi){ x, x };
}
static inline vi vi_xor3(vi a, vi b, vi c) { return vi_xor(vi_xor(a, b), c); }

/* The low or the high halves of two registers. */
static inline int32x4_t vi_low_pairs(int32x4_t a, int32x4_t b)
{
    return vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}
static inline int32x4_t vi_high_pairs(int32x4_t a, int32x4_t b)
{
    return vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}
static inline void vi_store_quads(uint32_t *p, vi a, vi b)
{
    vi_store(p, (vi){ vi_low_pairs(a.lo, b.lo), vi_low_pairs(a.hi, b.hi) });
    vi_store(p + VF_LANES, (vi){ vi_high_pairs(a.lo, b.lo), vi_high_pairs(a.hi, b.hi) });
}

static inline void vf_transpose4(float32x4_t x[4])
{
    int32x4_t a = vreinterpretq_s32_f32(vtrn1q_f32(x[0], x[1]));
    int32x4_t b = vreinterpretq_s32_f32(vtrn2q_f32(x[0], x[1]));
    int32x4_t c = vreinterpretq_s32_f32(vtrn1q_f32(x[2], x[3]));
    int32x4_t d = vreinterpretq_s32_f32(vtrn2q_f32(x[2], x[3]));
    x[0] = vreinterpretq_f32_s32(vi_low_pairs(a, c));
    x[1] = vreinterpretq_f32_s32(vi_low_pairs(b, d));
    x[2] = vreinterpretq_f32_s32(vi_high_pairs(a, c));
    x[3] = vreinterpretq_f32_s32(vi_high_pairs(b, d));
}
static inline void vf_transpose(vf x[VF_LANES])
{
    for (int i = 0; i < 2; i++) { /* blocks of rows 4 i .. 4 i + 3: left in a, right in b */
        vf *r = x + 4 * i;
        float32x4_t a[4] = { r[0].lo, r[1].lo, r[2].lo, r[3].lo };
        float32x4_t b[4] = { r[0].hi, r[1].hi, r[2].hi, r[3].hi };
        vf_transpose4(a);
        vf_transpose4(b);
        for (int k = 0; k < 4; k++) r[k] = (vf){ a[k], b[k] };
    }
    for (int k = 0; k < 4; k++) {
        vf top = x[k], bottom = x[4 + k];
        x[k] = (vf){ top.lo, bottom.lo };
        x[4 + k] = (vf){ top.hi, bottom.hi };
    }
}

static inline vf vf_scale2(vf a, vf n)
{
    vi i = vi_from_vf(n), half = vi_sar(i, 1), bias = vi_set1(127);
    vf s1 = vf_of_bits(vi_shl(vi_add(half, bias), 23));
    vf s2 = vf_of_bits(vi_shl(vi_add(vi_sub(i, half), bias), 23));
    return vf_mul(vf_mul(a, s1), s2);
}
static inline vf vf_scale2_bounded(vf a, vf n)
{
    return vf_mul(a, vf_of_bits(vi_shl(vi_add(vi_from_vf(n), vi_set1(127)), 23)));
}
static inline vf vf_fraction(vf x)
{
    x = vf_max(vf_set1(-126), x);
    return vf_sub(x, vf_floor(x));
}
static inline vf vf_scale2_floor(vf a, vf x)
{
    return vf_scale2_bounded(a, vf_floor(vf_max(vf_set1(-126), x)));
}

static inline float vf_sum(vf a)
{
    float32x4_t h = vaddq_f32(a.lo, a.hi);
    float32x2_t d = vadd_f32(vget_low_f32(h), vget_high_f32(h));
    return vget_lane_f32(d, 0) + vget_lane_f32(d, 1);
}
static inline float32x4_t vf_add_neighbors(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d)
{
    return vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d));
}
static inline vf vf_sum_each(const vf x[VF_LANES])
{
    vf a = { vf_add_neighbors(x[0].lo, x[1].lo, x[2].lo, x[3].lo),
             vf_add_neighbors(x[4].lo, x[5].lo, x[6].lo, x[7].lo) };
    vf b = { vf_add_neighbors(x[0].hi, x[1].hi, x[2].hi, x[3].hi),
             vf_add_neighbors(x[4].hi, x[5].hi, x[6].hi, x[7].hi) };
    return vf_add(a, b);
}
static inline float vf_hmax(vf a) { return vmaxvq_f32(vmaxq_f32(a.lo, a.hi)); }
static inline double vf_sum_double(vf a)
{
    float64x2_t x = vaddq_f64(vcvt_f64_f32(vget_low_f32(a.lo)), vcvt_f64_f32(vget_low_f32(a.hi)));
    float64x2_t y = vaddq_f64(vcvt_high_f64_f32(a.lo), vcvt_high_f64_f32(a.hi));
    return vaddvq_f64(vaddq_f64(x, y));
}

/* One number of A for the register tile: fmla takes it from lane 0, so it need not be repeated. */
typedef float ve;
static inline ve ve_load(const float *p) { return *p; }
static inline vf vf_fma_element(ve x, vf b, vf c)
{
    __asm__("fmla %0.4s, %1.4s, %2.s[0]" : "+w"(c.lo) : "w"(b.lo), "w"(x));
    __asm__("fmla %0.4s, %1.4s, %2.s[0]" : "+w"(c.hi) : "w"(b.hi), "w"(x));
    return c;
}

/* ---- products of small matrices, see matrix_tile.h ---- */

#define VI_MATRIX

/* Eight bytes of each of two rows of A. */
typedef int8x16_t vr;
static inline vr vr_load(const void *first, const void *second)
{
    return vcombine_s8(vld1_s8(first), vld1_s8(second));
}
/* a: the sums of columns 0 .. 3, b: of columns 4 .. 7. They become the first and the second row. */
static inline void vi_blocks_to_rows(vi *a, vi *b)
{
    vi first = { vi_low_pairs(a->lo, a->hi), vi_low_pairs(b->lo, b->hi) };
    *b = (vi){ vi_high_pairs(a->lo, a->hi), vi_high_pairs(b->lo, b->hi) };
    *a = first;
}
/* Stores the lanes of a and b alternately. */
static inline void vi_store_zipped(void *p, vi a, vi b)
{
    vi_store(p, (vi){ vzip1q_s32(a.lo, b.lo), vzip2q_s32(a.lo, b.lo) });
    vi_store((char *)p + 32, (vi){ vzip1q_s32(a.hi, b.hi), vzip2q_s32(a.hi, b.hi) });
}

#endif
