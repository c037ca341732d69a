/* A curve as a row of blocks, and times for people. */
#ifndef SES_CLI_CURVE_H
#define SES_CLI_CURVE_H

#include "term.h"

typedef struct ses_sparkline { /* a curve of any length in so many columns; zeroed: empty */
    double sum[64];
    int64_t count[64];
    int64_t each, n; /* values a column */
} ses_sparkline;
void ses_sparkline_add(ses_sparkline *s, double x);
/* "" without Unicode. */
const char *ses_sparkline_text(const ses_sparkline *s, const ses_term *t, char buf[SES_BAR_SIZE]);
const char *ses_duration_text(char buf[SES_NUMBER_TEXT], double seconds); /* "1m02s" */

#endif
