/* Labeled files for finetune, eval and predict: which task, which columns. */
#define _POSIX_C_SOURCE 200809L
#include "tune.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What columns are called where nobody says which. The first that is there is taken. */
static const char *const usual_text[] = { "sentence",  "text",     "sentence1", "premise",
                                          "question1", "question", "review",    NULL };
static const char *const usual_pair[] = { "sentence2", "hypothesis", "question2", NULL };
static const char *const usual_label[] = { "label", "labels", "score", "class", "category", NULL };

static const ses_tune_kind *kind_of(ses_data_kind data)
{
    const char *name;
    for (size_t i = 0; (name = ses_tune_name(i, NULL)); i++) {
        const ses_tune_kind *k = ses_tune_need(name, NULL);
        if (k->data == data) return k;
    }
    return NULL;
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

bool ses_tune_resolve(const ses_tune_args *a, const ses_tune_kind **kind, ses_data_spec *spec, ses_err *e)
{
    const ses_benchmark *b = ses_benchmark_find(a->task);
    ses_err none = { 0 };
    *kind = b ? kind_of(b->spec.kind) : ses_tune_need(a->task, &none);
    if (!*kind && b)
        return ses_fail(e, SES_EUNSUPPORTED, "--task %s: %s cannot be fine-tuned for yet", a->task,
                        ses_data_kind_name(b->spec.kind));
    if (!*kind)
        return ses_fail(e, SES_EUSAGE, "--task: %s; or a benchmark: sst2, conll2003, squad, ...", none.msg);
    *spec = b ? b->spec : ses_tune_spec(*kind);
    if (spec->format == SES_DATA_CONLL)
        return (!a->text || number_of("text", a->text, &spec->token_column, e)) &&
               (!a->label || number_of("label", a->label, &spec->tag_column, e));
    if (a->text) spec->text_a = a->text;
    if (a->pair) spec->text_b = a->pair;
    if (a->label) spec->label = a->label;
    if (a->no_header) spec->no_header = true;
    spec->skip_bad = a->skip_bad;
    return true;
}

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

ses_examples *ses_tune_read(const ses_data_spec *spec, const char *path, const ses_examples *like, ses_err *e)
{
    ses_data_spec s = *spec;
    return guess_columns(&s, path, e) ? ses_examples_open(path, &s, like, e) : NULL;
}

bool ses_tune_labels(const ses_json *config, ses_data_kind kind, ses_examples **out, bool *told, ses_err *e)
{
    const ses_json *names = ses_json_get(config, "id2label");
    size_t n = ses_json_len(names);
    *told = false;
    *out = NULL;
    const char **name = ses_alloc_array(n + 1, sizeof *name, e);
    bool ok = name != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        char id[24], none[32];
        snprintf(id, sizeof id, "%zu", i);
        snprintf(none, sizeof none, "LABEL_%zu", i);
        name[i] = ses_json_string(ses_json_get(names, id), NULL);
        *told |= name[i] && strcmp(name[i], none);
        if (!name[i]) ok = ses_fail(e, SES_EFORMAT, "config.json: id2label: label %zu has no name", i);
    }
    if (ok && n) {
        *out = ses_examples_labeled(kind, name, n, e);
        ok = *out != NULL;
    }
    ses_free(name);
    return ok;
}

ses_tune_options ses_tune_options_of(const ses_tune_args *a, const ses_tune_kind *k, const ses_data_spec *s)
{
    bool v2 = k->target == SES_TARGET_SPAN && s->metrics && !strcmp(s->metrics, "squad_v2");
    return (ses_tune_options){ .kind = k,
                               .metrics = a->may_lack && !v2 ? "squad_v2" : s->metrics,
                               .max_length = a->max_length                  ? a->max_length
                                             : k->target == SES_TARGET_SPAN ? 384
                                                                            : 0,
                               .stride = a->stride,
                               .all_pieces = a->all_pieces,
                               .best = a->best,
                               .longest = a->longest,
                               .may_lack = a->may_lack || v2,
                               .threshold = a->threshold };
}
