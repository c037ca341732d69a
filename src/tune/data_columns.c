/* Labeled files: options to a spec, columns by their common names. */
#define _POSIX_C_SOURCE 200809L
#include "finetune_data.h"

#include "base/label_pairs.h"
#include "base/str.h"
#include "data/examples_notices.h"
#include "io/records_range.h"
#include "io/table_text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool start_spec(const char *task, ses_data_spec *spec, const ses_benchmark **b, ses_err *e)
{
    const ses_finetune_task *k = ses_finetune_task_find(task);
    *b = k ? NULL : ses_benchmark_find(task);
    if (k) return *spec = ses_finetune_task_spec(k), true;
    if (*b) return *spec = (*b)->spec, true;
    const char *name;
    ses_buf list = { 0 };
    for (size_t i = 0; (name = ses_finetune_task_name(i, NULL)); i++)
        ses_buf_appendf(&list, "%s%s", i ? ", " : "", name);
    if (ses_buf_ok(&list, e))
        ses_fail(e, SES_EUSAGE, "unknown task \"%s\"; choose one of %s, or a benchmark (sesame data --list)",
                 ses_quoted_of(task, strlen(task)).s, list.data);
    ses_buf_free(&list);
    return false;
}

static void set_format(int format, ses_data_spec *spec)
{
    if (format == SES_FORMAT_AUTO) return;
    spec->format = format <= SES_FORMAT_JSONL   ? SES_DATA_TABLE
                   : format == SES_FORMAT_SQUAD ? SES_DATA_SQUAD
                   : format == SES_FORMAT_TEXT  ? SES_DATA_LINES
                                                : SES_DATA_CONLL;
    spec->table = format == SES_FORMAT_TSV     ? SES_TABLE_TSV
                  : format == SES_FORMAT_CSV   ? SES_TABLE_CSV
                  : format == SES_FORMAT_JSONL ? SES_TABLE_JSONL
                                               : SES_TABLE_AUTO;
    spec->conllu = format == SES_FORMAT_CONLLU;
}

static bool parse_column(const char *option, const char *text, int *out, ses_err *e)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n == 0 || labs(n) > 1000)
        return ses_fail(e, SES_EUSAGE, "%s: \"%s\" is not a column number", option, text);
    *out = (int)n;
    return true;
}

/* CoNLL: text and label are column numbers, as token_column and tag_column. */
static bool set_columns(const ses_data_options *o, ses_data_spec *spec, ses_err *e)
{
    if (o->token_column) spec->token_column = (int)o->token_column;
    if (o->tag_column) spec->tag_column = (int)o->tag_column;
    if (spec->format == SES_DATA_CONLL)
        return (!o->text || parse_column("text", o->text, &spec->token_column, e)) &&
               (!o->label || parse_column("label", o->label, &spec->tag_column, e));
    if (o->text) spec->text_a = o->text;
    if (o->pair) spec->text_b = o->pair;
    if (o->label) spec->label = o->label;
    return true;
}

static bool set_character(const char *option, const char *text, char *out, ses_err *e)
{
    bool tab = !strcmp(text, "\\t") || !strcmp(text, "tab");
    if (!tab && (strlen(text) != 1 || *text == '"' || *text == '\n'))
        return ses_fail(e, SES_EUSAGE, "%s: expected one ASCII character or tab", option);
    *out = tab ? '\t' : *text;
    return true;
}

bool ses_data_options_spec(const ses_data_options *o, ses_data_spec *spec, const ses_benchmark **b,
                           ses_err *e)
{
    if (!start_spec(o->task ? o->task : "classify", spec, b, e)) return false;
    if (spec->format == SES_DATA_LINES && o->text) spec->format = SES_DATA_TABLE;
    set_format(o->format, spec);
    if (!set_columns(o, spec, e)) return false;
    if (o->choices) spec->choices = o->choices;
    if (ses_is_label_pairs(o->labels) && !ses_label_pairs_check(o->labels, e)) return false;
    if (o->labels) spec->label_values = o->labels, spec->label_names = NULL;
    if (o->no_header) spec->no_header = true;
    if (o->quotes) spec->quotes = (ses_quotes)o->quotes;
    spec->skip_bad_answers = o->skip_bad;
    spec->bad_rows = o->skip_bad ? SES_BAD_ROWS_DROP : SES_BAD_ROWS_FAIL;
    spec->encoding = (ses_text_encoding)o->encoding;
    if (o->label_separator && spec->kind != SES_DATA_MULTI)
        return ses_fail(e, SES_EUSAGE, "label-separator applies to the task multi_label");
    bool json = o->label_separator && !strcmp(o->label_separator, "json");
    if (json) spec->label_separator = '[';
    if (o->label_separator && !json &&
        !set_character("label-separator", o->label_separator, &spec->label_separator, e))
        return false;
    return !o->delimiter || set_character("delimiter", o->delimiter, &spec->delimiter, e);
}

/* ---- columns without a name ---- */

/* Common column names; the first one in the file is used. */
static const char *const text_names[] = { "sentence",  "text",     "sentence1", "premise",
                                          "question1", "question", "review",    NULL };
static const char *const pair_names[] = { "sentence2", "hypothesis", "question2", NULL };
static const char *const anchor_names[] = { "anchor",    "query",     "question", "premise",
                                            "sentence1", "question1", "text",     NULL };
static const char *const positive_names[] = { "positive",   "answer",    "entailment", "sentence2",
                                              "hypothesis", "question2", NULL };
static const char *const negative_names[] = { "negative", "contradiction", NULL };
static const char *const target_names[] = {
    "target", "summary", "highlights", "translation", "output", NULL
};
static const char *const source_names[] = {
    "source", "text", "document", "article", "dialogue", "input", NULL
};
static const char *const label_names[] = { "label", "labels", "score", "class", "category", NULL };

/* The first of the names that is a column of the file; NULL: none. */
static const char *find_column(const ses_records *r, const char *const *names)
{
    for (; *names; names++)
        for (size_t i = 0; i < ses_records_field_count(r); i++) {
            const char *name = ses_records_column_name(r, i);
            if (name && ses_is_column_name(name, *names)) return *names;
        }
    return NULL;
}

static bool is_pipe(const char *path)
{
    struct stat s;
    return !strcmp(path, "-") || (!stat(path, &s) && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode));
}

static bool is_labeled(const ses_data_spec *s)
{
    return !s->no_labels && s->kind != SES_DATA_SEQ2SEQ && s->kind != SES_DATA_TEXT &&
           s->kind != SES_DATA_TUPLE;
}

static bool is_complete(const ses_data_spec *s)
{
    bool target = s->kind == SES_DATA_SEQ2SEQ && !s->no_labels;
    if (s->kind == SES_DATA_TUPLE) return s->text_a && s->text_b && s->choices;
    return s->text_a && (s->label || !is_labeled(s)) && (s->text_b || !target);
}

/* Columns of a file without header: text, pair, label. */
static void number_columns(ses_data_spec *s)
{
    if (!s->text_a) s->text_a = "1";
    if (!s->text_b && (s->kind == SES_DATA_SEQ2SEQ || s->kind == SES_DATA_TUPLE)) s->text_b = "2";
    if (!s->label && is_labeled(s)) s->label = s->text_b ? "3" : "2";
}

/* None of the names in the file: the first, so that the reader reports it with the columns of the file. */
static const char *find_column_or_first(const ses_records *r, const char *const *names)
{
    const char *name = find_column(r, names);
    return name ? name : names[0];
}

/* Finds columns with other names by their values. */
static bool find_by_values(ses_data_spec *s, const char *path, const ses_records_options *o,
                           ses_found_columns *f, ses_err *e)
{
    ses_column_question q = { s->text_a, s->label, !is_labeled(s), "--text", "--label" };
    if (!ses_found_columns_read(f, path, o, &q, e)) return false;
    if (*f->text) s->text_a = f->text;
    if (*f->label) s->label = f->label;
    s->no_header = f->no_header;
    return true;
}

/* Whether values tell the columns that still lack a name: one text, and a class or no label. */
static bool has_classes_only(const ses_data_spec *s)
{
    bool labels = s->label || !is_labeled(s) || s->kind == SES_DATA_CLASSIFY;
    return labels && !s->text_b &&
           (s->kind == SES_DATA_CLASSIFY || s->kind == SES_DATA_MULTI || s->kind == SES_DATA_TEXT);
}

bool ses_data_find_columns(ses_data_spec *s, const char *path, ses_found_columns *f, ses_err *e)
{
    *f = (ses_found_columns){ 0 };
    if (s->format == SES_DATA_LINES && ses_is_table_name(path)) s->format = SES_DATA_TABLE;
    if (s->format != SES_DATA_TABLE || is_complete(s)) return true;
    if (s->no_header) return number_columns(s), true;
    bool rewrite = s->kind == SES_DATA_SEQ2SEQ;
    if (is_pipe(path))
        return ses_fail(e, SES_EUSAGE,
                        "%s: columns of a pipe cannot be detected; set the column options text%s", path,
                        is_labeled(s)              ? " and label"
                        : rewrite && !s->no_labels ? " and pair"
                                                   : "");
    ses_records_options o = {
        .format = s->table, .delimiter = s->delimiter, .quotes = s->quotes, .encoding = s->encoding
    };
    ses_records *r = ses_records_open(path, &o, e);
    if (!r) return false;
    const ses_string *row; /* JSON lines: columns are known after the first row that can be read */
    while (!ses_records_next(r, &row, e))
        if (!ses_records_row_failed(r)) return ses_records_free(r), ses_wrap(e, "%s", path);
    if (e) *e = (ses_err){ 0 }; /* the reader reports or drops bad rows */
    if (s->kind == SES_DATA_TUPLE) {
        if (!s->text_a) s->text_a = find_column_or_first(r, anchor_names);
        if (!s->text_b) s->text_b = find_column_or_first(r, positive_names);
        if (!s->choices) s->choices = find_column(r, negative_names);
    }
    if (!s->text_b && rewrite)
        s->text_b = find_column_or_first(r, target_names);
    else if (!s->text_a && !s->text_b && s->kind != SES_DATA_TEXT)
        s->text_b = find_column(r, pair_names);
    const char *const *source = rewrite && find_column(r, source_names) ? source_names : text_names;
    if (!s->text_a) s->text_a = find_column(r, source);
    if (!s->label && is_labeled(s)) s->label = find_column(r, label_names);
    bool one = ses_records_field_count(r) == 1;
    ses_records_free(r);
    if (!is_complete(s) && !one && has_classes_only(s)) return find_by_values(s, path, &o, f, e);
    if (!s->label && is_labeled(s)) s->label = label_names[0]; /* the reader reports it */
    if (!s->text_a) s->text_a = "text";
    return true;
}

static bool is_one_of(ses_string s, const char *const *names)
{
    for (; *names; names++)
        if (ses_equal(s.p, s.n, *names)) return true;
    return false;
}

/* A header that is read as an example: its words are the usual names of columns. */
static bool check_no_header(const ses_data_spec *s, const ses_examples *d, ses_err *e)
{
    const ses_labeled_example *x = ses_examples_at(d, 0);
    bool classes = s->no_header && s->kind == SES_DATA_CLASSIFY && ses_examples_count(d) && x->label >= 0;
    const char *label = classes ? ses_examples_label_name(d, (size_t)x->label) : NULL;
    return !label || !is_one_of((ses_string){ label, strlen(label) }, label_names) ||
           !is_one_of(x->text_a, text_names) ||
           ses_fail(e, SES_EARG, "the first row, \"%.*s\" and \"%s\", is a header: leave out --no-header",
                    (int)x->text_a.n, x->text_a.p, label);
}

ses_examples *ses_data_open(const ses_data_spec *spec, const char *path, const ses_examples *like, ses_err *e)
{
    ses_data_spec s = *spec;
    ses_found_columns f;
    ses_examples *d = ses_data_find_columns(&s, path, &f, e) ? ses_examples_open(path, &s, like, e) : NULL;
    if (!d) return NULL;
    if (!check_no_header(&s, d, e))
        ses_wrap(e, "%s", path);
    else if (ses_examples_note_columns(d, f.notice, e))
        return d;
    ses_examples_free(d);
    return NULL;
}
