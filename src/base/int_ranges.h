/* Lists of numbers as options give them: "0,4,9-12,-1". Thread-safe. */
#ifndef SES_BASE_INT_RANGES_H
#define SES_BASE_INT_RANGES_H

#include "sesame/err.h"

/* Parses numbers and ranges of numbers from 0 on, separated by commas, into out [max]; *n: how many. A number
 * may be negative, a range cannot. The order and repeated numbers are kept. Fails (SES_EUSAGE) for another
 * text, and for more than max numbers. */
bool ses_int_ranges_parse(const char *text, int64_t *out, size_t max, size_t *n, ses_err *e);

#endif
