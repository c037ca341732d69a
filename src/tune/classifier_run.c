/* A run of a classifier that reads texts: data, training, evaluation, folder. */
#include "classifier_run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "finetune_impl.h"
#include "tensor/device_impl.h"
#include "train/train_folder.h"

#include <math.h>
#include <string.h>

static bool check_options(const ses_finetune_options *o, const ses_finetune_task *task, ses_err *e)
{
    if (!task->ways[SES_WAY_CLASSIFIER])
        return ses_fail(e, SES_EUSAGE, "methods classify texts: --task classify, not %s", task->name);
    if (o->model || o->config || o->open_model)
        return ses_fail(e, SES_EUSAGE, "a method is trained instead of a model: remove --model or --method");
    if (!o->train == !o->train_examples)
        return ses_fail(e, SES_EUSAGE, "set either a training file or training examples");
    return true;
}

/* ---- training ---- */

typedef struct texts {
    ses_arena mem;
    ses_string *text;
    int32_t *label;
    size_t n;
} texts;

static bool read_texts(texts *t, const ses_examples *rows, ses_err *e)
{
    t->n = ses_examples_count(rows);
    t->text = ses_arena_array(&t->mem, t->n, sizeof *t->text, e);
    t->label = ses_arena_array(&t->mem, t->n, sizeof *t->label, e);
    if (!t->text || !t->label || !ses_classifier_texts(rows, t->text, &t->mem, e)) return false;
    for (size_t i = 0; i < t->n; i++) {
        t->label[i] = ses_examples_at(rows, i)->label;
        if (t->label[i] < 0)
            return ses_fail(e, SES_EFORMAT, "line %llu: no label",
                            (unsigned long long)ses_examples_at(rows, i)->line);
    }
    return true;
}

static ses_classifier *train_texts(ses_finetune *f, const ses_classifier_plan *p, const texts *t, ses_err *e)
{
    ses_energy_meter meter;
    const ses_training_options *r = &f->o.run;
    ses_classifier_job job = { .text = t->text,
                               .label = t->label,
                               .n = t->n,
                               .n_labels = ses_examples_label_count(f->train_rows),
                               .settings = p->settings,
                               .seed = (uint64_t)r->seed,
                               .pool = f->dev->exec.pool,
                               .progress = p->progress,
                               .ctx = p->ctx };
    f->log.options.energy = ses_training_energy(r);
    double begin = ses_seconds();
    ses_energy_meter_start(&meter, &(ses_energy_sources){ 0 });
    ses_classifier *c = ses_classifier_train(p->kind, &job, e);
    f->log.energy = ses_energy_meter_stop(&meter, r->core_watts);
    f->log.seconds = ses_seconds() - begin;
    return c;
}

static bool train(ses_finetune *f, const ses_classifier_plan *p, ses_err *e)
{
    texts t = { 0 };
    ses_finetuner_options o = ses_finetuner_options_from(&f->o.task, f->task, &f->spec);
    ses_classifier *c = NULL;
    ses_finetune_report_labels(f, f);
    ses_finetune_report_rows(f);
    if (!read_texts(&t, f->train_rows, e))
        ses_wrap(e, "%s", f->train_name);
    else
        c = train_texts(f, p, &t, e);
    f->tuner = c ? ses_finetuner_new_classifier(&o, c, f->dev, e) : NULL;
    ses_arena_free(&t.mem);
    return f->tuner && ses_finetuner_set_labels(f->tuner, f->train_rows, e) &&
           ses_finetune_check_metric(f, e);
}

/* ---- the folder ---- */

static bool write_results(const ses_finetune *f, const char *dir, const char *name, bool train_part,
                          bool eval_part, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(4, e);
    ses_json_begin_object(w);
    ses_finetune_put_parts(f, train_part, eval_part, w);
    ses_json_end_object(w);
    return ses_json_writer_save(w, dir, name, false, e);
}

static bool write_all(void *ctx, const char *dir, ses_err *e)
{
    const ses_finetune *f = ctx;
    const ses_classifier *c = f->tuner->classifier;
    ses_run_info info = { .command = f->o.command,
                          .options = f->o.command_options,
                          .method = c->kind->name,
                          .parameters = ses_classifier_finetune_parameters(f),
                          .metric = ses_finetune_metric(f),
                          .lower_is_better = f->lower_is_better };
    return ses_classifier_save(c, dir, f->tuner->label, e) &&
           write_results(f, dir, "train_results.json", true, false, e) &&
           (!f->eval_rows || write_results(f, dir, "eval_results.json", false, true, e)) &&
           write_results(f, dir, "all_results.json", true, true, e) && ses_finetune_write_errors(f, dir, e) &&
           ses_run_info_write(&info, dir, e) && ses_model_card_write(f, dir, e);
}

/* ---- the run ---- */

static bool run(ses_finetune *f, const ses_classifier_plan *p, ses_err *e)
{
    if (!ses_finetune_resolve_task(&f->o.data, &f->o.task, &f->task, &f->spec, e) ||
        !check_options(&f->o, f->task, e) || !ses_classifier_check_settings(p->kind, &p->settings, e) ||
        !ses_train_folder_check(&f->o.run, e))
        return false;
    f->task = f->task->ways[SES_WAY_CLASSIFIER];
    f->lower_is_better = ses_metric_lower_is_better(ses_finetune_metric(f));
    if (!ses_finetune_prepare_data(f, e)) return false;
    ses_finetune_report_overlap(f, f->o.on_event, f->o.ctx);
    if (!train(f, p, e)) return false;
    if (f->eval_rows &&
        (!ses_finetuner_encode(f->tuner, f->eval_rows, &f->eval, e) || !ses_finetune_evaluate(f, true, e)))
        return ses_wrap(e, "%s", f->eval_name);
    const char *out = f->o.run.output;
    ses_dir_lock *lock = out ? ses_train_folder_lock(&f->o.run, e) : NULL;
    bool ok = !out || (lock && ses_train_folder_write(out, write_all, f, e));
    ses_dir_lock_free(lock);
    return ok;
}

ses_finetune *ses_classifier_finetune(const ses_finetune_options *o, const ses_classifier_plan *p,
                                      ses_device *d, ses_err *e)
{
    ses_finetune *f = ses_alloc(sizeof *f, e);
    if (!f) return NULL;
    f->o = *o;
    f->o.task.loss = NULL; /* a setting of the method */
    if (!f->o.data.task) f->o.data.task = "classify";
    f->dev = d;
    f->report.loss = NAN;
    f->was_started = true;
    f->train_name = o->train ? o->train : "training examples";
    f->eval_name = o->eval ? o->eval : "evaluation examples";
    if (run(f, p, e)) return f;
    ses_finetune_free(f);
    return NULL;
}

bool ses_classifier_beside(const ses_finetune *f, const ses_classifier_plan *p, ses_device *d, double *score)
{
    ses_err ignored = { 0 };
    ses_finetune_options o = ses_finetune_defaults();
    if (!f->eval_rows || f->mixture || !f->task->ways[SES_WAY_CLASSIFIER]) return false;
    o.train_examples = f->train_rows, o.eval_examples = f->eval_rows;
    o.data = f->o.data;
    o.metric = f->o.metric;
    o.task.metrics = f->o.task.metrics;
    o.run.seed = f->o.run.seed;
    ses_finetune *g = ses_classifier_finetune(&o, p, d, &ignored);
    bool ok = g && ses_scores_find(&g->report.scores, ses_finetune_metric(f), score);
    ses_finetune_free(g);
    return ok;
}

int64_t ses_classifier_finetune_parameters(const ses_finetune *f)
{
    const ses_classifier *c = f->tuner->classifier;
    return c->kind->parameters ? c->kind->parameters(c->self) : 0;
}

ses_classifier_cost ses_classifier_finetune_cost(const ses_finetune *f)
{
    return (ses_classifier_cost){ f->log.seconds, f->eval_seconds, f->log.energy.joules,
                                  f->log.energy.measured };
}
