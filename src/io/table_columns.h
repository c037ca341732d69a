/* Columns of texts and labels in a table whose columns have other names than the usual ones, by their values.
 * Nothing is kept. */
#ifndef SES_IO_TABLE_COLUMNS_H
#define SES_IO_TABLE_COLUMNS_H

#include "sesame/unstable/table.h"

enum { SES_COLUMN_NAME = 256, SES_COLUMN_NOTICE = 1000 };

/* The known columns, and the names of the caller's options. */
typedef struct ses_column_question {
    const char *text, *label;               /* known columns; NULL: to be found */
    bool no_labels;                         /* the label is not asked for */
    const char *text_option, *label_option; /* that name the columns: "--text" */
} ses_column_question;

typedef struct ses_found_columns {
    char text[SES_COLUMN_NAME], label[SES_COLUMN_NAME]; /* names, or numbers from 1; "": not asked for */
    bool no_header;                                     /* the first line is a row */
    char notice[SES_COLUMN_NOTICE];                     /* the columns of texts and labels, to be printed */
} ses_found_columns;

/* Reads the first rows of a regular file. o->columns is not used. Succeeds if there is exactly one column of
 * texts and one of few different values; a table of two columns may lack a header. Otherwise fails with the
 * columns of the file and the options. */
bool ses_found_columns_read(ses_found_columns *f, const char *path, const ses_records_options *o,
                            const ses_column_question *q, ses_err *e);

#endif
