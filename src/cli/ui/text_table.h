/* Aligned text tables: columns as wide as their widest cell. Cells are copied and kept until the table is
 * printed; out-of-memory errors are reported by ses_text_table_print. One thread per table. */
#ifndef SES_CLI_TEXT_TABLE_H
#define SES_CLI_TEXT_TABLE_H

#include "term.h"

typedef struct ses_text_table ses_text_table;

/* columns: titles separated by '|'; a leading '>' right-aligns the column. If all titles are empty, no
 * title row is printed. */
ses_text_table *ses_text_table_new(const char *columns, ses_err *e);
void ses_text_table_free(ses_text_table *t);
/* Cells in row-major order. */
void ses_text_table_cell(ses_text_table *t, const char *fmt, ...) SES_PRINTF(2, 3);
void ses_text_table_style(ses_text_table *t, ses_style s); /* styles the last cell added */
/* Makes a table with all its cells fit `width` columns: leaves out columns, the lowest importance [columns]
 * first (0: never), then truncates the cells of left-aligned columns to 12. Numbers are never truncated. */
void ses_text_table_fit(ses_text_table *t, int width, const int *importance);
const char *ses_text_table_hidden(const ses_text_table *t, size_t i); /* title left out; NULL past the last */
bool ses_text_table_print(const ses_text_table *t, FILE *f, const ses_term *term, int indent, ses_err *e);

#endif
