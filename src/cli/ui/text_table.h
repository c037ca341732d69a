/* Tables for people: columns as wide as their widest cell, numbers on the right. Cells are kept until the
 * table is printed. Out of memory shows in ses_text_table_print. */
#ifndef SES_CLI_LISTING_H
#define SES_CLI_LISTING_H

#include "term.h"

typedef struct ses_text_table ses_text_table;

/* Column titles apart by '|'; a title that starts with '>' is of a right-aligned column. No title is
 * printed where all are empty. */
ses_text_table *ses_text_table_new(const char *columns, ses_err *e);
void ses_text_table_free(ses_text_table *t);
void ses_text_table_cell(ses_text_table *t, const char *fmt, ...)
    SES_PRINTF(2, 3);                                      /* row by row, left to right */
void ses_text_table_style(ses_text_table *t, ses_style s); /* of the last cell */
bool ses_text_table_print(const ses_text_table *t, FILE *f, const ses_term *term, int indent, ses_err *e);

#endif
