/* Text and axis ticks in HTML and SVG. Output goes to a buffer of the caller; nothing is shared between
 * threads. */
#ifndef SES_FIGURE_MARKUP_H
#define SES_FIGURE_MARKUP_H

#include "base/str.h"

void ses_html_text(ses_buf *out, const char *s); /* escapes &, <, >, quotes and control characters */

/* Ticks of an axis, at (first + i) * step for i < n. */
typedef struct ses_chart_ticks {
    double first, step;
    int n;
} ses_chart_ticks;

/* About `parts` ticks from low to high, at least min_step apart: 1, 2 or 5 times a power of ten. None if the
 * range is not finite, empty, or too small for its numbers. */
ses_chart_ticks ses_chart_find_ticks(double low, double high, int parts, double min_step);

/* A short number: 0.25, 2e-5, 40k. Values far below a step become 0, never -0. */
void ses_chart_tick_put(ses_buf *out, double x, double step);

#endif
