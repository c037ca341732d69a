/* int8 additions to vec_plain.h; vec_i8_avx512.h documents the functions. */
#ifndef SES_KERNEL_VEC_I8_PLAIN_H
#define SES_KERNEL_VEC_I8_PLAIN_H

#include "vec_plain.h"

static inline vi vi_dot4(vi c, vi a, vi b)
{
    uint8_t x[64];
    int8_t y[64];
    vi_store(x, a), vi_store(y, b);
    for (int i = 0; i < 64; i++) c[i / 4] += x[i] * y[i];
    return c;
}
static inline vi vi_dot2(vi a, vi b)
{
    int16_t x[32], y[32];
    vi c = { 0 };
    vi_store(x, a), vi_store(y, b);
    for (int i = 0; i < 32; i++) c[i / 2] += x[i] * y[i];
    return c;
}
static inline vi vi_dot2_add(vi c, vi a, vi b) { return vi_add(c, vi_dot2(a, b)); }
static inline int has_vnni(void) { return 1; }

static inline vi vi_even_bytes(vi a)
{
    int16_t x[32];
    vi_store(x, a);
    for (int i = 0; i < 32; i++) x[i] = (int8_t)x[i];
    return vi_load(x);
}
static inline vi vi_odd_bytes(vi a)
{
    int16_t x[32];
    vi_store(x, a);
    for (int i = 0; i < 32; i++) x[i] = (int16_t)(x[i] >> 8);
    return vi_load(x);
}
static inline vi vi_shr16(vi a)
{
    uint16_t x[32];
    vi_store(x, a);
    for (int i = 0; i < 32; i++) x[i] >>= 8;
    return vi_load(x);
}

static inline void vi_store_bytes(uint8_t *p, vi a)
{
    for (int i = 0; i < VF_LANES; i++) p[i] = (uint8_t)(a[i] + 128);
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
static inline vi vi_load_unsigned(const uint8_t *p)
{
    vi a;
    for (int i = 0; i < VF_LANES; i++) a[i] = p[i];
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

#endif
