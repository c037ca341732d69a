/* Decimal text to floating point and back, correctly rounded, whatever the locale. */
#ifndef SES_BASE_NUMBER_H
#define SES_BASE_NUMBER_H

#include "sesame/types.h"

/* text: -?digits[.digits][(e|E)[+-]digits] and nothing else (the caller has checked). False: out of
 * range. */
bool ses_parse_double(const char *text, size_t n, double *out);

/* The shortest text that reads back as the same number, the nearest to it if there are several, in the form
 * Python gives floats: 1.0, 0.0001, 1e-05, 1e+16, -0.0. x is finite. Returns the bytes before the NUL. */
enum { SES_NUMBER_CHARS = 32 };
size_t ses_format_double(double x, char out[SES_NUMBER_CHARS]);
/* Shortest for a float: 0.1, not 0.10000000149011612. */
size_t ses_format_float(float x, char out[SES_NUMBER_CHARS]);

/* The digits of that text as an integer without zeros at its end: |x| reads back from digits * 10^exp. */
uint64_t ses_double_digits(double x, int *exp);

/* The table behind both, see pow10.c. */
enum { SES_POW10_MIN = -342, SES_POW10_MAX = 324 };
typedef struct ses_pow10 {
    uint64_t hi, lo;
} ses_pow10;
extern const ses_pow10 ses_pow10_table[SES_POW10_MAX - SES_POW10_MIN + 1];

#endif
