/* A curve as a row of blocks, and times for people. */
#ifndef SES_CLI_CURVE_H
#define SES_CLI_CURVE_H

#include "term.h"

typedef struct ses_spark { /* a curve of any length in so many columns; zeroed: empty */
    double sum[64];
    int64_t count[64];
    int64_t each, n; /* values a column */
} ses_spark;
void ses_spark_add(ses_spark *s, double x);
/* "" without Unicode. */
const char *ses_spark_text(const ses_spark *s, const ses_term *t, char buf[SES_BAR_SIZE]);
const char *ses_time_text(char buf[SES_HUMAN], double seconds); /* "1m02s" */

#endif
