/* Task, spec and labels of a fine-tuning run. */
#include "finetune_data.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/suggest.h"
#include "tune/few_shot/few_shot.h"
#include "tune/gpt/gpt_tuning.h"

#include <stdio.h>
#include <string.h>

static const char *metric_at(const void *ctx, size_t i)
{
    (void)ctx;
    return ses_metric_at(i, NULL, NULL);
}

static bool is_metric(const char *s, size_t n)
{
    const char *name;
    for (size_t i = 0; (name = ses_metric_at(i, NULL, NULL)); i++)
        if (ses_equal(s, n, name)) return true;
    return false;
}

static bool check_metrics(const char *list, ses_err *e)
{
    const char *item;
    size_t n;
    for (size_t k = 0; ses_list_at(list, k, &item, &n); k++) {
        if (!n || is_metric(item, n)) continue;
        return ses_fail_unknown(e, SES_EUSAGE, "metric", (ses_string){ item, n }, metric_at, NULL);
    }
    return true;
}

bool ses_finetune_resolve_task(const ses_data_options *d, const ses_finetune_task_options *o,
                               const ses_finetune_task **task, ses_data_spec *spec, ses_err *e)
{
    const ses_benchmark *b;
    if (!d->task) return ses_fail(e, SES_EUSAGE, "set a task: classify, tag, answer, ...");
    if (!ses_data_options_spec(d, spec, &b, e)) return false;
    const ses_finetune_task *k = b ? ses_finetune_task_for_data(spec->kind) : ses_finetune_task_find(d->task);
    k = ses_finetune_task_with_loss(k, o->loss, e);
    *task = k = k ? ses_finetune_task_with_inputs(k, o->inputs, e) : NULL;
    if (!k) return false;
    if (o->patterns && !k->by_patterns)
        return ses_fail(e, SES_EUSAGE, "patterns apply to the task classify, not %s", k->name);
    if (o->patterns) *task = k = k->by_patterns;
    if (o->few_shot && o->few_shot->task) *task = k = o->few_shot->task;
    if (!k->head) { /* embed: the loss decides the data, eval_with the metrics */
        bool triplets = ses_finetune_eval_spec(o, k, spec).kind == SES_DATA_TUPLE;
        spec->kind = k->data;
        spec->metrics = triplets ? "accuracy" : k->metrics;
        spec->best_metric = triplets ? "accuracy" : k->best_metric;
    }
    if (k->target == SES_TARGET_TAGS) spec->tag_scheme = o->scheme; /* the same numbers */
    if (o->metrics) spec->metrics = o->metrics;
    return !o->metrics || check_metrics(o->metrics, e);
}

ses_data_spec ses_finetune_eval_spec(const ses_finetune_task_options *o, const ses_finetune_task *k,
                                     const ses_data_spec *spec)
{
    ses_data_spec s = *spec;
    bool triplets = o->eval_with == SES_EVAL_AUTO ? k->eval_triplets : o->eval_with == SES_EVAL_TRIPLETS;
    if (!k->head) s.kind = triplets ? SES_DATA_TUPLE : SES_DATA_REGRESS;
    return s;
}

ses_finetuner_options ses_finetuner_options_from(const ses_finetune_task_options *o,
                                                 const ses_finetune_task *k, const ses_data_spec *s)
{
    bool v2 = k->target == SES_TARGET_SPAN && s->metrics && !strcmp(s->metrics, "squad_v2");
    ses_finetuner_options f = { .task = k, .settings = *o };
    f.settings.metrics = o->allow_no_answer && !v2 ? "squad_v2" : s->metrics ? s->metrics : k->metrics;
    f.settings.allow_no_answer = o->allow_no_answer || v2;
    if (!o->max_length) f.settings.max_length = k->default_max_length;
    return f;
}

bool ses_config_labels(const ses_json *config, ses_data_kind kind, ses_examples **out, bool *has_names,
                       ses_err *e)
{
    const ses_json *names = ses_json_get(config, "id2label");
    size_t n = ses_json_len(names);
    *has_names = false;
    *out = NULL;
    const char **name = ses_alloc_array(n + 1, sizeof *name, e);
    bool ok = name != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        char id[24], none[32];
        snprintf(id, sizeof id, "%zu", i);
        snprintf(none, sizeof none, "LABEL_%zu", i);
        name[i] = ses_json_string(ses_json_get(names, id), NULL);
        *has_names |= name[i] && strcmp(name[i], none);
        if (!name[i]) ok = ses_fail(e, SES_EFORMAT, "config.json: id2label: label %zu has no name", i);
    }
    if (ok && n) {
        *out = ses_examples_from_labels(kind, name, n, e);
        ok = *out != NULL;
    }
    ses_free(name);
    return ok;
}
