/* int8 additions to vec_plain.h; vec_i8_avx512.h documents the functions. */
#ifndef SES_KERNEL_VEC_I8_PLAIN_H
#define SES_KERNEL_VEC_I8_PLAIN_H

#include "kernel/kernel.h"
#include "vec_plain.h"

typedef vi vq;
static inline vq vq_load(const void *p)
{
    int32_t x;
    memcpy(&x, p, sizeof x);
    return vi_set1(x);
}

/* Bytes of rows are unsigned with a zero point of 128, signed without. */
static inline vi vi_dot4(vi c, vq a, vi b)
{
    uint8_t x[64];
    int8_t y[64];
    vi_store(x, a), vi_store(y, b);
    for (int i = 0; i < 64; i++) c[i / 4] += (SES_I8_ZERO ? x[i] : (int8_t)x[i]) * y[i];
    return c;
}
static inline vi vi_dot2(vi c, vq a, vi b)
{
    int16_t x[32], y[32];
    vi_store(x, a), vi_store(y, b);
    for (int i = 0; i < 32; i++) c[i / 2] += x[i] * y[i];
    return c;
}
static inline int dot_kind(void) { return 1; }

typedef vi vi_bytes;
static inline vi_bytes vi_split_bytes(vi b) { return b; }
static inline vi vi_dot4_plain(vi c, vq a, vi_bytes b) { return vi_dot4(c, a, b); }
static inline vi vi_dot4_each(vi c, vi a, vq b) { return vi_dot4(c, a, b); }
static inline vi vi_dot4_each_plain(vi c, vi a, vq b) { return vi_dot4_plain(c, a, vi_split_bytes(b)); }
typedef vi vi_words;
static inline vi_words vi_split_words(vi b) { return b; }
static inline vi vi_dot2_plain(vi c, vq a, vi_words b) { return vi_dot2(c, a, b); }

static inline void vi_store_bytes(uint8_t *p, vi a)
{
    for (int i = 0; i < VF_LANES; i++) p[i] = (uint8_t)(a[i] + SES_I8_ZERO);
}
static inline void vi_store_bytes4(uint8_t *p, vi a, vi b, vi c, vi d)
{
    vi_store_bytes(p, a), vi_store_bytes(p + VF_LANES, b);
    vi_store_bytes(p + 2 * VF_LANES, c), vi_store_bytes(p + 3 * VF_LANES, d);
}
static inline void vi_store_signed(int8_t *p, vi a)
{
    for (int i = 0; i < VF_LANES; i++) p[i] = (int8_t)a[i];
}
static inline vi vi_load_bytes(const int8_t *p)
{
    vi a;
    for (int i = 0; i < VF_LANES; i++) a[i] = p[i];
    return a;
}
static inline vi vi_load_quantized(const uint8_t *p)
{
    vi a;
    for (int i = 0; i < VF_LANES; i++) a[i] = (int8_t)(p[i] - SES_I8_ZERO);
    return a;
}
static inline void vi_store_words(int16_t *p, vi a)
{
    for (int i = 0; i < VF_LANES; i++) p[i] = (int16_t)a[i];
}
static inline void vi_store_words2(int16_t *p, vi a, vi b)
{
    vi_store_words(p, a), vi_store_words(p + VF_LANES, b);
}

static inline void vi_store_halves(uint8_t *high, uint8_t *low, const vi a[4])
{
    for (int i = 0; i < 4 * VF_LANES; i++) {
        int32_t x = a[i / 4 % 4][i / VF_LANES * 4 + i % 4];
        high[i] = (uint8_t)(x / 128), low[i] = (uint8_t)(x % 128);
    }
}

#endif
