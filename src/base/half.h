/* Conversion of single numbers between float formats. To a narrower format: round to nearest, ties to even;
 * overflow becomes infinity; NaN stays NaN. */
#ifndef SES_BASE_HALF_H
#define SES_BASE_HALF_H

#include "sesame/base.h"

#include <string.h>

static inline uint32_t ses_f32_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float ses_f32_from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline float ses_bf16_to_f32(uint16_t h) { return ses_f32_from_bits((uint32_t)h << 16); }

static inline uint16_t ses_f32_to_bf16(float x)
{
    uint32_t u = ses_f32_bits(x);
    if ((u & 0x7FFFFFFF) > 0x7F800000)
        return (uint16_t)(u >> 16 | 0x40); /* quiet NaN: the payload could become 0 */
    return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

/* Branchless, so that loops vectorize: computes all three cases and selects one. */
static inline float ses_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, bits = h & 0x7FFF;
    uint32_t tiny = ses_f32_bits((float)(int32_t)bits * 0x1p-24f); /* subnormal: exact */
    uint32_t u = bits < 0x0400 ? tiny : (bits << 13) + ((127 - 15) << 23);
    u = bits >= 0x7C00 ? 0x7F800000 | bits << 13 : u; /* infinity, NaN */
    return ses_f32_from_bits(sign | u);
}

uint16_t ses_f32_to_f16(float x);
/* One rounding; converting through float would round twice. */
uint16_t ses_f64_to_f16(double x);
uint16_t ses_f64_to_bf16(double x);

#endif
