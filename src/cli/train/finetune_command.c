/* One fine-tuning run of the command: options to ses_finetune_options, terminal output, summary. */
#include "finetune_command.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/number_text.h"
#include "cli/inspect/run_report.h"
#include "cli/train/search/finetune_search.h"
#include "cli/ui/show_values.h"
#include "command_text.h"
#include "eval_report_show.h"
#include "finetune_sets.h"
#include "train/checkpoint_dir.h"
#include "train/distill/student_config.h"
#include "train/train_folder.h"
#include "train_monitor.h"
#include "tune/few_shot/tune_method.h"

#include <inttypes.h>

bool ses_finetune_print_json(const ses_finetune *f, const char *output, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "output", output);
    ses_finetune_put_results(f, w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

/* The folders of several tasks. */
static void show_folders(const ses_finetune *f, const char *output, const ses_term *t)
{
    const char *name;
    for (size_t i = 0; (name = ses_finetune_folder(f, i)); i++)
        ses_show_line(t, i ? "" : "Next", "sesame eval %s/%s FILE", output, name);
}

/* The result of pruning. */
static void show_pruning(const ses_finetune *f, const ses_term *t)
{
    const ses_pruning_report *r = ses_finetune_pruning(f);
    char a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT];
    if (!r) return;
    ses_show_line(t, "Pruned", "%.1f %% of the pruned weights are kept", 100 * r->kept);
    for (size_t i = 0; i < r->n_kinds; i++)
        ses_show_line(t, "", "%-12s %5.1f %% of %s", r->kind[i].name,
                      100 * (double)r->kind[i].kept / (double)r->kind[i].weights,
                      ses_count_text(a, (uint64_t)r->kind[i].weights));
    ses_show_line(t, "Left", "%" PRId64 " of %" PRId64 " heads, %s of %s feed-forward rows", r->heads_left,
                  r->heads, ses_grouped_text(a, r->rows_left), ses_grouped_text(b, r->rows));
    ses_show_line(t, "", "%s of %s parameters", ses_grouped_text(a, r->parameters_left),
                  ses_grouped_text(b, r->parameters));
    ses_show_line(t, "", "%s in f32", ses_bytes_text(a, sizeof(float) * (uint64_t)r->parameters_left));
}

static void show_summary(const ses_finetune *f, const ses_finetune_args *a, const ses_train_monitor *m,
                         const ses_call *c, ses_run_end end)
{
    const ses_term *t = &c->out;
    const ses_training_options *r = &a->s.train.run;
    const ses_trainer *trainer = ses_finetune_trainer(f);
    const char *best = ses_trainer_best_dir(trainer);
    ses_training_stats stats = ses_finetune_stats(f);
    char usage[600], log[600], board[600];
    snprintf(log, sizeof log, "%s/%s", r->output, SES_RUN_LOG);
    snprintf(board, sizeof board, "%s/%s", r->output, SES_RUN_TENSORBOARD);
    bool several = ses_finetune_folder(f, 0) != NULL;
    if (!several) ses_show_line(t, "Model", "%s: %s", r->output, ses_model_class_name(ses_finetune_model(f)));
    if (a->s.o.eval) ses_eval_report_show(ses_finetune_report(f), t);
    bool kept = best && ses_path_exists(best);
    if (a->s.o.eval && best)
        ses_show_line(t, "Best", "update %" PRId64 "%s%s", ses_trainer_state(trainer)->best_update,
                      kept ? ", in " : "", kept ? best : "");
    show_pruning(f, t);
    ses_train_monitor_show_summary(m, trainer, &stats, &a->s.train.energy, t, end);
    ses_show_line(t, "Files", "in %s: %s, report.html (curves), all_results.json, trainer_state.json",
                  r->output, several ? "a folder per task, tasks.json" : "README.md (model card)");
    ses_show_line(t, "Logs", "%s; tensorboard --logdir %s", r->log ? r->log : log,
                  r->tensorboard ? r->tensorboard : board);
    if (several) {
        show_folders(f, r->output, t);
        return;
    }
    ses_finetune_usage(f, r->output, usage, sizeof usage);
    ses_show_line(t, "Next", "sesame eval %s FILE; sesame predict %s FILE; %s", r->output, r->output, usage);
}

void ses_finetune_drop_checkpoints(const ses_finetune_args *a)
{
    ses_err why = { 0 };
    bool keeps = a->s.train.run.keep_checkpoints || (!a->s.o.pruning.criterion && a->s.o.pruning.keep >= 1);
    if (!keeps && !ses_checkpoint_remove_all(a->s.train.run.output, &why))
        fprintf(stderr, "sesame: %s\n", why.msg);
}

/* Whether a run to be resumed has ended and deleted its checkpoints; the options must be the same. */
static bool has_ended(const ses_finetune_args *a, const char *options, bool *ended, ses_err *e)
{
    const char *out = a->s.train.run.output;
    *ended = false;
    if (!a->s.train.run.resume || ses_checkpoint_any(out) || !ses_train_folder_has_result(out)) return true;
    ses_json_doc *about = ses_run_info_open(out, e);
    if (!about) return !e->code;
    *ended =
        ses_settings_check(ses_json_get(ses_json_root(about), "options"), options,
                           "resume|overwrite|threads|isa|device|json|keep-checkpoints|log|tensorboard", out,
                           "the run has ended and deleted its checkpoints (--keep-checkpoints keeps them): "
                           "--overwrite trains again",
                           e);
    ses_json_free(about);
    return *ended;
}

/* A run that is complete: the report, then the summary. */
static bool finish(const ses_finetune *f, const ses_finetune_args *a, const ses_train_monitor *m,
                   const ses_call *c, ses_run_end end, bool part, ses_err *e)
{
    ses_err ignored = { 0 };
    if (!ses_run_report_write_run(a->s.train.run.output, &ignored))
        fprintf(stderr, "sesame: report.html: %s\n", ignored.msg);
    if (!part) ses_finetune_drop_checkpoints(a);
    if (!part && !c->quiet && !a->compute.json) show_summary(f, a, m, c, end);
    if (!part && a->compute.json && !ses_finetune_print_json(f, a->s.train.run.output, e)) return false;
    if (!part && !c->quiet && a->s.o.eval) ses_finetune_show_logreg(f, a);
    return true;
}

static bool check_model(const ses_finetune_args *a, ses_err *e)
{
    bool student = ses_student_is_new(&a->s.o.teacher.student);
    if (!!a->s.o.model + !!a->s.o.config + !!a->s.o.embed + student == 1) return true;
    if (student)
        return ses_fail(
            e, SES_EUSAGE,
            "--student-layers and other sizes make a student of the teacher's config: leave out --model, "
            "--config and --embed");
    return ses_fail(
        e, SES_EUSAGE,
        a->s.o.model || a->s.o.config
            ? "--model starts from trained weights, --config and --embed from random ones: set "
              "one"
        : a->s.teachers.n
            ? "--model DIR or --config FILE is required or, with --teacher, --student-layers N of "
              "at least 1"
            : "--model DIR or --config FILE is required; --model sesame-small is the "
              "bundled encoder");
}

/* Trains, and shows the result on rank 0. */
static bool run(ses_call *c, const ses_finetune_args *a, const ses_finetune_options *o, ses_device *dev,
                bool part, bool *stopped, ses_err *e)
{
    ses_train_monitor *m = o->ctx;
    ses_run_end end = SES_RUN_COMPLETE;
    bool ended;
    *stopped = false;
    if (!has_ended(a, o->command_options, &ended, e)) return false;
    if (ended && !m->silent) {
        if (!m->quiet) fprintf(stderr, "%s: the run is complete; nothing to resume\n", a->s.train.run.output);
        return part || !a->compute.json || ses_train_print_results(a->s.train.run.output, e);
    }
    if (ended) return true;
    ses_finetune *f = ses_finetune_new(o, dev, e);
    if (f) m->metric = ses_finetune_metric(f);
    bool ok = f && ses_finetune_run(f, &end, e);
    *stopped = ok && end == SES_RUN_STOPPED;
    if (*stopped && !part && !m->silent) ses_train_monitor_notify_stopped(ses_finetune_trainer(f));
    if (ok && end == SES_RUN_WAS_COMPLETE)
        ok = part || m->silent || !a->compute.json || ses_train_print_results(a->s.train.run.output, e);
    else if (ok && !*stopped && !m->silent)
        ok = finish(f, a, m, c, end, part, e);
    ses_finetune_free(f);
    return ok;
}

/* The options, and their text as run.json stores it: with the lanes and the learning rate of the run. */
static bool set_options(const ses_finetune_args *a, ses_comm *comm, ses_train_monitor *m,
                        ses_finetune_options *o, ses_command_text *text, ses_err *e)
{
    bool notice;
    ses_finetune_args args = *a;
    *o = ses_finetune_settings_options(&a->s);
    if (!check_model(a, e) || !ses_rank_args_set(comm, &o->run, &notice, e)) return false;
    if (notice && !m->quiet && !m->silent) ses_rank_args_notify(&o->run);
    if (o->run.lanes > 1) args.s.train.run.lanes = o->run.lanes;
    args.s.train.run.lr = o->run.lr; /* a resumed run reads it as a given one */
    if (!ses_command_text_make(&ses_command_finetune, &args, text, e)) return false;
    o->command = text->line;
    o->command_options = text->options;
    o->on_event = ses_train_monitor_on_event;
    o->ctx = m;
    if (a->start) o->model = a->start, o->config = o->tokenizer = NULL;
    return true;
}

/* A run of the ranks of comm, which it frees; false also if it was stopped. NULL: a run of this process. */
static bool run_ranks(ses_call *c, const ses_finetune_args *a, ses_comm *comm, bool part, bool *stopped,
                      ses_err *e)
{
    ses_train_monitor monitor = {
        .term = &c->err, .quiet = c->quiet, .silent = ses_comm_rank(comm) > 0, .budget = a->budget
    };
    ses_device_options d = ses_rank_device_options(comm, &a->compute);
    ses_command_text text = { 0 };
    ses_finetune_sets sets = { 0 };
    ses_finetune_options o;
    char device[32];
    *stopped = false;
    bool ok = set_options(a, comm, &monitor, &o, &text, e) && ses_finetune_sets_open(&sets, a, &o, e);
    ses_device *dev = ok ? ses_device_open(ses_rank_device(comm, a->compute.device, device), &d, e) : NULL;
    ok = ses_rank_args_open(comm, dev, c->quiet, e) && run(c, a, &o, dev, part, stopped, e);
    if (comm) ok = ses_rank_args_leave(comm, ok && !*stopped, e); /* before the device it may use */
    ses_device_free(dev);
    ses_command_text_free(&text);
    ses_finetune_sets_free(&sets);
    return ok;
}

bool ses_finetune_one(ses_call *c, const ses_finetune_args *a, bool part, bool *stopped, ses_err *e)
{
    if (a->s.method && a->s.also.n)
        return ses_fail(e, SES_EUSAGE, "--method trains on one data set: give --train once");
    if (a->s.method && a->s.o.pruning.criterion)
        return ses_fail(
            e, SES_EUSAGE,
            "--prune trains one model, --method %s several or none: prune its result in a second run",
            a->s.method);
    if (a->s.method && ses_tune_method_find(a->s.method))
        return ses_finetune_by_method(c, a, part, stopped, e);
    if (a->s.method) return ses_finetune_classifier(c, a, part, stopped, e);
    return run_ranks(c, a, NULL, part, stopped, e);
}

bool ses_finetune_command(ses_call *c, ses_err *e)
{
    const ses_finetune_args *a = c->args;
    bool stopped = false, several = a->grid.n || a->seeds > 1 || a->search;
    bool staged = ses_stage_args_given(&a->stages);
    if (!ses_finetune_check_method(a, e) || !ses_finetune_check_unused(a, e)) return false;
    if (a->search == SES_SEARCH_GRID && a->trials != SES_SEARCH_TRIALS)
        return ses_fail(e, SES_EUSAGE, "--trials is the number of runs of --search random or halving");
    ses_comm *comm = ses_rank_args_join(&a->ranks, e);
    if (!comm) return false;
    if (!several && !a->s.method && !staged) return run_ranks(c, a, comm, false, &stopped, e);
    if (ses_comm_size(comm) > 1) {
        ses_fail(e, SES_EUSAGE, "%s uses one process: start it without mpirun, srun or torchrun",
                 staged    ? "a run with --adapt or --first"
                 : several ? "a search (--grid, --seeds)"
                           : "--method");
        return ses_rank_args_leave(comm, false, e);
    }
    ses_comm_free(comm);
    if (staged) return ses_finetune_stages(c, a, e);
    return several ? ses_finetune_search(c, e) : ses_finetune_one(c, a, false, &stopped, e) && !stopped;
}
