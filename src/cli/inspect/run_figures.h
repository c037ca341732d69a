/* Figures of training runs: run_report.c (the page), run_charts.c (curves), run_figures.c (one run). They
 * are added to a report, which copies them. Safe in all threads. */
#ifndef SES_CLI_RUN_FIGURES_H
#define SES_CLI_RUN_FIGURES_H

#include "figure/report.h"
#include "run_record.h"

/* Charts of losses, scores, costs, learning rate and gradient norm, with a line per run. Nothing is drawn
 * of less than two points. */
bool ses_run_charts_put(ses_report *report, const ses_run_records *l, ses_err *e);

/* All losses of a run as one figure. */
void ses_run_losses_put(ses_report *report, const ses_run_record *r);

/* The first part of a run: its tiles. title: of the part, "" for the whole page. */
void ses_run_tiles_put(ses_report *report, const ses_run_record *r, const char *title);
/* Scores, classes, confusion matrix, worst errors, next commands, settings. */
void ses_run_figures_put(ses_report *report, const ses_run_record *r);

#endif
