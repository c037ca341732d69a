/* Tables by mistake: where plain text is expected, or with another separator. */
#ifndef SES_IO_TABLE_TEXT_H
#define SES_IO_TABLE_TEXT_H

#include "sesame/table.h"

/* Whether a file is a table or JSON lines by its name, without an ending of compression. */
bool ses_is_table_name(const char *path);

/* JSON lines: .jsonl, .ndjson, .json. */
bool ses_is_json_lines_name(const char *path);

/* For readers of plain text: fails if a regular file has the name of a table, and its first two lines have
 * fields, or it begins as JSON. The message does not name the file. remedy: what to do instead. A file that
 * cannot be read is left to the reader. */
#define SES_TEXTS_ALONE "give a file with the texts alone, one per line, or pass them by standard input (-)"
bool ses_refuse_table(const char *path, const char *remedy, ses_err *e);

/* The separator that a table of one column seems to have: the name of the column has it, and the first row as
 * often; 0: none. */
char ses_other_separator(const char *name, const char *row);

#endif
