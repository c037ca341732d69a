#define _GNU_SOURCE /* strtod_l */
#include "number.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool ses_read_real(const char *text, size_t n, double *out)
{
    char digits[1100];
    if (n >= sizeof digits) return false;
    memcpy(digits, text, n);
    digits[n] = 0;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    *out = strtod_l(digits, NULL, c);
    freelocale(c);
    return isfinite(*out);
}
