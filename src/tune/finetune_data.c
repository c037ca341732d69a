/* Task, spec, labels and rows of a fine-tuning run. */
#include "finetune_data.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/suggest.h"
#include "data/examples_sample.h"
#include "finetune_impl.h"
#include "tune/data/held_out.h"
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
    if (o->patterns && !k->ways[SES_WAY_PATTERNS])
        return ses_fail(e, SES_EUSAGE, "patterns apply to the task classify, not %s", k->name);
    if (o->patterns) *task = k = k->ways[SES_WAY_PATTERNS];
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

/* ---- rows ---- */

bool ses_finetune_find_task(ses_finetune *f, ses_err *e)
{
    ses_data_options *d = &f->o.data;
    if (d->task) return true;
    if (f->o.train_examples)
        d->task = ses_finetune_task_for_data(ses_examples_kind(f->o.train_examples))->name;
    else if (f->o.train)
        d->task = ses_finetune_detect_task(f->o.train, d, e);
    else
        ses_fail(e, SES_EUSAGE, "set a training file or training examples");
    return d->task != NULL;
}

/* eval 10%: divides the training examples. */
static bool hold_out(ses_finetune *f, ses_err *e)
{
    const ses_finetune_options *o = &f->o;
    if (ses_finetune_eval_spec(&o->task, f->task, &f->spec).kind != f->spec.kind)
        return ses_fail(e, SES_EUSAGE, "eval %s: pairs with scores evaluate this training: give a file",
                        o->eval);
    f->divided_train = f->own_train;
    f->own_train = NULL;
    if (!ses_held_out_take(o->eval, (uint64_t)o->run.seed, f->train_rows, &f->own_train, &f->own_eval, e))
        return ses_wrap(e, "%s", f->train_name);
    f->train_rows = f->own_train;
    f->eval_rows = f->own_eval;
    return true;
}

/* train_size, shots: replaces the training examples by a part of them. */
static bool draw_train(ses_finetune *f, ses_err *e)
{
    const ses_finetune_options *o = &f->o;
    if (!o->train_size && !o->shots) return true;
    ses_sample s = { o->train_size, o->shots, (uint64_t)o->run.seed };
    f->whole_train = f->own_train;
    f->own_train = ses_examples_sample(f->train_rows, &s, e);
    f->train_rows = f->own_train;
    return f->own_train || ses_wrap(e, "%s", f->train_name);
}

/* Which examples of the evaluation are trained on. */
static bool compare_rows(ses_finetune *f, ses_err *e)
{
    return !f->eval_rows || ses_examples_overlap(f->train_rows, f->eval_rows, &f->overlap, e);
}

bool ses_finetune_prepare_data(ses_finetune *f, ses_err *e)
{
    const ses_finetune_options *o = &f->o;
    f->train_rows = o->train_examples;
    f->eval_rows = o->eval_examples;
    if (o->train) f->train_rows = f->own_train = ses_data_open(&f->spec, o->train, NULL, e);
    bool held = ses_held_out_is(o->eval);
    if (!f->train_rows || (held && !hold_out(f, e)) || !draw_train(f, e)) return false;
    bool soft = o->task.few_shot && o->task.few_shot->soft; /* texts with one best label differ in scores */
    if (!soft && !ses_examples_check_learnable(f->train_rows, e)) return ses_wrap(e, "%s", f->train_name);
    if (!ses_finetune_match_labels(f, e)) return false;
    if (f->eval_rows && f->task->has_label_names &&
        !ses_examples_align_labels(f->eval_rows, f->train_rows, e))
        return ses_wrap(e, "%s", f->eval_name);
    if (!o->eval || held) return compare_rows(f, e);
    ses_data_spec spec = ses_finetune_eval_spec(&o->task, f->task, &f->spec);
    f->eval_rows = f->own_eval =
        ses_data_open(&spec, o->eval, spec.kind == f->spec.kind ? f->train_rows : NULL, e);
    return f->eval_rows && compare_rows(f, e);
}

void ses_finetune_report_overlap(const ses_finetune *f, ses_training_fn *on_event, void *ctx)
{
    char text[400];
    if (ses_held_out_is(f->o.eval))
        ses_training_notify(on_event, ctx, "%s: %zu examples are held out for evaluation, drawn by seed %lld",
                            f->train_name, ses_examples_count(f->own_eval), (long long)f->o.run.seed);
    if (*ses_row_overlap_text(&f->overlap, f->eval_name, text, sizeof text))
        ses_training_notify(on_event, ctx, "%s", text);
}

/* ---- before anything is trained ---- */

static bool check_set(const ses_finetune_options *o, ses_row_overlap *overlap, ses_err *e)
{
    ses_finetune f = { .o = *o, .train_name = o->train, .eval_name = o->eval };
    bool ok = ses_finetune_find_task(&f, e) &&
              ses_finetune_resolve_task(&f.o.data, &f.o.task, &f.task, &f.spec, e) &&
              ses_finetune_prepare_data(&f, e);
    *overlap = f.overlap;
    ses_examples_free(f.own_train);
    ses_examples_free(f.whole_train);
    ses_examples_free(f.own_eval);
    ses_examples_free(f.divided_train);
    return ok;
}

bool ses_finetune_check_data(const ses_finetune_options *o, ses_row_overlap *overlap, ses_err *e)
{
    ses_row_overlap other;
    if (!check_set(o, overlap, e)) return false;
    for (size_t i = 0; i < o->n_also; i++) {
        ses_finetune_options part = *o;
        part.train = o->also[i].train, part.eval = o->also[i].eval;
        part.data = o->also[i].data, part.task = o->also[i].task;
        if (!check_set(&part, &other, e)) return false;
    }
    return true;
}
