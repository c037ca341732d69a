/* Templates of task files: text with {column} in it, {column|filter|filter} for changed values. {{column}},
 * as in the harness's files, is the same; \{ is a brace.
 *
 * Ownership: parts live in the arena given to ses_eval_template_parse and point into its text. Threads: a
 * template is read-only after parsing. */
#ifndef SES_TUNE_EVAL_TEMPLATE_H
#define SES_TUNE_EVAL_TEMPLATE_H

#include "base/arena.h"
#include "base/str.h"

/* Changes the value of a column; appends the result. */
typedef struct ses_eval_filter {
    const char *name;
    bool (*run)(ses_string in, ses_buf *out);
} ses_eval_filter;

/* A filter by its name; NULL and an error that lists them: unknown. */
const ses_eval_filter *ses_eval_filter_find(ses_string name, ses_err *e);
const char *ses_eval_filter_name(const void *unused, size_t i); /* NULL past the last */

enum { SES_EVAL_MAX_FILTERS = 4 };

/* Literal text, or a column. */
typedef struct ses_eval_template_part {
    ses_string text; /* the literal text, or the column's name */
    bool is_column;
    const ses_eval_filter *filter[SES_EVAL_MAX_FILTERS];
    size_t n_filters;
} ses_eval_template_part;

typedef struct ses_eval_template {
    ses_eval_template_part *part;
    size_t n;
} ses_eval_template;

/* text is borrowed; the template of an empty text has no parts. */
bool ses_eval_template_parse(ses_eval_template *t, ses_string text, ses_arena *mem, ses_err *e);

/* Appends the value of a column. */
typedef bool ses_eval_column_fn(void *ctx, ses_string column, ses_buf *out, ses_err *e);
/* Appends the text with the values of its columns. */
bool ses_eval_template_fill(const ses_eval_template *t, ses_eval_column_fn *column, void *ctx, ses_buf *out,
                            ses_err *e);

#endif
