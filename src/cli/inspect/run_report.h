/* Reports of training runs: one self-contained HTML page with tiles, curves, scores, confusion matrices,
 * worst errors, next commands and settings, and a picture of the losses.
 * Ownership: arguments are borrowed. Safe in all threads. */
#ifndef SES_CLI_RUN_REPORT_H
#define SES_CLI_RUN_REPORT_H

#include "run_record.h"

bool ses_run_report_write(const ses_run_records *l, const char *path, bool overwrite, ses_err *e);

/* Writes DIR/report.html for the run in DIR. */
bool ses_run_report_write_run(const char *dir, ses_err *e);

/* Writes the losses of updates and evaluations in a log, log.jsonl, as SVG. */
bool ses_run_curve_write(const char *log, const char *path, const char *title, ses_err *e);

#endif
