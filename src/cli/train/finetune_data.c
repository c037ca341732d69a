/* Labeled files for finetune, eval and predict: which task, which columns. */
#include "finetune_data.h"

#include "base/alloc.h"

#include <string.h>

static const ses_finetune_task *kind_of(ses_data_kind data)
{
    const char *name;
    for (size_t i = 0; (name = ses_finetune_task_name(i, NULL)); i++) {
        const ses_finetune_task *k = ses_finetune_task_need(name, NULL);
        if (k->data == data) return k;
    }
    return NULL;
}

static bool check_metrics(const char *list, ses_err *e)
{
    const char *name;
    for (const char *at = list; *at; at += strcspn(at, "|"), at += *at == '|') {
        size_t i = 0, n = strcspn(at, "|");
        while ((name = ses_metric_at(i, NULL, NULL)) && !ses_equal(at, n, name)) i++;
        if (name) continue;
        ses_buf all = { 0 };
        for (i = 0; (name = ses_metric_at(i, NULL, NULL)); i++)
            ses_buf_appendf(&all, "%s%s", i ? ", " : "", name);
        if (ses_buf_ok(&all, e))
            ses_fail(e, SES_EUSAGE, "--metrics: no \"%s\"; there are %s", ses_quoted_of(at, n).s, all.data);
        ses_buf_free(&all);
        return false;
    }
    return true;
}

bool ses_finetune_resolve_task(const ses_finetune_data_args *a, const ses_finetune_task **kind,
                               ses_data_spec *spec, ses_err *e)
{
    const ses_benchmark *b;
    if (!ses_data_args_spec(&a->data, spec, &b, e)) return false;
    *kind = ses_finetune_task_with_loss(b ? kind_of(spec->kind) : ses_finetune_task_need(a->data.task, NULL),
                                        a->loss, e);
    if (!*kind) return false;
    if (!(*kind)->head) { /* which data there are, the loss says; how they are measured, the option */
        bool triplets = ses_finetune_eval_spec(a, *kind, spec).kind == SES_DATA_TUPLE;
        spec->kind = (*kind)->data;
        spec->metrics = triplets ? "accuracy" : (*kind)->metrics;
        spec->best_metric = triplets ? "accuracy" : (*kind)->best_metric;
    }
    if (a->metrics) spec->metrics = a->metrics;
    return !a->metrics || check_metrics(a->metrics, e);
}

ses_data_spec ses_finetune_eval_spec(const ses_finetune_data_args *a, const ses_finetune_task *k,
                                     const ses_data_spec *spec)
{
    ses_data_spec s = *spec;
    bool triplets = a->eval_with == SES_EVAL_AUTO ? k->eval_triplets : a->eval_with == SES_EVAL_TRIPLETS;
    if (!k->head) s.kind = triplets ? SES_DATA_TUPLE : SES_DATA_REGRESS;
    return s;
}

bool ses_config_labels(const ses_json *config, ses_data_kind kind, ses_examples **out, bool *told, ses_err *e)
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
        *out = ses_examples_from_labels(kind, name, n, e);
        ok = *out != NULL;
    }
    ses_free(name);
    return ok;
}

ses_finetuner_options ses_finetuner_options_from(const ses_finetune_data_args *a, const ses_finetune_task *k,
                                                 const ses_data_spec *s)
{
    bool v2 = k->target == SES_TARGET_SPAN && s->metrics && !strcmp(s->metrics, "squad_v2");
    return (ses_finetuner_options){ .kind = k,
                                    .metrics = a->allow_no_answer && !v2 ? "squad_v2" : s->metrics,
                                    .max_length = a->max_length ? a->max_length : k->default_max_length,
                                    .stride = a->stride,
                                    .all_pieces = a->all_pieces,
                                    .n_best = a->n_best,
                                    .max_answer = a->max_answer,
                                    .allow_no_answer = a->allow_no_answer || v2,
                                    .null_threshold = a->null_threshold,
                                    .line_by_line = a->line_by_line,
                                    .prefix = a->prefix,
                                    .max_target = a->max_target,
                                    .num_beams = a->num_beams,
                                    .src_lang = a->src_lang,
                                    .tgt_lang = a->tgt_lang,
                                    .pooling = a->pooling,
                                    .margin = a->margin,
                                    .temperature = a->temperature };
}

bool ses_metric_lower_is_better(const char *score)
{
    return !strcmp(score, "loss") || !strcmp(score, "mse") || !strcmp(score, "perplexity");
}
