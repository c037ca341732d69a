/* Private parts of ses_records, shared by the readers of tables (records.c) and of JSON (records_json.c). */
#ifndef SES_IO_RECORDS_IMPL_H
#define SES_IO_RECORDS_IMPL_H

#include "base/str.h"
#include "records_range.h"
#include "text_reader.h"

enum { SES_RECORDS_MAX_FIELDS = 1 << 16 };

typedef struct ses_field_range {
    size_t begin, n;
} ses_field_range;

struct ses_records {
    ses_text_reader lines;
    ses_table_format format;
    char delimiter;
    bool find_delimiter; /* among the usual ones, if the first row does not have it */
    ses_quotes quotes_option;
    bool quotes, ragged, header, keep_arrays;
    bool row_failed; /* the last error is about the fields of a row */
    size_t max_row;

    char **want; /* requested columns; NULL: all */
    size_t n_want;
    size_t *column; /* field index of each requested column of a table */
    char **name;    /* column names of the header */
    size_t n_names;
    size_t expected; /* fields of a row; 0: not known yet */
    bool bound;      /* columns are resolved */
    bool all_keys;   /* JSON lines: no column was requested */

    ses_buf bytes;          /* fields of the row, a NUL after each */
    ses_field_range *field; /* in bytes */
    size_t n, cap;
    ses_string *out;
    size_t n_out;
    uint64_t line;
    ses_json_doc *doc;
    ses_string json_text;    /* the text of doc */
    bool array, array_ended; /* JSON: one array of objects, not an object per line */
    size_t n_elements;       /* elements of the array read so far */
    const char *rest;        /* unread bytes of the line in which the last element ends */
    size_t n_rest;
    uint64_t rest_offset; /* where this line starts */
    ses_buf element;      /* text of the last element */
    bool pending;         /* the first row was already read by the open */
    uint64_t offset, end; /* where the last row starts; where rows must start before, 0: anywhere */
};

/* Reads a line that may start a row; *s is NULL at the end of the file or of the range. */
bool ses_records_next_start(ses_records *r, const char **s, size_t *n, ses_err *e);
bool ses_records_end_field(ses_records *r, size_t begin, ses_err *e);
bool ses_records_at_line(ses_records *r, ses_err *e); /* prepends the line of the row; returns false */

/* JSON lines, or an array of objects: the first row, which ses_records_next returns. */
bool ses_records_begin_json(ses_records *r, ses_err *e);
bool ses_records_next_json(ses_records *r, bool *found, ses_err *e);
/* Passes the elements of an array up to the first whose line starts at byte `to` or later. */
bool ses_records_pass_elements(ses_records *r, uint64_t to, ses_err *e);

#endif
