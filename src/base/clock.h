/* Monotonic clock. Any thread. */
#ifndef SES_BASE_CLOCK_H
#define SES_BASE_CLOCK_H

#include <stdint.h>

double ses_seconds(void);    /* since an arbitrary point in time */
uint64_t ses_clock_ns(void); /* the same in nanoseconds */

#endif
