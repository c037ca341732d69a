/* Vectors of 16 floats without any processor's instructions, for tests of kernels on machines that lack them.
 * The results have the bits of vec_avx512.h; vec_avx2.h documents the functions. */
#ifndef SES_KERNEL_VEC_PLAIN_H
#define SES_KERNEL_VEC_PLAIN_H

#include "base/half.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define VF_LANES 16

typedef float vf __attribute__((vector_size(64)));
typedef int32_t vi __attribute__((vector_size(64)));
typedef uint32_t vu __attribute__((vector_size(64)));
typedef uint64_t vp __attribute__((vector_size(64)));
typedef vi vm; /* -1 or 0 per lane */

static inline vi vi_load(const void *p)
{
    vi a;
    memcpy(&a, p, sizeof a);
    return a;
}
static inline void vi_store(void *p, vi a) { memcpy(p, &a, sizeof a); }
static inline vi vi_set1(int32_t a) { return a - (vi){ 0 }; }
static inline vi vi_of_bits(vf a) { return (vi)a; }
static inline vf vf_of_bits(vi a) { return (vf)a; }

static inline vm vm_part(int64_t n)
{
    vm m;
    for (int i = 0; i < VF_LANES; i++) m[i] = i < n ? -1 : 0;
    return m;
}

static inline vf vf_zero(void) { return (vf){ 0 }; }
static inline vf vf_set1(float a)
{
    vf v;
    for (int i = 0; i < VF_LANES; i++) v[i] = a;
    return v;
}
static inline vf vf_load_part(const float *p, int64_t n)
{
    vf a = vf_zero();
    memcpy(&a, p, (size_t)n * sizeof *p);
    return a;
}
static inline void vf_store_part(float *p, vf a, int64_t n) { memcpy(p, &a, (size_t)n * sizeof *p); }
static inline vf vf_load(const float *p) { return vf_load_part(p, VF_LANES); }
static inline void vf_store(float *p, vf a) { vf_store_part(p, a, VF_LANES); }
static inline vf vf_load_f16(const uint16_t *p)
{
    vf a;
    for (int i = 0; i < VF_LANES; i++) a[i] = ses_f16_to_f32(p[i]);
    return a;
}
static inline void vf_store_f16(uint16_t *p, vf a)
{
    for (int i = 0; i < VF_LANES; i++) p[i] = ses_f32_to_f16(a[i]);
}
static inline vf vf_load_bf16(const uint16_t *p)
{
    vf a;
    for (int i = 0; i < VF_LANES; i++) a[i] = ses_bf16_to_f32(p[i]);
    return a;
}
static inline vf vf_load_i8(const int8_t *p)
{
    vf a;
    for (int i = 0; i < VF_LANES; i++) a[i] = p[i];
    return a;
}

static inline vf vf_add(vf a, vf b) { return a + b; }
static inline vf vf_sub(vf a, vf b) { return a - b; }
static inline vf vf_mul(vf a, vf b) { return a * b; }
static inline vf vf_div(vf a, vf b) { return a / b; }
static inline vf vf_sqrt(vf a)
{
    for (int i = 0; i < VF_LANES; i++) a[i] = sqrtf(a[i]);
    return a;
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    for (int i = 0; i < VF_LANES; i++) c[i] = fmaf(a[i], b[i], c[i]);
    return c;
}
typedef vf ve;
static inline ve ve_load(const float *p) { return vf_set1(*p); }
static inline vf vf_fma_element(ve x, vf b, vf c) { return vf_fma(x, b, c); }
static inline vf vf_fnma(vf a, vf b, vf c) { return vf_fma(-a, b, c); }
static inline vf vf_select(vm m, vf yes, vf no) { return (vf)(((vi)yes & m) | ((vi)no & ~m)); }
static inline vf vf_max(vf a, vf b) { return vf_select(a > b, a, b); }
static inline vf vf_min(vf a, vf b) { return vf_select(a < b, a, b); }
static inline vf vf_round(vf a)
{
    for (int i = 0; i < VF_LANES; i++) a[i] = nearbyintf(a[i]);
    return a;
}
static inline vf vf_floor(vf a)
{
    for (int i = 0; i < VF_LANES; i++) a[i] = floorf(a[i]);
    return a;
}
static inline vf vf_abs(vf a) { return (vf)((vi)a & INT32_MAX); }
static inline vf vf_copysign(vf a, vf sign) { return (vf)(((vi)a & INT32_MAX) | ((vi)sign & INT32_MIN)); }

static inline vm vf_lt(vf a, vf b) { return a < b; }
static inline vm vf_le(vf a, vf b) { return a <= b; }
static inline vm vf_eq(vf a, vf b) { return a == b; }
static inline int vm_bits(vm m)
{
    int bits = 0;
    for (int i = 0; i < VF_LANES; i++) bits |= (m[i] & 1) << i;
    return bits;
}

/* Integers wrap around. */
static inline vi vi_add(vi a, vi b) { return (vi)((vu)a + (vu)b); }
static inline vi vi_sub(vi a, vi b) { return (vi)((vu)a - (vu)b); }
static inline vi vi_max(vi a, vi b) { return (a & (a > b)) | (b & ~(a > b)); }
static inline vi vi_and(vi a, vi b) { return a & b; }
static inline vi vi_xor(vi a, vi b) { return a ^ b; }
static inline vi vi_shl(vi a, int n) { return (vi)((vu)a << n); }
static inline vi vi_shr(vi a, int n) { return (vi)((vu)a >> n); }
static inline vi vi_sar(vi a, int n) { return a >> n; }
static inline vm vi_eq(vi a, vi b) { return a == b; }
static inline vm vi_ge_unsigned(vi a, vi b) { return (vm)((vu)a >= (vu)b); }
static inline vi vi_from_vf(vf a) /* INT32_MIN if a is out of range or NaN */
{
    vi v;
    for (int i = 0; i < VF_LANES; i++) v[i] = fabsf(a[i]) < 0x1p31f ? (int32_t)nearbyintf(a[i]) : INT32_MIN;
    return v;
}
static inline vf vf_from_vi(vi a)
{
    vf v;
    for (int i = 0; i < VF_LANES; i++) v[i] = (float)a[i];
    return v;
}

static inline vi vi_add_pairs(vi a, vi b) { return (vi)((vp)a + (vp)b); }
static inline vi vi_mul_even(vi a, vi b) { return (vi)(((vp)a & UINT32_MAX) * ((vp)b & UINT32_MAX)); }
static inline vi vi_odd_to_even(vi a) { return (vi)((vp)a >> 32); }
static inline vi vi_pairs(vi even, vi odd) { return (vi)(((vp)even & UINT32_MAX) | (vp)odd << 32); }
static inline vi vi_set1_pair(uint64_t a) { return (vi)(a - (vp){ 0 }); }
static inline vi vi_xor3(vi a, vi b, vi c) { return a ^ b ^ c; }

static inline void vi_store_quads(uint32_t *p, vi a, vi b)
{
    for (int i = 0; i < VF_LANES / 2; i++) { /* pair i */
        uint32_t *to = p + i % 2 * VF_LANES + i / 2 * 4;
        to[0] = (uint32_t)a[2 * i], to[1] = (uint32_t)a[2 * i + 1];
        to[2] = (uint32_t)b[2 * i], to[3] = (uint32_t)b[2 * i + 1];
    }
}

static inline void vf_transpose(vf x[VF_LANES])
{
    vf y[VF_LANES];
    for (int i = 0; i < VF_LANES; i++)
        for (int j = 0; j < VF_LANES; j++) y[i][j] = x[j][i];
    memcpy(x, y, sizeof y);
}

static inline vf vf_choose(const float table[VF_LANES], vf a)
{
    vi bits = (vi)a;
    for (int i = 0; i < VF_LANES; i++) a[i] = table[bits[i] & (VF_LANES - 1)];
    return a;
}

static inline vf vf_scale2(vf a, vf n)
{
    for (int i = 0; i < VF_LANES; i++) a[i] = ldexpf(a[i], (int)fmaxf(-1e4f, fminf(1e4f, floorf(n[i]))));
    return a;
}
static inline vf vf_scale2_bounded(vf a, vf n) { return vf_scale2(a, n); }
static inline vf vf_scale2_floor(vf a, vf x) { return vf_scale2(a, x); }
static inline vf vf_fraction(vf x) /* the difference is rounded down, too */
{
    for (int i = 0; i < VF_LANES; i++) {
        double exact = isinf(x[i]) ? 0 : (double)x[i] - floor((double)x[i]);
        float near = (float)exact;
        x[i] = (double)near > exact ? nextafterf(near, -1) : near;
    }
    return x;
}

static inline void prefetch_write(const float *p) { __builtin_prefetch(p, 1); }

static inline float vf_sum(vf a)
{
    for (int half = VF_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) a[i] += a[i + half];
    return a[0];
}
static inline vf vf_sum_each(const vf x[VF_LANES])
{
    vf sum;
    for (int i = 0; i < VF_LANES; i++) {
        float part[4]; /* sums of four lanes */
        for (int q = 0; q < 4; q++) {
            vf r = x[i];
            part[q] = (r[4 * q] + r[4 * q + 2]) + (r[4 * q + 1] + r[4 * q + 3]);
        }
        sum[i] = (part[0] + part[1]) + (part[2] + part[3]);
    }
    return sum;
}
static inline float vf_hmax(vf a)
{
    float max = a[0];
    for (int i = 1; i < VF_LANES; i++) max = a[i] > max ? a[i] : max;
    return max;
}
static inline double vf_sum_double(vf a)
{
    double d[VF_LANES];
    for (int i = 0; i < VF_LANES; i++) d[i] = a[i];
    for (int half = VF_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) d[i] += d[i + half];
    return d[0];
}

#endif
