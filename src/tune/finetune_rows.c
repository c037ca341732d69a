/* The rows of a fine-tuning run: read, drawn, compared. */
#include "finetune_impl.h"

#include "data/examples_sample.h"
#include "tune/few_shot/few_shot.h"

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
    if (!f->train_rows || !draw_train(f, e)) return false;
    bool soft = o->task.few_shot && o->task.few_shot->soft; /* texts with one best label differ in scores */
    if (!soft && !ses_examples_check_learnable(f->train_rows, e)) return ses_wrap(e, "%s", f->train_name);
    if (!ses_finetune_match_labels(f, e)) return false;
    if (f->eval_rows && f->task->has_label_names &&
        !ses_examples_align_labels(f->eval_rows, f->train_rows, e))
        return ses_wrap(e, "%s", f->eval_name);
    if (!o->eval) return compare_rows(f, e);
    ses_data_spec spec = ses_finetune_eval_spec(&o->task, f->task, &f->spec);
    f->eval_rows = f->own_eval =
        ses_data_open(&spec, o->eval, spec.kind == f->spec.kind ? f->train_rows : NULL, e);
    return f->eval_rows && compare_rows(f, e);
}

void ses_finetune_report_overlap(const ses_finetune *f, ses_training_fn *on_event, void *ctx)
{
    char text[400];
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
