/* Numbers as texts for people. */
#include "number_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *ses_grouped_text(char buf[SES_NUMBER_TEXT], int64_t n)
{
    char digits[SES_NUMBER_TEXT];
    snprintf(digits, sizeof digits, "%" PRId64, n);
    size_t len = strlen(digits), sign = n < 0, at = 0;
    if (len + (len - 1) / 3 >= SES_NUMBER_TEXT) return memcpy(buf, digits, len + 1);
    for (size_t i = 0; i < len; i++) {
        if (i > sign && (len - i) % 3 == 0) buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = 0;
    return buf;
}

const char *ses_flops_text(char buf[SES_NUMBER_TEXT], double flops)
{
    snprintf(buf, SES_NUMBER_TEXT, "%.3g", flops);
    char *plus = strchr(buf, '+');
    if (plus) { /* "6.43e+19", "1e+09" */
        size_t zeros = 1 + strspn(plus + 1, "0");
        memmove(plus, plus + zeros, strlen(plus + zeros) + 1);
    }
    return buf;
}
