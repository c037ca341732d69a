#include "data_options.h"

#include <string.h>

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
                                 .best = kinds[i].best,
                                 .text_a = "text" };
        if (kinds[i].format == SES_DATA_TABLE && kinds[i].kind != SES_DATA_REWRITE) spec->label = "label";
        if (kinds[i].kind == SES_DATA_REWRITE) spec->text_b = "target";
        return true;
    }
    *b = ses_benchmark_find(task);
    if (*b) return *spec = (*b)->spec, true;
    return ses_fail(e, SES_EUSAGE,
                    "--task: neither a benchmark nor a kind: \"%s\" (sesame data --list names them)", task);
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

bool ses_data_args_spec(const ses_data_args *a, ses_data_spec *spec, const ses_benchmark **b, ses_err *e)
{
    if (!start_spec(a->task ? a->task : "classify", spec, b, e)) return false;
    set_format(a->format, spec);
    if (a->text) spec->text_a = a->text;
    if (a->pair) spec->text_b = a->pair;
    if (a->label) spec->label = a->label;
    if (a->choices) spec->choices = a->choices;
    if (a->labels) spec->values = a->labels, spec->names = NULL;
    if (a->no_header) spec->no_header = true;
    if (a->quotes) spec->quotes = (ses_quotes)a->quotes;
    if (a->token_column) spec->token_column = (int)a->token_column;
    if (a->tag_column) spec->tag_column = (int)a->tag_column;
    spec->skip_bad = a->skip_bad;
    if (!a->delimiter) return true;
    bool tab = !strcmp(a->delimiter, "\\t") || !strcmp(a->delimiter, "tab");
    if (!tab && (strlen(a->delimiter) != 1 || *a->delimiter == '"' || *a->delimiter == '\n'))
        return ses_fail(e, SES_EUSAGE, "--delimiter: one ASCII character, or tab");
    spec->delimiter = tab ? '\t' : *a->delimiter;
    return true;
}
