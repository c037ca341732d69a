/* Shortest decimal text of a binary float by Schubfach (R. Giulietti, "The Schubfach way to render doubles",
 * 2020).
 *
 * The numbers that round to x = c * 2^q form an interval; k is the largest exponent for which some s * 10^k
 * can lie in it. The result is one of at most four candidates: s and s + 1 at k + 1 and at k. The ends of the
 * interval and x are scaled by 10^-k to integers with two extra bits, the last of them sticky, which suffices
 * for exact comparisons. */
#include "number.h"

#include <string.h>

__extension__ typedef unsigned __int128 u128;

typedef struct shortest {
    uint64_t digits;
    int exp;
} shortest;

static int floor_log10_pow2(int e) { return (e * 1262611) >> 22; }
static int floor_log10_pow2_34(int e) { return (e * 1262611 - 524031) >> 22; } /* floor(log10(3/4 * 2^e)) */
static int floor_log2_pow10(int e) { return (e * 1741647) >> 19; }

static uint64_t scale(ses_pow10 g, uint64_t c)
{
    u128 low = (u128)c * g.lo, high = (u128)c * g.hi + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* c: significand, q: binary exponent; step: x is a power of two, so the next lower float is closer. */
static shortest shorten(uint64_t c, int q, bool step)
{
    int k = step ? floor_log10_pow2_34(q) : floor_log10_pow2(q);
    int h = q + floor_log2_pow10(-k) + 1;
    ses_pow10 g = ses_pow10_table[-k - SES_POW10_MIN];
    uint64_t mid = scale(g, (4 * c) << h);
    uint64_t low = scale(g, (4 * c - 2 + step) << h) + (c & 1), high = scale(g, (4 * c + 2) << h) - (c & 1);
    uint64_t s = mid / 4, t = s / 10;
    if (s >= 10) {
        bool down = low <= 40 * t, up = 40 * t + 40 <= high;
        if (down != up) return (shortest){ t + up, k + 1 };
    }
    bool down = low <= 4 * s, up = 4 * s + 4 <= high;
    if (down != up) return (shortest){ s + up, k };
    uint64_t half = 4 * s + 2;
    return (shortest){ s + (mid > half || (mid == half && (s & 1))), k };
}

/* Writes the digits of x so that they end before `end`; returns the first one. */
static char *put_digits(uint64_t x, char *end)
{
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
        "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
        "8081828384858687888990919293949596979899";
    uint32_t low;
    for (; x > UINT32_MAX; x /= 100) end -= 2, memcpy(end, pairs + 2 * (x % 100), 2);
    for (low = (uint32_t)x; low >= 100; low /= 100) end -= 2, memcpy(end, pairs + 2 * (low % 100), 2);
    if (low >= 10) return memcpy(end - 2, pairs + 2 * low, 2);
    *--end = (char)('0' + low);
    return end;
}

static char *put_exponent(char *o, int exp)
{
    *o++ = 'e';
    *o++ = exp < 0 ? '-' : '+';
    if (exp < 0) exp = -exp;
    if (exp >= 100) *o++ = (char)('0' + exp / 100);
    *o++ = (char)('0' + exp / 10 % 10);
    *o++ = (char)('0' + exp % 10);
    return o;
}

static char *put(char *o, const char *s, int n) { return (char *)memcpy(o, s, (size_t)n) + n; }

/* Python's repr: fixed notation from 1e-4 to below 1e16, else an exponent of at least two digits. */
static size_t format(bool negative, shortest d, char *out)
{
    static const char zeros[] = "0000000000000000";
    char digit[24], *end = digit + sizeof digit, *s = put_digits(d.digits, end), *o = out;
    while (end - s > 1 && end[-1] == '0') end--, d.exp++;
    int n = (int)(end - s), point = n + d.exp; /* point: digits before the decimal point */
    if (negative) *o++ = '-';
    if (point > -4 && point <= 0) {
        o = put(put(o, "0.", 2), zeros, -point);
        o = put(o, s, n);
    } else if (point > 0 && point < n) {
        o = put(o, s, point);
        *o++ = '.';
        o = put(o, s + point, n - point);
    } else if (point > 0 && point <= 16) {
        o = put(put(o, s, n), zeros, point - n);
        o = put(o, ".0", 2);
    } else {
        *o++ = s[0];
        if (n > 1) *o++ = '.';
        o = put_exponent(put(o, s + 1, n - 1), point - 1);
    }
    *o = 0;
    return (size_t)(o - out);
}

static shortest shorten_real(uint64_t bits)
{
    uint64_t frac = bits & 0xFFFFFFFFFFFFFu;
    int exp = (int)(bits >> 52 & 0x7FF);
    if (exp) return shorten(frac | (uint64_t)1 << 52, exp - 1075, frac == 0 && exp > 1);
    return frac ? shorten(frac, -1074, false) : (shortest){ 0, 0 };
}

size_t ses_format_double(double x, char out[SES_NUMBER_CHARS])
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return format(bits >> 63, shorten_real(bits), out);
}

uint64_t ses_double_digits(double x, int *exp)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    shortest d = shorten_real(bits);
    while (d.digits && d.digits % 10 == 0) d.digits /= 10, d.exp++;
    *exp = d.exp;
    return d.digits;
}

size_t ses_format_float(float x, char out[SES_NUMBER_CHARS])
{
    uint32_t bits, frac;
    memcpy(&bits, &x, sizeof bits);
    frac = bits & 0x7FFFFF;
    int exp = (int)(bits >> 23 & 0xFF);
    shortest d = { 0, 0 };
    if (exp)
        d = shorten(frac | 1u << 23, exp - 150, frac == 0 && exp > 1);
    else if (frac)
        d = shorten(frac, -149, false);
    /* The only float whose shortest text, 7.038531e-26, gives its neighbor if it is read as a double and then
     * rounded to float. */
    if ((bits & 0x7FFFFFFF) == 0x15AE43FD) d = (shortest){ 703853069, -34 };
    return format(bits >> 31, d, out);
}
