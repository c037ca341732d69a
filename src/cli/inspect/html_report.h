/* Writes training runs as one self-contained HTML page: no script, no other file, no network. Curves,
 * settings, scores per class, confusion matrices; light and dark. All external text is escaped.
 * Ownership: arguments are borrowed. Safe in all threads. */
#ifndef SES_CLI_HTML_REPORT_H
#define SES_CLI_HTML_REPORT_H

#include "run_record.h"

bool ses_html_report_write(const ses_run_records *l, const char *path, bool overwrite, ses_err *e);

/* Writes DIR/report.html for the run in DIR. */
bool ses_html_report_write_run(const char *dir, ses_err *e);

#endif
