/* Line charts as figures of an HTML page, with one line per run. The page defines the stroke colors
 * var(--c0) to var(--c7) and the styles of the classes. Output goes to a buffer of the caller; nothing is
 * shared between threads. */
#ifndef SES_CLI_SVG_CHART_H
#define SES_CLI_SVG_CHART_H

#include "base/str.h"
#include "cli/inspect/run_record.h"

enum { SES_CHART_COLORS = 8 };

typedef struct ses_chart_line {
    const ses_series *series; /* NULL: none */
    const char *name;
    size_t color; /* modulo SES_CHART_COLORS */
} ses_chart_line;

typedef struct ses_chart {
    const char *title, *x_label, *y_label; /* labels with units */
    bool smooth;                           /* long lines: faint values and a smoothed line */
    const ses_chart_line *line;
    size_t n;
} ses_chart;

/* Writes nothing if no line has a finite value. */
void ses_chart_put(ses_buf *out, const ses_chart *c);

#endif
