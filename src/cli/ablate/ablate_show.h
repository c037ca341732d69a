/* Parts of the output of a study: texts of cells and costs, plots, the Markdown file. Strings are borrowed or
 * written to buffers of the caller. Main thread only. */
#ifndef SES_CLI_ABLATE_SHOW_H
#define SES_CLI_ABLATE_SHOW_H

#include "ablate_compare.h"
#include "figure/report.h"

const char *ses_ablate_title(const ses_ablate *s);
int ses_ablate_digits(const ses_ablate_column *c); /* after the point */
/* "84.3 +-0.5", "84.3 (2 failed)", "-", "failed"; sign: before the half of the interval. */
const char *ses_ablate_entry_text(const ses_ablate *s, size_t run, size_t column, const char *sign, char *buf,
                                  size_t size);
/* The note on the intervals: their level and number of results; empty: none. */
const char *ses_ablate_interval_text(const ses_ablate *s, const char *sign, char *buf, size_t size);
bool ses_ablate_has_published(const ses_ablate *s, size_t column);

/* Costs of a run, in the order of their columns: time, tokens per second, FLOPs, watt-hours, price, time of
 * tasks. NaN: unknown. */
enum { SES_ABLATE_COSTS = 6 };
extern const char *const ses_ablate_cost_names[SES_ABLATE_COSTS];
double ses_ablate_cost(const ses_ablate *s, size_t run, size_t cost);
bool ses_ablate_has_cost(const ses_ablate *s, size_t cost);
const char *ses_ablate_cost_text(double x, size_t cost, char *buf, size_t size);

/* ablate_plots.c: both return the number of figures. */
/* Scores with intervals by column; curves, if the grid has one option with numbers. */
size_t ses_ablate_put_plots(ses_ablate *s, ses_report *r);
/* Score against FLOPs and against time. */
size_t ses_ablate_put_cost_plots(ses_ablate *s, ses_report *r);

/* ablate_markdown.c: ablate.md. */
bool ses_ablate_write_markdown(ses_ablate *s, ses_err *e);

#endif
