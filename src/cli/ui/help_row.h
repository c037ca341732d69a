/* Lines of help: headings and rows of two columns. */
#ifndef SES_CLI_HELP_ROW_H
#define SES_CLI_HELP_ROW_H

#include "base/opt_table.h"
#include "term.h"

enum { SES_HELP_COLUMN = 26 }; /* where the second column begins */

int ses_help_width(const ses_term *t);
void ses_help_heading(const ses_term *t, FILE *out, const char *title);
/* `right` begins at column left_width, on the next line if `left` is too long. */
void ses_help_row(const ses_term *t, FILE *out, const char *left, int left_width, const char *right);
/* brief: the first sentence of its help only. */
void ses_help_option(const ses_opt *o, bool brief, const ses_term *t, FILE *out);

#endif
