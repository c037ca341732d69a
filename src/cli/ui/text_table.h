/* Tables for people: columns as wide as their widest cell, numbers on the right. Cells are kept until the
 * table is printed. Out of memory shows in ses_listing_print. */
#ifndef SES_CLI_LISTING_H
#define SES_CLI_LISTING_H

#include "term.h"

typedef struct ses_listing ses_listing;

/* Column titles apart by '|'; a title that starts with '>' is of a right-aligned column. No title is
 * printed where all are empty. */
ses_listing *ses_listing_new(const char *columns, ses_err *e);
void ses_listing_free(ses_listing *t);
void ses_listing_cell(ses_listing *t, const char *fmt, ...) SES_PRINTF(2, 3); /* row by row, left to right */
void ses_listing_style(ses_listing *t, ses_style s);                          /* of the last cell */
bool ses_listing_print(const ses_listing *t, FILE *f, const ses_term *term, int indent, ses_err *e);

#endif
