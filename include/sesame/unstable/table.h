/* Readers of labeled text: rows of TSV, CSV and JSON-lines files, sentences of CoNLL columns, questions of
 * SQuAD.
 *
 * Files are UTF-8, with or without a byte order mark, or have an encoding that the options name; lines end
 * with LF or CRLF. Invalid input fails with
 * its line number. Rows and sentences are read one at a time: memory is that of the longest one.
 *
 *     ses_records_options o = { .columns = (const char *[]){ "sentence", "label" }, .n_columns = 2 };
 *     ses_records *r = ses_records_open("train.tsv", &o, &e);
 *     while (r && ses_records_next(r, &row, &e) && row) use(row[0].p, row[1].p);
 *     ses_records_free(r);
 *
 * Ownership: results are valid until the next call on the same reader. Every string of a result is followed
 * by a NUL and contains none.
 * Threads: a reader belongs to one thread.
 * Errors of an _open begin with the path, errors of a _next with the line. */
#ifndef SESAME_TABLE_H
#define SESAME_TABLE_H

#include "sesame/json.h"

SES_BEGIN_DECLS

/* Encoding of a file; its text is converted to UTF-8. */
typedef enum {
    SES_ENCODING_UTF8,         /* invalid bytes and NULs are errors */
    SES_ENCODING_UTF8_REPLACE, /* invalid bytes and NULs become U+FFFD */
    SES_ENCODING_LATIN1,
    SES_ENCODING_LATIN9,
    SES_ENCODING_WINDOWS_1250,
    SES_ENCODING_WINDOWS_1251,
    SES_ENCODING_WINDOWS_1252,
    SES_ENCODING_KOI8_R,
    SES_ENCODING_UTF16, /* by its byte order mark; without one: little-endian */
    SES_ENCODING_UTF16LE,
    SES_ENCODING_UTF16BE
} ses_text_encoding;

/* ---- rows ---- */

typedef enum {
    SES_TABLE_AUTO, /* by the file name: .csv; .jsonl, .ndjson and .json; else TSV */
    SES_TABLE_TSV,
    SES_TABLE_CSV,
    SES_TABLE_JSONL
} ses_table_format;

typedef enum {
    SES_QUOTES_AUTO, /* on for CSV, off for TSV */
    SES_QUOTES_OFF,  /* '"' is an ordinary character: right for GLUE */
    SES_QUOTES_ON    /* "a field", with "" for a quote, may contain delimiters and line ends */
} ses_quotes;

typedef struct ses_records_options {
    ses_table_format format;
    char delimiter; /* 0: tab or comma, by the format */
    bool no_header; /* the first line is a row; columns are numbers */
    ses_quotes quotes;
    bool ragged; /* rows may differ in length, as long as they have the requested columns */
    const char *const
        *columns; /* requested columns: names of the header, or numbers from 1; for JSON keys, "a.b"
                                   for key b of object a. NULL: all */
    size_t n_columns;
    size_t max_row; /* maximum bytes of a row; 0: 64 MiB */
    ses_text_encoding encoding;
    bool keep_arrays; /* JSON lines: an array stays JSON text */
} ses_records_options;

typedef struct ses_records ses_records;

/* Opens a file; "-" is standard input. o may be NULL. Fails if a requested column does not exist, and lists
 * the existing ones. NULL on failure. Free with ses_records_free. */
ses_records *ses_records_open(const char *path, const ses_records_options *o, ses_err *e);
/* Bytes of the file read so far, as stored: of a compressed file before decompression. */
uint64_t ses_records_consumed(const ses_records *r);
/* The same for n bytes of text, which are borrowed until ses_records_free. */
ses_records *ses_records_from_text(const char *text, size_t n, const ses_records_options *o, ses_err *e);
/* Closes the reader. r may be NULL. */
void ses_records_free(ses_records *r);

/* The next row: the requested fields in the requested order; *row is NULL at the end. Empty lines are
 * skipped. JSON numbers and booleans become their text, null becomes "", an array of scalars is joined by
 * ','. Nested values are errors if they were requested, and JSON text if all columns are. */
bool ses_records_next(ses_records *r, const ses_string **row, ses_err *e);
/* Fields of a row. */
size_t ses_records_field_count(const ses_records *r);
/* Column name of field i; NULL if it has none. */
const char *ses_records_column_name(const ses_records *r, size_t i);
/* Line number where the last row begins, from 1. */
uint64_t ses_records_line(const ses_records *r);
/* The whole object of the last row; NULL if the format is not JSON lines. */
const ses_json *ses_records_json(const ses_records *r);

/* The format and the delimiter in use. */
ses_table_format ses_records_format(const ses_records *r);
char ses_records_delimiter(const ses_records *r);
/* All fields of the last row of a table, requested or not; 0 for JSON lines. */
size_t ses_records_source_count(const ses_records *r);
ses_string ses_records_source_field(const ses_records *r, size_t i);
/* All column names of the header; 0: the file has none. NULL if i is out of range. */
size_t ses_records_name_count(const ses_records *r);
const char *ses_records_name(const ses_records *r, size_t i);
/* The last row of JSON lines as it is in the file, without its line end and without a NUL after it. */
ses_string ses_records_json_text(const ses_records *r);

/* ---- sentences ---- */

typedef struct ses_conll_options {
    const int *columns; /* requested columns: from 1, or from the end: -1 is the last; NULL: first and last */
    size_t n_columns;
    bool conllu;         /* CoNLL-U: tab-separated; skips # lines, ranges (3-4) and empty nodes (8.1) */
    bool keep_documents; /* return -DOCSTART- lines as sentences too */
    size_t max_sentence; /* maximum bytes of a sentence; 0: 16 MiB */
    ses_text_encoding encoding;
} ses_conll_options;

typedef struct ses_conll_sentence {
    size_t n, n_columns;
    const ses_string *field; /* [n, n_columns] */
    uint64_t line;           /* line number of its first token, from 1 */
    bool starts_document;    /* the first sentence after a -DOCSTART- line */
} ses_conll_sentence;

typedef struct ses_conll ses_conll;

/* Opens a file; "-" is standard input. o may be NULL. NULL on failure. Free with ses_conll_free. */
ses_conll *ses_conll_open(const char *path, const ses_conll_options *o, ses_err *e);
/* The same for n bytes of text, which are borrowed until ses_conll_free. */
ses_conll *ses_conll_from_text(const char *text, size_t n, const ses_conll_options *o, ses_err *e);
/* Closes the reader. c may be NULL. */
void ses_conll_free(ses_conll *c);
/* The next sentence; s->n is 0 at the end. Fails if tokens differ in their number of columns. */
bool ses_conll_next(ses_conll *c, ses_conll_sentence *s, ses_err *e);

/* ---- questions ---- */

typedef struct ses_answer {
    ses_string text;
    size_t char_start; /* offset in the context, in code points */
    size_t byte_start; /* the same offset in bytes */
} ses_answer;

typedef struct ses_question {
    ses_string id, title, context, question; /* id and title may be empty */
    const ses_answer *answers;
    size_t n_answers;
    bool is_impossible; /* SQuAD 2.0's is_impossible */
} ses_question;

/* Handling of answers whose text is not at their answer_start. Default: ses_squad_next fails. */
typedef struct ses_squad_options {
    bool skip_bad_answers; /* skip the answer */
    bool search_context;   /* use the first occurrence in the context, if there is one */
} ses_squad_options;

typedef struct ses_squad ses_squad;

/* Opens and parses a whole file; memory is about five times its size. o may be NULL. NULL on failure. Free
 * with ses_squad_free. */
ses_squad *ses_squad_open(const char *path, const ses_squad_options *o, ses_err *e);
/* The same for n bytes of text, which may be freed afterwards. */
ses_squad *ses_squad_from_text(const char *text, size_t n, const ses_squad_options *o, ses_err *e);
/* Closes the reader. q may be NULL. */
void ses_squad_free(ses_squad *q);
/* The next question; *end is true after the last one. */
bool ses_squad_next(ses_squad *q, ses_question *out, bool *end, ses_err *e);
/* The file's "version": "1.1", "v2.0"; "" if it has none. Valid until ses_squad_free. */
const char *ses_squad_version(const ses_squad *q);
/* Answers skipped so far by skip_bad_answers. */
size_t ses_squad_skipped(const ses_squad *q);

SES_END_DECLS

#endif
