/* Labeled text as people keep it: rows of TSV, CSV and JSON-lines files, sentences of CoNLL columns,
 * questions of SQuAD. Files are UTF-8, with or without a byte order mark, lines end with LF or CRLF; anything
 * else is refused with its line. Rows and sentences are read one at a time: memory is the longest one's.
 *
 *     ses_records_options o = { .columns = (const char *[]){ "sentence", "label" }, .n_columns = 2 };
 *     ses_records *r = ses_records_open("train.tsv", &o, &e);
 *     while (r && ses_records_next(r, &row, &e) && row) use(row[0].s, row[1].s);
 *     ses_records_free(r);
 *
 * What a reader gives is borrowed until its next call; a reader belongs to one thread. An _open that fails
 * names the file, a _next the line. */
#ifndef SESAME_TABLE_H
#define SESAME_TABLE_H

#include "sesame/json.h"

SES_BEGIN_DECLS

typedef struct ses_field {
    const char *p; /* NUL after n bytes, none within */
    size_t n;
} ses_field;

/* ---- rows ---- */

typedef enum {
    SES_TABLE_AUTO, /* by the name: .csv, .jsonl .ndjson .json; else TSV */
    SES_TABLE_TSV,
    SES_TABLE_CSV,
    SES_TABLE_JSONL
} ses_table_format;

typedef enum {
    SES_QUOTES_AUTO, /* CSV has them, TSV does not */
    SES_QUOTES_OFF,  /* '"' is a character as any other: right for GLUE */
    SES_QUOTES_ON    /* "a field", with "" for a quote, may hold delimiters and line ends */
} ses_quotes;

typedef struct ses_records_options {
    ses_table_format format;
    char delimiter; /* 0: tab or comma */
    bool no_header; /* the first line is a row; columns are numbers */
    ses_quotes quotes;
    bool ragged;                /* rows may have different numbers of fields, if they have those wanted */
    const char *const *columns; /* wanted: a name of the header, or a number from 1; of JSON a
                                   key, "a.b" for b in a; NULL: all */
    size_t n_columns;
    size_t max_row; /* bytes; 0: 64 MiB */
} ses_records_options;

typedef struct ses_records ses_records;

/* "-" is standard input; o may be NULL. Wrong columns are told here, those present listed. */
ses_records *ses_records_open(const char *path, const ses_records_options *o, ses_err *e);
/* The text is borrowed until the records are freed. */
ses_records *ses_records_from_text(const char *text, size_t n, const ses_records_options *o, ses_err *e);
void ses_records_free(ses_records *r);

/* The next row, its wanted fields in the order they were asked for; *row NULL at the end. Of JSON:
 * numbers and booleans as their text, null as "", an array of these joined by ','. Empty lines are
 * skipped. */
bool ses_records_next(ses_records *r, const ses_field **row, ses_err *e);
size_t ses_records_field_count(const ses_records *r); /* fields of a row */
const char *ses_records_column_name(const ses_records *r,
                                    size_t i);          /* field i's column; NULL: it has no name */
uint64_t ses_records_line(const ses_records *r);        /* where the last row begins, from 1 */
const ses_json *ses_records_json(const ses_records *r); /* the last row's whole object; NULL: no JSON */

/* ---- sentences ---- */

typedef struct ses_conll_options {
    const int *columns; /* wanted: from 1, or from the end: -1 is the last; NULL: first and last */
    size_t n_columns;
    bool conllu;         /* tab-separated; # lines, ranges (3-4) and empty nodes (8.1) are skipped */
    bool keep_documents; /* give -DOCSTART- lines as sentences too */
    size_t max_sentence; /* bytes; 0: 16 MiB */
} ses_conll_options;

typedef struct ses_conll_sentence {
    size_t n, n_columns;
    const ses_field *field; /* [n, n_columns] */
    uint64_t line;          /* where it begins */
    bool starts_document;   /* the first after a -DOCSTART- line */
} ses_conll_sentence;

typedef struct ses_conll ses_conll;

ses_conll *ses_conll_open(const char *path, const ses_conll_options *o, ses_err *e);
ses_conll *ses_conll_from_text(const char *text, size_t n, const ses_conll_options *o, ses_err *e);
void ses_conll_free(ses_conll *c);
bool ses_conll_next(ses_conll *c, ses_conll_sentence *s, ses_err *e); /* s->n is 0 at the end */

/* ---- questions ---- */

typedef struct ses_answer {
    ses_field text;
    size_t char_start; /* in the context, code points */
    size_t byte_start; /* the same, bytes */
} ses_answer;

typedef struct ses_question {
    ses_field id, title, context, question; /* id and title may be empty */
    const ses_answer *answers;
    size_t n_answers;
    bool is_impossible; /* the file says it has no answer (2.0) */
} ses_question;

typedef struct ses_squad_options {
    bool skip_bad_answers; /* leave out answers that do not stand where they should, instead of failing, */
    bool search_context;   /* or take the first place in the context where they do, if there is one */
} ses_squad_options;

typedef struct ses_squad ses_squad;

/* The whole file is parsed first: memory is some five times its size. */
ses_squad *ses_squad_open(const char *path, const ses_squad_options *o, ses_err *e);
ses_squad *ses_squad_from_text(const char *text, size_t n, const ses_squad_options *o, ses_err *e);
void ses_squad_free(ses_squad *q);
bool ses_squad_next(ses_squad *q, ses_question *out, bool *end, ses_err *e);
const char *ses_squad_version(const ses_squad *q); /* "1.1", "v2.0"; "" when it says none */
size_t ses_squad_skipped(const ses_squad *q);      /* answers left out so far */

SES_END_DECLS

#endif
