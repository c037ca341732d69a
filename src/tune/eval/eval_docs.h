/* Documents of an evaluation: rows of a table, JSON objects, or passages of a text. All are in memory; the
 * caller frees them. Read-only after opening. */
#ifndef SES_TUNE_EVAL_DOCS_H
#define SES_TUNE_EVAL_DOCS_H

#include "base/arena.h"
#include "base/str.h"
#include "sesame/unstable/table.h"

/* Documents of a text file: lines, paragraphs (lines up to an empty one), articles of WikiText (from a line
 * " = Title = " on), or the whole file. Their only column is "text". */
typedef enum { SES_DOCS_LINES, SES_DOCS_PARAGRAPHS, SES_DOCS_ARTICLES, SES_DOCS_FILE } ses_docs_unit;

typedef enum { SES_DOCS_AUTO, SES_DOCS_TSV, SES_DOCS_CSV, SES_DOCS_JSONL, SES_DOCS_TEXT } ses_docs_format;

/* How a file is read. */
typedef struct ses_docs_options {
    int format; /* ses_docs_format; auto: by the file name, else TSV */
    int unit;   /* ses_docs_unit, of text */
    bool no_header;
    int quotes; /* ses_quotes */
    const ses_string
        *columns; /* [n_columns] names of the columns of a table without a header; NULL: numbers */
    size_t n_columns;
} ses_docs_options;

typedef struct ses_eval_doc {
    const ses_string *field; /* [n_columns], of tables and texts */
    const ses_json *json;    /* the object of JSON lines; else NULL */
    ses_json_doc *owner;     /* owner of json; NULL: borrowed */
    uint64_t line;
} ses_eval_doc;

typedef struct ses_docs {
    char *path;
    ses_arena mem;
    ses_eval_doc *doc;
    size_t n, cap;
    ses_string *column; /* [n_columns] names; JSON lines: none */
    size_t n_columns;
} ses_docs;

/* Reads at most `limit` documents (0: all). "-" is standard input. */
ses_docs *ses_docs_open(const char *path, const ses_docs_options *o, size_t limit, ses_err *e);
/* The objects of an array, borrowed. name: the path in messages. */
ses_docs *ses_docs_from_json(const ses_json *array, const char *name, ses_err *e);
void ses_docs_free(ses_docs *d); /* d may be NULL */

/* Fails if a table has no such column, and lists the columns; JSON lines are checked document by document. */
bool ses_docs_check_column(const ses_docs *d, ses_string column, ses_err *e);
/* Appends the value of a column: a name, a number from 1 (tables), or a path a.b (JSON). Numbers and booleans
 * are written as in JSON. Errors have the line. */
bool ses_docs_value(const ses_docs *d, size_t i, ses_string column, ses_buf *out, ses_err *e);
/* The list in a column of JSON lines: its length, and the value of an item. */
bool ses_docs_list_len(const ses_docs *d, size_t i, ses_string column, size_t *n, ses_err *e);
bool ses_docs_list_value(const ses_docs *d, size_t i, ses_string column, size_t item, ses_buf *out,
                         ses_err *e);
/* Prepends file and line of a document to an error. Returns false. */
bool ses_docs_wrap(const ses_docs *d, size_t i, ses_err *e);

/* Appends a scalar; false: v is a list, an object or null. */
bool ses_json_scalar_append(const ses_json *v, ses_buf *out);

#endif
