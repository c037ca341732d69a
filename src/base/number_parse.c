/* Decimal text to double, correctly rounded (after Eisel and Lemire; exact fallback to strtod). */
#define _GNU_SOURCE /* strtod_l */
#include "number.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

/* A decimal number w * 10^exp, truncated to 19 digits; `truncated`: nonzero digits were dropped. */
typedef struct decimal {
    uint64_t w;
    int64_t exp;
    bool negative, truncated;
} decimal;

enum { DIGITS = 19 /* always fit 64 bits */, EXACT = 22 /* 10^22 is a double */, EXP_LIMIT = 1 << 30 };

static int64_t read_exponent(const char *s, const char *end)
{
    int64_t exp = 0;
    bool negative = s < end && *s == '-';
    if (s < end && (*s == '-' || *s == '+')) s++;
    for (; s < end; s++)
        if (exp < EXP_LIMIT) exp = 10 * exp + (*s - '0');
    return negative ? -exp : exp;
}

static decimal read_decimal(const char *s, const char *end)
{
    decimal d = { 0 };
    int digits = 0;
    bool point = false;
    if (s < end && *s == '-') d.negative = true, s++;
    for (; s < end && *s != 'e' && *s != 'E'; s++) {
        if (*s == '.') {
            point = true;
            continue;
        }
        if (digits < DIGITS) {
            d.w = 10 * d.w + (uint64_t)(*s - '0');
            digits += d.w != 0; /* leading zeros do not count */
            d.exp -= point;
        } else {
            d.truncated = d.truncated || *s != '0';
            d.exp += !point;
        }
    }
    if (s < end) d.exp += read_exponent(s + 1, end);
    return d;
}

/* Rounds w * 10^exp to the nearest double by one 64 x 128 bit product; w > 0. False if the error of the
 * product leaves the rounding open, or if the result is subnormal: both are rare and left to read_slowly. */
static bool round_product(uint64_t w, int exp, double *out)
{
    ses_pow10 g = ses_pow10_table[exp - SES_POW10_MIN];
    int shift = __builtin_clzll(w);
    w <<= shift;
    u128 low = (u128)w * g.lo, high = (u128)w * g.hi + (uint64_t)(low >> 64);
    /* The value is high * 2^(binary + 64). The table is rounded up by less than 1 and high is truncated, so
     * its error is less than 1, or 2 after the shift. */
    int binary = ((217706 * exp) >> 16) - 127 - shift; /* floor(log2(10^exp)) - 127 - shift */
    if (!(high >> 127)) high <<= 1, binary--;
    uint64_t kept = (uint64_t)(high >> 75);
    u128 rest = high & (((u128)1 << 75) - 1), half = (u128)1 << 74;
    if (rest + 2 >= half && rest <= half + 2) return false;
    kept += rest > half;
    int biased = binary + 64 + 75 + 52 + 1023;
    if (kept >> 53) kept >>= 1, biased++;
    if (biased < 1) return false;
    if (biased > 2046) return *out = INFINITY, true;
    uint64_t bits = (kept & 0xFFFFFFFFFFFFFu) | (uint64_t)biased << 52;
    memcpy(out, &bits, sizeof bits);
    return true;
}

/* The magnitude by strtod, exact but slow, from at most 800 digits. No halfway point between doubles has as
 * many digits: of the remaining digits it only matters whether any is nonzero. */
static double read_slowly(const char *s, const char *end)
{
    char text[840];
    size_t n = 0;
    int64_t exp = 0;
    bool point = false, more = false;
    for (; s < end && *s != 'e' && *s != 'E'; s++) {
        if (*s == '.') point = true;
        if (*s == '.' || *s == '-') continue;
        if (n < 800) {
            if (n || *s != '0') text[n++] = *s;
            exp -= point;
        } else {
            more = more || *s != '0';
            exp += !point;
        }
    }
    if (s < end) exp += read_exponent(s + 1, end);
    if (more) text[n++] = '1', exp--;
    snprintf(text + n, sizeof text - n, "e%lld", (long long)exp);
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double x = c ? strtod_l(text, NULL, c) : NAN;
    if (c) freelocale(c);
    return x;
}

bool ses_parse_double(const char *text, size_t n, double *out)
{
    static const double ten[EXACT + 1] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                           1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                           1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    const char *end = text + n;
    decimal d = read_decimal(text, end);
    double x, y;
    if (d.w == 0 || d.exp < SES_POW10_MIN) { /* below half of the smallest double */
        x = 0;
    } else if (d.exp > 308) {
        return false;
    } else if (!d.truncated && d.w <= (uint64_t)1 << 53 && d.exp >= -EXACT &&
               d.exp <= EXACT) { /* one rounding */
        x = d.exp < 0 ? (double)d.w / ten[-d.exp] : (double)d.w * ten[d.exp];
    } else if (!round_product(d.w, (int)d.exp, &x) ||
               (d.truncated && (!round_product(d.w + 1, (int)d.exp, &y) || x != y))) {
        x = read_slowly(text, end);
    }
    *out = d.negative ? -x : x;
    return isfinite(x);
}

static size_t skip_digits(const char *s, size_t n, size_t i)
{
    while (i < n && s[i] >= '0' && s[i] <= '9') i++;
    return i;
}

bool ses_parse_number(const char *text, size_t n, double *out)
{
    size_t start = n && *text == '-', i = skip_digits(text, n, start);
    if (i == start) return false;
    if (i < n && text[i] == '.') {
        start = i + 1;
        i = skip_digits(text, n, start);
        if (i == start) return false;
    }
    if (i < n && (text[i] == 'e' || text[i] == 'E')) {
        start = i + 1;
        if (start < n && (text[start] == '+' || text[start] == '-')) start++;
        i = skip_digits(text, n, start);
        if (i == start) return false;
    }
    return i == n && ses_parse_double(text, n, out);
}
