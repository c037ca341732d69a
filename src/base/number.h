/* Conversion between decimal text and floating point: correctly rounded, independent of the locale.
 * Thread-safe. */
#ifndef SES_BASE_NUMBER_H
#define SES_BASE_NUMBER_H

#include "sesame/base.h"

/* Parses -?digits[.digits][(e|E)[+-]digits]; the caller has checked the syntax. False: out of range. */
bool ses_parse_double(const char *text, size_t n, double *out);
/* The same with a check of the syntax. False: not a number, or out of range. */
bool ses_parse_number(const char *text, size_t n, double *out);

/* Writes the shortest text that reads back as the same number, the closest one if there are several, in
 * Python's format: 1.0, 0.0001, 1e-05, 1e+16, -0.0. x must be finite. Returns the length without the NUL. */
enum { SES_NUMBER_CHARS = 32 };
size_t ses_format_double(double x, char out[SES_NUMBER_CHARS]);
/* Shortest text for a float: 0.1, not 0.10000000149011612. */
size_t ses_format_float(float x, char out[SES_NUMBER_CHARS]);

/* The digits of that text as an integer without trailing zeros: |x| = digits * 10^exp after rounding. */
uint64_t ses_double_digits(double x, int *exp);

/* Powers of ten; see pow10.c. */
enum { SES_POW10_MIN = -342, SES_POW10_MAX = 324 };
typedef struct ses_pow10 {
    uint64_t hi, lo;
} ses_pow10;
extern const ses_pow10 ses_pow10_table[SES_POW10_MAX - SES_POW10_MIN + 1];

#endif
