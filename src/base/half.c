/* Rounding of float and double to 16-bit floats. */
#include "half.h"

/* x as a 16-bit float with `mant` mantissa bits; bias: exponent bias, also the largest exponent. */
static uint16_t to_16bit(double x, int mant, int bias)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    uint64_t frac = u & 0xFFFFFFFFFFFFFu;
    int exp = (int)(u >> 52 & 0x7FF);
    uint32_t sign = (uint32_t)(u >> 63) << 15, inf = (uint32_t)(2 * bias + 1) << mant;
    if (exp == 0x7FF && frac)
        return (uint16_t)(sign | inf | 1u << (mant - 1) | (uint32_t)(frac >> (52 - mant)));
    if (exp == 0)
        return (uint16_t)sign; /* a subnormal double is far below half of the smallest 16-bit float */
    frac |= (uint64_t)1 << 52;
    int biased = exp - 1023 + bias, drop = 52 - mant;
    if (biased < 1) drop += 1 - biased, biased = 1; /* subnormal result */
    if (drop > 54) return (uint16_t)sign;
    uint64_t kept = frac >> drop, rest = frac & (((uint64_t)1 << drop) - 1), half = (uint64_t)1 << (drop - 1);
    kept += rest > half || (rest == half && (kept & 1));
    /* The leading 1 of a normal number in `kept` adds one to the exponent; so does a carry. */
    uint64_t bits = kept + ((uint64_t)(biased - 1) << mant);
    return (uint16_t)(sign | (bits > inf ? inf : (uint32_t)bits));
}

uint16_t ses_f64_to_f16(double x) { return to_16bit(x, 10, 15); }
uint16_t ses_f64_to_bf16(double x) { return to_16bit(x, 7, 127); }
uint16_t ses_f32_to_f16(float x) { return to_16bit(x, 10, 15); }
