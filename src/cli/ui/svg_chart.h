/* Curves as SVG, to stand in a page of HTML: axes with round numbers, a line for each run. Colors are the
 * page's: stroke var(--c0) to var(--c7). */
#ifndef SES_CLI_CHART_H
#define SES_CLI_CHART_H

#include "base/str.h"
#include "cli/inspect/run_record.h"

enum { SES_CHART_COLORS = 8 };

typedef struct ses_chart_line {
    const ses_series *series;
    const char *name;
    size_t color; /* any number: they are used again */
} ses_chart_line;

/* Nothing is written where no line has a finite value. */
void ses_chart_put(ses_buf *out, const char *title, const ses_chart_line *line, size_t n);

void ses_html_text(ses_buf *out, const char *s); /* with &, <, >, quotes and controls escaped */

#endif
