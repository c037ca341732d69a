/* Parts of the HTML report of training runs: html_report.c (page, all runs), html_run.c (one run),
 * html_style.c. Output goes to a buffer of the caller; text from outside is escaped. Safe in all
 * threads. */
#ifndef SES_CLI_HTML_PARTS_H
#define SES_CLI_HTML_PARTS_H

#include "base/str.h"
#include "run_record.h"

extern const char *const ses_html_style[]; /* the style sheet, in parts; the last is NULL */

/* A table cell. label: the title of its column, shown beside it on narrow screens; NULL: none. */
void ses_html_cell(ses_buf *b, const char *label, const char *text);
void ses_html_number(ses_buf *b, const char *label, double x); /* four decimals; NaN: "-" */
void ses_html_number_text(ses_buf *b, const char *label, const char *text);
void ses_html_heading(ses_buf *b, const char *attributes, const char *text);

/* Sections of one run: figures, scores, classes, confusion matrix, worst errors, next commands, settings.
 * Charts of the run come between figures and scores, if `charts` is not empty. */
void ses_html_run_put(ses_buf *b, const ses_run_record *r, const ses_buf *charts);

/* html_cost.c: charts of the score against FLOPs and time, if all runs have the same metric. */
bool ses_html_cost_charts_put(ses_buf *b, const ses_run_records *l, ses_err *e);

#endif
