/* Monotonic clock. Any thread. */
#ifndef SES_BASE_CLOCK_H
#define SES_BASE_CLOCK_H

double ses_seconds(void); /* since an arbitrary point in time */

#endif
