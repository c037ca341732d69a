/* Sparklines (a curve as a row of block characters) and durations as text.
 * Text is written into a buffer of the caller. No state is shared between threads. */
#ifndef SES_CLI_SPARKLINE_H
#define SES_CLI_SPARKLINE_H

#include "term.h"

typedef struct ses_sparkline { /* any number of values averaged into columns; zeroed: empty */
    double sum[64];
    int64_t count[64];
    int64_t each, n; /* each: values per column; n: values */
} ses_sparkline;
void ses_sparkline_add(ses_sparkline *s, double x);
/* Returns buf, "" without Unicode. */
const char *ses_sparkline_text(const ses_sparkline *s, const ses_term *t, char buf[SES_BAR_SIZE]);
const char *ses_duration_text(char buf[SES_NUMBER_TEXT], double seconds); /* "1m02s" */

#endif
