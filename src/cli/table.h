/* Tables for people: columns as wide as their widest cell, numbers on the right. Cells are kept until the
 * table is printed. Out of memory shows in ses_table_print. */
#ifndef SES_CLI_TABLE_H
#define SES_CLI_TABLE_H

#include "term.h"

typedef struct ses_table ses_table;

/* Column titles apart by '|'; a title that starts with '>' is of a right-aligned column. No title is
 * printed where all are empty. */
ses_table *ses_table_new(const char *columns, ses_err *e);
void ses_table_free(ses_table *t);
void ses_table_cell(ses_table *t, const char *fmt, ...) SES_PRINTF(2, 3); /* row by row, left to right */
void ses_table_style(ses_table *t, ses_style s);                          /* of the last cell */
bool ses_table_print(const ses_table *t, FILE *f, const ses_term *term, int indent, ses_err *e);

#endif
