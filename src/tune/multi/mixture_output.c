/* Multi-task training: scores of all tasks, the folders of the models, the results of the run. */
#include "mixture_impl.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "train/train_folder.h"
#include "train/training_events.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- evaluation ---- */

const ses_eval_report *ses_mixture_report(const ses_mixture *m) { return &m->report; }

int64_t ses_mixture_size(const ses_mixture *m)
{
    int64_t n = 0;
    for (size_t k = 0; k < m->n; k++) n += ses_dataset_size(m->part[k]->train.data);
    return n;
}

const char *ses_mixture_metric(const ses_mixture *m) { return m->part[0]->o.metric ? "loss" : "mean"; }

static bool add_score(ses_scores *s, const char *task, const ses_score *from, ses_err *e)
{
    if (!ses_array_reserve(&s->item, &s->cap, s->n + 1, sizeof *s->item, e)) return false;
    ses_score *to = &s->item[s->n++];
    *to = *from;
    if (task) snprintf(to->name, sizeof to->name, "%.30s_%.30s", task, from->name);
    return true;
}

/* The scores of all tasks under one report. */
static bool collect_scores(ses_mixture *m, ses_err *e)
{
    ses_eval_report *all = &m->report;
    double mean = 0, value = NAN;
    ses_eval_report_free(all);
    for (size_t k = 0; k < m->n; k++) {
        const ses_finetune *f = m->part[k];
        const ses_eval_report *r = &f->report;
        if (!ses_scores_find(&r->scores, f->spec.best_metric, &value)) value = NAN;
        mean += value / (f->task->in_percent ? 100 : 1) / (double)m->n;
        all->loss += r->loss / (double)m->n;
        all->n += r->n;
        all->level = r->level;
        for (size_t i = 0; i < r->scores.n; i++)
            if (ses_eval_report_is_overall(r, i) &&
                !add_score(&all->scores, m->name[k], &r->scores.item[i], e))
                return false;
    }
    return add_score(&all->scores, NULL, &(ses_score){ "mean", mean, NAN, NAN }, e);
}

bool ses_mixture_evaluate(ses_mixture *m, bool last, ses_err *e)
{
    ses_finetune *first = m->part[0];
    bool ok = true;
    for (size_t k = 0; ok && k < m->n; k++) {
        ses_finetune *f = m->part[k];
        ses_trainer *own = f->trainer;
        f->trainer = first->trainer;
        ok = ses_finetune_evaluate_part(f, last, e);
        f->trainer = own;
        first->is_stopped |= f->is_stopped;
    }
    return ok && collect_scores(m, e);
}

void ses_mixture_report_sets(const ses_mixture *m)
{
    ses_finetune *first = m->part[0];
    for (size_t k = 0; k < m->n; k++) {
        const ses_finetune *f = m->part[k];
        ses_training_notify(ses_finetune_on_event, first,
                            "%s: %zu examples of %s, in %.1f %% of the batches; the model will be in %s",
                            m->name[k], f->train.n_rows, f->train_name, 100 * m->weight[k] / m->total_weight,
                            m->name[k]);
        if (!k) continue;
        ses_finetune_report_labels(f, first);
        ses_finetune_report_set(f->tuner, &f->train, f->train_name, ses_finetune_on_event, first);
        if (f->eval_rows)
            ses_finetune_report_set(f->tuner, &f->eval, f->eval_name, ses_finetune_on_event, first);
        ses_finetune_report_overlap(f, ses_finetune_on_event, first);
    }
}

void ses_mixture_put_settings(const ses_mixture *m, ses_json_writer *w)
{
    ses_json_member_real(w, "mix_alpha", m->part[0]->o.mix_alpha);
    for (size_t k = 1; k < m->n; k++) {
        char key[48];
        snprintf(key, sizeof key, "task_%zu", k + 1);
        ses_json_member_string(w, key, m->part[k]->task->name);
        snprintf(key, sizeof key, "train_examples_%zu", k + 1);
        ses_json_member_int(w, key, ses_dataset_size(m->part[k]->train.data));
        snprintf(key, sizeof key, "train_tokens_%zu", k + 1);
        ses_json_member_int(w, key, ses_dataset_tokens(m->part[k]->train.data));
    }
}

/* ---- folders ---- */

/* Writes the model of task k as the folder of a run of its own. */
static bool write_part(ses_mixture *m, size_t k, const char *dir, ses_err *e)
{
    ses_finetune *f = m->part[k], *first = m->part[0];
    const char *output = f->o.run.output;
    ses_trainer *trainer = f->trainer;
    ses_run_log log = f->log;
    first->mixture = NULL;
    f->o.run.output = dir;
    f->trainer = first->trainer;
    f->log = first->log;
    bool ok = ses_dir_make(dir, e) && ses_finetune_write_folder(f, dir, e);
    f->log = log;
    f->trainer = trainer;
    f->o.run.output = output;
    first->mixture = m;
    return ok;
}

static bool write_tasks(const ses_mixture *m, const char *dir, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    ses_json_begin_object(w);
    ses_json_member_real(w, "mix_alpha", m->part[0]->o.mix_alpha);
    ses_json_member_array(w, "tasks");
    for (size_t k = 0; k < m->n; k++) {
        const ses_finetune *f = m->part[k];
        double value;
        ses_json_begin_object(w);
        ses_json_member_string(w, "folder", m->name[k]);
        ses_json_member_string(w, "task", f->task->name);
        ses_json_member_string(w, "class", ses_model_class_name(f->tuner->model));
        ses_json_member_string(w, "train", f->train_name);
        if (f->eval_rows) ses_json_member_string(w, "eval", f->eval_name);
        ses_json_member_int(w, "train_examples", (int64_t)f->train.n_rows);
        ses_json_member_real(w, "share", m->weight[k] / m->total_weight);
        if (f->eval_rows && ses_scores_find(&f->report.scores, f->spec.best_metric, &value)) {
            ses_json_member_string(w, "metric", f->spec.best_metric);
            ses_json_member_real(w, "value", value);
        }
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    return ses_json_writer_save(w, dir, SES_RUN_TASKS, false, e);
}

/* The files of the run itself. */
static bool fill_run(void *ctx, const char *dir, ses_err *e)
{
    ses_mixture *m = ctx;
    return ses_finetune_write_run(m->part[0], dir, e) && write_tasks(m, dir, e);
}

bool ses_mixture_write(ses_mixture *m, ses_err *e)
{
    const char *out = m->part[0]->o.run.output;
    bool ok = true;
    for (size_t k = 0; ok && k < m->n; k++) {
        char *dir = ses_path_join(out, m->name[k], e);
        ok = dir && write_part(m, k, dir, e);
        ses_free(dir);
    }
    return ok && ses_train_folder_write(out, fill_run, m, e);
}
