/* Learning curves: data, folder, the whole command. */
#include "curve.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "cli/train/data_notes.h"
#include "cli/train/train_monitor.h"
#include "tune/finetune_data.h"

/* Options that do not change the result of a cell. */
static const char *const IRRELEVANT = "sizes|methods|seeds|output|resume|overwrite|jobs|keep-models|"
                                      "confidence|json|threads|isa|device|core-watts|"
                                      "co2-per-kwh|price-per-hour|price-per-kwh";

static bool read_data(ses_curve *v, ses_err *e)
{
    ses_finetune_task_options none = { 0 };
    const ses_finetune_task *task;
    ses_data_spec spec;
    if (!ses_finetune_resolve_task(&v->a->data, &none, &task, &spec, e)) return false;
    v->task_name = task->name;
    v->metric = spec.best_metric;
    v->lower_is_better = ses_metric_lower_is_better(v->metric);
    v->in_percent = task->in_percent;
    v->train = ses_data_open(&spec, v->a->train, NULL, e);
    if (!v->train) return false;
    if (!ses_examples_check_learnable(v->train, e)) return ses_wrap(e, "%s", v->a->train);
    ses_data_spec eval = ses_finetune_eval_spec(&none, task, &spec);
    v->test = ses_data_open(&eval, v->a->eval, eval.kind == spec.kind ? v->train : NULL, e);
    if (!v->test) return false;
    ses_note_data(v->x.c, v->train, v->a->train, true);
    ses_note_data(v->x.c, v->test, v->a->eval, false);
    return ses_examples_overlap(v->train, v->test, &v->overlap, e);
}

static void report_overlap(const ses_curve *v)
{
    char text[400];
    if (!v->x.c->quiet && *ses_row_overlap_text(&v->overlap, v->a->eval, text, sizeof text))
        fprintf(stderr, "%s\n", text);
}

static bool describe(ses_curve *v, ses_err *e)
{
    const ses_command_value data[] = {
        { .name = "train_examples", .number = (int64_t)ses_examples_count(v->train) },
        { .name = "eval_examples", .number = (int64_t)ses_examples_count(v->test) },
    };
    return ses_experiment_describe(&v->x, data, SES_LEN(data), e);
}

/* ---- the folder ---- */

/* The folder of the cells. Earlier ones are removed by the process that has locked the output folder only. */
static bool open_cells(ses_curve *v, ses_err *e)
{
    v->cells = ses_path_join(v->a->output, "cells", e);
    if (!v->cells) return false;
    if (v->a->overwrite && ses_path_is_dir(v->cells) && !ses_dir_remove_all(v->cells, e)) return false;
    return ses_dir_make(v->cells, e);
}

/* ---- the command ---- */

static bool run(ses_curve *v, bool *stopped, ses_err *e)
{
    v->n_seeds = (size_t)v->a->seeds;
    v->run = ses_alloc_array(v->n_sizes * v->n_methods * v->n_seeds, sizeof *v->run, e);
    ses_dir_lock *lock = v->run ? ses_experiment_lock(&v->x, 0, e) : NULL;
    if (!lock) return false;
    report_overlap(v);
    bool ok = open_cells(v, e) && (v->a->resume || ses_experiment_write(&v->x, v->a->output, e)) &&
              ses_curve_run_all(v, stopped, e) && ses_experiment_write(&v->x, v->a->output, e) &&
              ses_experiment_show_in_folder(&v->x, ses_curve_has_score(v), e);
    ses_dir_lock_free(lock);
    return ok;
}

static void curve_free(ses_curve *v)
{
    ses_examples_free(v->train);
    ses_examples_free(v->test);
    ses_device_free(v->dev);
    ses_free(v->features.x);
    ses_free(v->method);
    ses_free(v->size);
    ses_free(v->run);
    ses_free(v->cells);
    ses_experiment_free(&v->x);
}

bool ses_curve_command(ses_call *c, ses_err *e)
{
    const ses_curve_args *a = c->args;
    ses_curve v = { .x = { .c = c,
                           .name = "curve",
                           .noun = "curve",
                           .title = "learning curves",
                           .output = a->output,
                           .model = a->model,
                           .hint = "--overwrite repeats all cells",
                           .ignored = IRRELEVANT,
                           .resume = a->resume,
                           .overwrite = a->overwrite,
                           .json = a->compute.json,
                           .seed = (uint64_t)a->seed,
                           .put = ses_curve_put,
                           .fill = ses_curve_fill },
                    .a = a };
    bool stopped = false;
    ses_train_monitor_catch_signals();
    bool ok = read_data(&v, e) && ses_curve_choose_methods(&v, e) && ses_curve_choose_sizes(&v, e) &&
              describe(&v, e) && run(&v, &stopped, e) && ses_experiment_end(&v.x, stopped);
    if (ok && !ses_curve_has_score(&v)) {
        fprintf(stderr, "sesame: no cell has a score\n");
        ok = false;
    }
    curve_free(&v);
    return ok;
}
