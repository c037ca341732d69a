#define _POSIX_C_SOURCE 200809L
#include "data_options.h"

#include "base/str.h"
#include "tune/finetuner.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool start_spec(const char *task, ses_data_spec *spec, const ses_benchmark **b, ses_err *e)
{
    const ses_finetune_task *k = ses_finetune_task_need(task, NULL);
    *b = k ? NULL : ses_benchmark_find(task);
    if (k) return *spec = ses_finetune_task_spec(k), true;
    if (*b) return *spec = (*b)->spec, true;
    const char *name;
    ses_buf list = { 0 };
    for (size_t i = 0; (name = ses_finetune_task_name(i, NULL)); i++)
        ses_buf_appendf(&list, "%s%s", i ? ", " : "", name);
    if (ses_buf_ok(&list, e))
        ses_fail(e, SES_EUSAGE,
                 "--task: neither a kind nor a benchmark: \"%s\"; there are %s, and the benchmarks that "
                 "sesame data --list names",
                 ses_quoted_of(task, strlen(task)).s, list.data);
    ses_buf_free(&list);
    return false;
}

static void set_format(int format, ses_data_spec *spec)
{
    enum { AUTO, TSV, CSV, JSONL, CONLL, CONLLU, SQUAD, TEXT };
    if (format == AUTO) return;
    spec->format = format <= JSONL   ? SES_DATA_TABLE
                   : format == SQUAD ? SES_DATA_SQUAD
                   : format == TEXT  ? SES_DATA_LINES
                                     : SES_DATA_CONLL;
    spec->table = format == TSV     ? SES_TABLE_TSV
                  : format == CSV   ? SES_TABLE_CSV
                  : format == JSONL ? SES_TABLE_JSONL
                                    : SES_TABLE_AUTO;
    spec->conllu = format == CONLLU;
}

static bool number_of(const char *option, const char *text, int *out, ses_err *e)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n == 0 || labs(n) > 1000)
        return ses_fail(e, SES_EUSAGE, "--%s: \"%s\" is not the number of a column", option, text);
    *out = (int)n;
    return true;
}

/* Of CoNLL columns --text and --label say by number what --token-column and --tag-column do. */
static bool set_columns(const ses_data_args *a, ses_data_spec *spec, ses_err *e)
{
    if (a->token_column) spec->token_column = (int)a->token_column;
    if (a->tag_column) spec->tag_column = (int)a->tag_column;
    if (spec->format == SES_DATA_CONLL)
        return (!a->text || number_of("text", a->text, &spec->token_column, e)) &&
               (!a->label || number_of("label", a->label, &spec->tag_column, e));
    if (a->text) spec->text_a = a->text;
    if (a->pair) spec->text_b = a->pair;
    if (a->label) spec->label = a->label;
    return true;
}

bool ses_data_args_spec(const ses_data_args *a, ses_data_spec *spec, const ses_benchmark **b, ses_err *e)
{
    if (!start_spec(a->task ? a->task : "classify", spec, b, e)) return false;
    if (spec->format == SES_DATA_LINES && a->text) spec->format = SES_DATA_TABLE;
    set_format(a->format, spec);
    if (!set_columns(a, spec, e)) return false;
    if (a->choices) spec->choices = a->choices;
    if (a->labels) spec->label_values = a->labels, spec->label_names = NULL;
    if (a->no_header) spec->no_header = true;
    if (a->quotes) spec->quotes = (ses_quotes)a->quotes;
    spec->skip_bad_answers = a->skip_bad;
    if (!a->delimiter) return true;
    bool tab = !strcmp(a->delimiter, "\\t") || !strcmp(a->delimiter, "tab");
    if (!tab && (strlen(a->delimiter) != 1 || *a->delimiter == '"' || *a->delimiter == '\n'))
        return ses_fail(e, SES_EUSAGE, "--delimiter: one ASCII character, or tab");
    spec->delimiter = tab ? '\t' : *a->delimiter;
    return true;
}

/* ---- columns nobody named ---- */

/* What columns are called where nobody says which. The first that is there is taken. */
static const char *const usual_text[] = { "sentence",  "text",     "sentence1", "premise",
                                          "question1", "question", "review",    NULL };
static const char *const usual_pair[] = { "sentence2", "hypothesis", "question2", NULL };
static const char *const usual_anchor[] = { "anchor",    "query",     "question", "premise",
                                            "sentence1", "question1", "text",     NULL };
static const char *const usual_positive[] = { "positive",   "answer",    "entailment", "sentence2",
                                              "hypothesis", "question2", NULL };
static const char *const usual_negative[] = { "negative", "contradiction", NULL };
static const char *const usual_target[] = {
    "target", "summary", "highlights", "translation", "output", NULL
};
static const char *const usual_source[] = {
    "source", "text", "document", "article", "dialogue", "input", NULL
};
static const char *const usual_label[] = { "label", "labels", "score", "class", "category", NULL };

/* The first of the usual names that the file has. */
static const char *usual(const ses_records *r, const char *const *names)
{
    for (; *names; names++)
        for (size_t i = 0; i < ses_records_field_count(r); i++) {
            const char *name = ses_records_column_name(r, i);
            if (name && !strcmp(name, *names)) return *names;
        }
    return NULL;
}

/* Standard input or a pipe. */
static bool read_once(const char *path)
{
    struct stat s;
    return !strcmp(path, "-") || (!stat(path, &s) && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode));
}

/* Plain text, unless the file's name says it is a table. */
static bool is_table(const char *path)
{
    static const char *const end[] = { ".tsv", ".csv", ".jsonl", ".ndjson", ".json" };
    size_t n = strlen(path);
    for (size_t i = 0; i < SES_LEN(end); i++)
        if (n > strlen(end[i]) && !strcmp(path + n - strlen(end[i]), end[i])) return true;
    return false;
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

/* Columns of a row without a header: the text, its pair, the label. */
static void count_columns(ses_data_spec *s)
{
    if (!s->text_a) s->text_a = "1";
    if (!s->text_b && (s->kind == SES_DATA_SEQ2SEQ || s->kind == SES_DATA_TUPLE)) s->text_b = "2";
    if (!s->label && is_labeled(s)) s->label = s->text_b ? "3" : "2";
}

/* Where none of the usual ones is there, the first of them: the reader says what is. */
static const char *usual_or_first(const ses_records *r, const char *const *names)
{
    const char *name = usual(r, names);
    return name ? name : names[0];
}

/* Columns nobody named: by their usual names, or without a header the first and the second. */
static bool guess_columns(ses_data_spec *s, const char *path, ses_err *e)
{
    if (s->format == SES_DATA_LINES && is_table(path)) s->format = SES_DATA_TABLE;
    if (s->format != SES_DATA_TABLE || is_complete(s)) return true;
    if (s->no_header) return count_columns(s), true;
    bool rewrite = s->kind == SES_DATA_SEQ2SEQ;
    if (read_once(path))
        return ses_fail(
            e, SES_EUSAGE,
            "%s: a pipe is read once, so its columns cannot be looked for; name them with --text%s", path,
            is_labeled(s)              ? " and --label"
            : rewrite && !s->no_labels ? " and --pair"
                                       : "");
    ses_records *r = ses_records_open(
        path, &(ses_records_options){ .format = s->table, .delimiter = s->delimiter, .quotes = s->quotes },
        e);
    if (!r) return false;
    const ses_string *row;
    ses_records_next(r, &row, NULL); /* of JSON: its columns are known by then */
    if (s->kind == SES_DATA_TUPLE) {
        if (!s->text_a) s->text_a = usual_or_first(r, usual_anchor);
        if (!s->text_b) s->text_b = usual_or_first(r, usual_positive);
        if (!s->choices) s->choices = usual(r, usual_negative);
    }
    if (!s->text_b && rewrite)
        s->text_b = usual_or_first(r, usual_target);
    else if (!s->text_a && !s->text_b && s->kind != SES_DATA_TEXT)
        s->text_b = usual(r, usual_pair);
    const char *const *source = rewrite && usual(r, usual_source) ? usual_source : usual_text;
    if (!s->text_a) s->text_a = usual(r, source);
    if (!s->label && is_labeled(s)) s->label = usual_or_first(r, usual_label);
    ses_records_free(r);
    if (!s->text_a) s->text_a = "text";
    return true;
}

ses_examples *ses_data_args_open(const ses_data_spec *spec, const char *path, const ses_examples *like,
                                 ses_err *e)
{
    ses_data_spec s = *spec;
    return guess_columns(&s, path, e) ? ses_examples_open(path, &s, like, e) : NULL;
}
