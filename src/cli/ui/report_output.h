/* Reports of commands: on the terminal and in files. Everything is borrowed; main thread only. */
#ifndef SES_CLI_REPORT_OUTPUT_H
#define SES_CLI_REPORT_OUTPUT_H

#include "figure/report.h"
#include "term.h"

/* Writes the picture and the page; a path may be NULL. overwrite: they may exist. */
bool ses_report_write_files(ses_report *r, const ses_report_head *h, const char *svg, const char *html,
                            bool overwrite, ses_err *e);
/* Draws the figures on stdout, whose terminal is t. */
bool ses_report_print(const ses_report *r, const ses_term *t, ses_err *e);

#endif
