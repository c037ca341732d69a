/* Runs as one page of HTML that needs nothing else: no script, no file, no network. Curves, settings, scores
 * of each class, confusion matrices. Readable in the dark and in the light; every text from outside is
 * escaped. */
#ifndef SES_CLI_HTML_REPORT_H
#define SES_CLI_HTML_REPORT_H

#include "run_record.h"

bool ses_html_report_write(const ses_run_records *l, const char *path, bool overwrite, ses_err *e);

/* DIR/report.html of the one run in DIR. */
bool ses_html_report_write_run(const char *dir, ses_err *e);

#endif
