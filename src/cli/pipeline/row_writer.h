/* Writes results as rows of CSV, TSV or JSON lines, after the fields of their input rows (--keep).
 *
 * A row is kept when it is read (ses_rows_keep_*) and written with its result (ses_rows_put) or its error
 * (ses_rows_put_error), in the same order: memory is that of the rows whose result is pending.
 *
 * Ownership: everything is copied; ses_rows_free frees it. Threads: main thread only, output is stdout. */
#ifndef SES_CLI_ROW_WRITER_H
#define SES_CLI_ROW_WRITER_H

#include "base/opt_table.h"
#include "base/str.h"
#include "sesame/unstable/table.h"

/* Options of commands that write rows. */
typedef struct ses_row_args {
    int keep; /* ses_row_format; -1: not given */
    const char *prefix;
    const char *output, *to, *shard; /* output and to: the same, see ses_row_args_resolve */
    bool overwrite;
    bool array; /* not an option: the file is .json, one array of all results */
} ses_row_args;

/* Joins --output and --to, and follows the ending of the file unless `keep` is given: .csv and .tsv are
 * tables of rows and results, .json is an array. */
bool ses_row_args_resolve(ses_row_args *a, ses_err *e);
/* Whether the file of --to has this ending. */
bool ses_row_args_ends(const ses_row_args *a, const char *ending);

extern const ses_opt_table ses_row_options;

typedef enum { SES_ROWS_AUTO, SES_ROWS_CSV, SES_ROWS_TSV, SES_ROWS_JSONL } ses_row_format; /* as --keep */

enum { SES_MAX_RESULT_COLUMNS = 16 };

typedef struct ses_row_writer {
    ses_row_format format; /* AUTO: that of the input, when it is known */
    char delimiter;
    const char *prefix;      /* begins the result columns; NULL: chosen when the columns are known */
    bool has_errors;         /* failed rows are written, too, with a column "error" */
    bool array;              /* JSON: an array, whose brackets and commas are written */
    bool is_open;            /* the array has an element */
    bool is_named, is_begun; /* the input columns are known; the header is written */
    bool has_header;         /* tables: a line of names comes first */
    char *name[SES_MAX_RESULT_COLUMNS]; /* result columns */
    size_t n_names, n_results;          /* with and without "error" */
    char **column;                      /* input columns, [n_columns]; JSON lines: keys of the first row */
    size_t n_columns, column_cap;
    ses_buf kept; /* the rows not written yet: a size_t, then as many bytes */
    size_t at;    /* the first of them */
    ses_buf line;
} ses_row_writer;

/* keep_going: failed rows will be written. */
void ses_rows_open(ses_row_writer *w, const ses_row_args *a, bool keep_going);
void ses_rows_free(ses_row_writer *w);
bool ses_rows_active(const ses_row_writer *w); /* --keep was given */

/* The result columns, before the second row is kept. Names are copied. */
bool ses_rows_set_results(ses_row_writer *w, const char *const *name, size_t n, ses_err *e);

/* Keep the row that was read last from r, a line of JSON with its value, a line of text as column "text". A
 * row that has other columns than the first row is an error, if its fields would be lost. */
bool ses_rows_keep_record(ses_row_writer *w, const ses_records *r, ses_err *e);
bool ses_rows_keep_json(ses_row_writer *w, ses_string line, const ses_json *v, ses_err *e);
bool ses_rows_keep_text(ses_row_writer *w, ses_string text, ses_err *e);
bool ses_rows_keep_none(ses_row_writer *w, ses_err *e); /* a row without readable fields */

/* Writes the first row kept and its result: an object whose members are the result columns, in their order.
 * Frees the writer `object`. */
bool ses_rows_put(ses_row_writer *w, ses_json_writer *object, ses_err *e);
bool ses_rows_put_error(ses_row_writer *w, const char *message, ses_err *e);

/* Drops the rows kept so far: they are in an earlier part of the output, which has the header. */
void ses_rows_continue(ses_row_writer *w);

/* Prints a result as a line of JSON, or as an element of the array. Frees the writer. */
bool ses_rows_print(ses_row_writer *w, ses_json_writer *json, ses_err *e);

/* Writes the header, if no row has; ends the array. */
bool ses_rows_end(ses_row_writer *w, ses_err *e);

#endif
