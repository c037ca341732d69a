/* Decimal text to floating point and back, correctly rounded, whatever the locale. */
#ifndef SES_BASE_NUMBER_H
#define SES_BASE_NUMBER_H

#include "sesame/types.h"

/* text: -?digits[.digits][(e|E)[+-]digits], nothing else (the caller has checked). False: out of range. */
bool ses_read_real(const char *text, size_t n, double *out);

#endif
