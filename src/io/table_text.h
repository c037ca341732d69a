/* Tables by their texts: names of files and columns, separators; refusal where plain text is expected. */
#ifndef SES_IO_TABLE_TEXT_H
#define SES_IO_TABLE_TEXT_H

#include "sesame/unstable/table.h"

/* Whether a file is a table or JSON lines by its name, without an ending of compression. */
bool ses_is_table_name(const char *path);

/* JSON lines: .jsonl, .ndjson, .json. */
bool ses_is_json_lines_name(const char *path);

/* How a file begins: '{': an object; '[': an array of objects; 0: otherwise, or it cannot be read. */
char ses_json_start(const char *path);

/* Whether a regular file has the name of a table, and its first two lines have fields, or it begins as JSON.
 * A file that cannot be read has not. */
bool ses_is_table_file(const char *path);

/* For readers of plain text: fails for such a file. The message does not name the file. remedy: what to do
 * instead. */
#define SES_TEXTS_ALONE "give a file with the texts alone, one per line, or pass them by standard input (-)"
bool ses_refuse_table(const char *path, const char *remedy, ses_err *e);

/* The beginning of a table. */
typedef struct ses_row_sample {
    const char *text;
    size_t n;
    bool whole; /* the end of the table, too */
} ses_row_sample;

/* Whether each of the first rows has as many separators as the first, one at least; there must be two rows.
 * first_only: whether the first row has one. */
bool ses_row_sample_fits(const ses_row_sample *s, char separator, bool quotes, bool first_only);

/* Whether a column has this name, in any case and with any blanks around it. */
bool ses_is_column_name(const char *column, const char *name);

#endif
