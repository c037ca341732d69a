#define _POSIX_C_SOURCE 200809L
#include "data_options.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Kinds by name, and how each is usually written and measured. */
static const struct {
    const char *name;
    ses_data_kind kind;
    ses_data_format format;
    const char *metrics, *best;
} kinds[] = {
    { "classify", SES_DATA_CLASSIFY, SES_DATA_TABLE, "accuracy|f1", "accuracy" },
    { "multi_label", SES_DATA_MULTI, SES_DATA_TABLE, "multilabel", "f1_micro" },
    { "regress", SES_DATA_REGRESS, SES_DATA_TABLE, "pearson|spearman|squared_error", "pearson" },
    { "tag", SES_DATA_TAG, SES_DATA_CONLL, "entity", "f1" },
    { "answer", SES_DATA_SPAN, SES_DATA_SQUAD, "squad_v2", "f1" },
    { "choose", SES_DATA_CHOICE, SES_DATA_TABLE, "accuracy", "accuracy" },
    { "rewrite", SES_DATA_REWRITE, SES_DATA_TABLE, "bleu|rouge", "bleu" },
};

static bool start_spec(const char *task, ses_data_spec *spec, const ses_benchmark **b, ses_err *e)
{
    *b = NULL;
    for (size_t i = 0; i < SES_LEN(kinds); i++) {
        if (strcmp(kinds[i].name, task) != 0) continue;
        *spec = (ses_data_spec){ .kind = kinds[i].kind,
                                 .format = kinds[i].format,
                                 .metrics = kinds[i].metrics,
                                 .best = kinds[i].best };
        return true;
    }
    *b = ses_benchmark_find(task);
    if (*b) return *spec = (*b)->spec, true;
    char list[128] = "";
    for (size_t i = 0; i < SES_LEN(kinds); i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", kinds[i].name);
    }
    return ses_fail(e, SES_EUSAGE,
                    "--task: neither a kind nor a benchmark: \"%s\"; there are %s, and the benchmarks that "
                    "sesame data --list names",
                    ses_quoted_of(task, strlen(task)).s, list);
}

static void set_format(int format, ses_data_spec *spec)
{
    enum { AUTO, TSV, CSV, JSONL, CONLL, CONLLU, SQUAD };
    if (format == AUTO) return;
    spec->format = format <= JSONL ? SES_DATA_TABLE : format == SQUAD ? SES_DATA_SQUAD : SES_DATA_CONLL;
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
    set_format(a->format, spec);
    if (!set_columns(a, spec, e)) return false;
    if (a->choices) spec->choices = a->choices;
    if (a->labels) spec->values = a->labels, spec->names = NULL;
    if (a->no_header) spec->no_header = true;
    if (a->quotes) spec->quotes = (ses_quotes)a->quotes;
    spec->skip_bad = a->skip_bad;
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
static const char *const usual_label[] = { "label", "labels", "score", "class", "category", NULL };

/* The first of the usual names that the file has. */
static const char *usual(const ses_records *r, const char *const *names)
{
    for (; *names; names++)
        for (size_t i = 0; i < ses_records_fields(r); i++) {
            const char *name = ses_records_name(r, i);
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

/* Columns nobody named: by their usual names, or without a header the first and the second. */
static bool guess_columns(ses_data_spec *s, const char *path, ses_err *e)
{
    if (s->format != SES_DATA_TABLE || (s->text_a && (s->label || s->no_labels))) return true;
    if (s->no_header) {
        if (!s->text_a) s->text_a = "1";
        if (!s->label) s->label = s->text_b ? "3" : "2";
        return true;
    }
    if (read_once(path))
        return ses_fail(
            e, SES_EUSAGE,
            "%s: a pipe is read once, so its columns cannot be looked for; name them with --text%s", path,
            s->no_labels ? "" : " and --label");
    ses_records *r = ses_records_open(
        path, &(ses_records_options){ .format = s->table, .delimiter = s->delimiter, .quotes = s->quotes },
        e);
    if (!r) return false;
    const ses_field *row;
    bool json = ses_records_next(r, &row, NULL) && ses_records_json(r); /* its columns are known by then */
    if (!s->text_a && !s->text_b) s->text_b = usual(r, usual_pair);
    if (!s->text_a) s->text_a = usual(r, usual_text);
    if (!s->label) s->label = usual(r, usual_label);
    ses_records_free(r);
    if (!s->text_a && json) s->text_a = "text";
    if (!s->label) s->label = "label";
    if (!s->text_a) s->text_a = "text"; /* which is not there: the reader says what is */
    return true;
}

ses_examples *ses_data_open(const ses_data_spec *spec, const char *path, const ses_examples *like, ses_err *e)
{
    ses_data_spec s = *spec;
    return guess_columns(&s, path, e) ? ses_examples_open(path, &s, like, e) : NULL;
}
