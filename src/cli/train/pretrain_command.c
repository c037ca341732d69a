/* The pretrain command as a client of sesame/pretrain.h: arguments, terminal output, report and curve. */
#include "pretrain_command.h"

#include "base/alloc.h"
#include "base/file.h"
#include "cli/inspect/run_report.h"
#include "cli/ui/show_values.h"
#include "command_text.h"
#include "train/distill/student_config.h"
#include "train/train_folder.h"
#include "train_monitor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct session {
    const ses_pretrain_args *a;
    bool first; /* rank 0: the others print nothing */
    ses_call *call;
    ses_pretrain *run;
    ses_pretrain_options o;
    ses_train_monitor monitor;
} session;

static bool check_options(const ses_pretrain_options *o, ses_err *e)
{
    bool student = ses_student_is_new(&o->teacher.student);
    if (!!o->model + !!o->config + !!o->preset + student != 1)
        return ses_fail(e, SES_EUSAGE,
                        "expected exactly one of --preset, --config and --model, or --student-layers or "
                        "another size of a new student");
    return o->model || student || o->tokenizer || ses_fail(e, SES_EUSAGE, "expected --tokenizer");
}

/* ---- terminal output ---- */

static void announce(const session *s)
{
    char a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT], c[SES_NUMBER_TEXT];
    const ses_term *t = &s->call->err;
    const ses_model *m = ses_pretrain_model(s->run), *g = ses_pretrain_generator(s->run);
    const ses_pretrain_result *r = ses_pretrain_result_of(s->run);
    fprintf(stderr, "%s%s%s: %s parameters", ses_style_on(t, SES_BOLD), ses_model_class_name(m),
            ses_style_on(t, SES_PLAIN), ses_grouped_text(a, ses_store_element_count(ses_model_store(m))));
    if (g)
        fprintf(stderr, ", generator: %s", ses_grouped_text(a, ses_store_element_count(ses_model_store(g))));
    fprintf(stderr, "; %s; %s tokens per pass, %s updates", s->o.objectives,
            ses_count_text(b, (uint64_t)r->pass_tokens),
            ses_grouped_text(c, ses_trainer_total_updates(ses_pretrain_trainer(s->run))));
    if (*ses_model_missing_keys(m) && s->o.model && !ses_trainer_state(ses_pretrain_trainer(s->run))->batches)
        fprintf(stderr, "; newly initialized: %s", ses_model_missing_keys(m));
    fputs("\n", stderr);
    for (size_t i = 0; i < r->n_baselines; i++)
        if (!isnan(r->baseline[i].loss))
            fprintf(stderr, "unigram baseline: %s_loss %.4f\n", r->baseline[i].name, r->baseline[i].loss);
}

static void show_summary(const session *s, ses_run_end end)
{
    const ses_term *t = &s->call->out;
    const ses_pretrain_result *r = ses_pretrain_result_of(s->run);
    const char *output = s->o.run.output;
    ses_show_line(t, "Model", "%s: %s", output, ses_model_class_name(ses_pretrain_model(s->run)));
    for (size_t i = 0; i < r->scores->n; i++)
        ses_show_line(t, i ? "" : "Held out", "%s %.4f", r->scores->item[i].name, r->scores->item[i].value);
    for (size_t i = 0; i < r->n_baselines; i++)
        if (!isnan(r->baseline[i].loss))
            ses_show_line(t, i ? "" : "Unigram", "baseline %s_loss %.4f", r->baseline[i].name,
                          r->baseline[i].loss);
    ses_train_monitor_show_summary(&s->monitor, ses_pretrain_trainer(s->run), &r->stats,
                                   &s->a->s.train.energy, t, end);
    ses_show_line(t, "Files", "in %s: README.md (model card), report.html, curve.svg, all_results.json",
                  output);
}

static bool print_json(const session *s, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "output", s->o.run.output);
    ses_pretrain_put_results(s->run, w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

/* ---- the run ---- */

static bool on_event(void *ctx, const ses_training_event *event)
{
    session *s = ctx;
    bool proceed = ses_train_monitor_on_event(&s->monitor, event);
    if (event->kind == SES_TRAINING_STARTED && !s->call->quiet && s->first) announce(s);
    return proceed;
}

static bool add_curve(void *ctx, const char *dir, ses_err *e)
{
    const ses_training_options *r = &((session *)ctx)->o.run;
    char *path = ses_path_join(dir, "curve.svg", e);
    char *log = path ? r->log ? ses_strdup(r->log, e) : ses_path_join(r->output, SES_RUN_LOG, e) : NULL;
    bool ok = log && ses_run_curve_write(log, path, ses_path_name_of(r->output).s, e);
    ses_free(log);
    ses_free(path);
    return ok;
}

/* Report and summary of a complete run. */
static bool finish(const session *s, ses_run_end end, ses_err *e)
{
    ses_err ignored = { 0 };
    if (!ses_run_report_write_run(s->o.run.output, &ignored))
        fprintf(stderr, "sesame: report.html: %s\n", ignored.msg);
    if (!s->call->quiet && !s->a->compute.json) show_summary(s, end);
    return !s->a->compute.json || print_json(s, e);
}

static bool pretrain(session *s, ses_device *dev, ses_err *e)
{
    ses_run_end end = SES_RUN_COMPLETE;
    s->run = ses_pretrain_new(&s->o, dev, e);
    bool ok = s->run && ses_pretrain_run(s->run, &end, e);
    if (ok && end == SES_RUN_STOPPED) {
        if (s->first) ses_train_monitor_notify_stopped(ses_pretrain_trainer(s->run));
        ok = false;
    } else if (ok && s->first) {
        ok = end != SES_RUN_WAS_COMPLETE ? finish(s, end, e)
             : s->a->compute.json        ? ses_train_print_results(s->o.run.output, e)
                                         : true;
    }
    ses_pretrain_free(s->run);
    return ok;
}

/* The options and their text, as run.json stores it: with the lanes of the run. */
static bool set_options(session *s, ses_comm *comm, ses_command_text *text, ses_err *e)
{
    bool notice;
    ses_pretrain_args args = *s->a;
    if (!ses_pretrain_settings_options(&s->a->s, &s->o, e) || !check_options(&s->o, e) ||
        !ses_rank_args_set(comm, &s->o.run, &notice, e))
        return false;
    if (notice && s->first && !s->call->quiet) ses_rank_args_notify(&s->o.run);
    if (s->o.run.lanes > 1) args.s.train.run.lanes = s->o.run.lanes;
    if (!ses_command_text_make(&ses_command_pretrain, &args, text, e)) return false;
    s->o.command = text->line;
    s->o.command_options = text->options;
    s->o.on_event = on_event;
    s->o.add_files = add_curve;
    s->o.ctx = s;
    return true;
}

bool ses_pretrain_command(ses_call *c, ses_err *e)
{
    session s = { .a = c->args, .call = c };
    ses_command_text text = { 0 };
    char device[32];
    ses_comm *comm = ses_rank_args_join(&s.a->ranks, e);
    if (!comm) return false;
    s.first = !ses_comm_rank(comm);
    s.monitor =
        (ses_train_monitor){ .term = &c->err, .quiet = c->quiet, .silent = !s.first, .metric = "loss" };
    ses_device_options o = ses_rank_device_options(comm, &s.a->compute);
    bool ok = set_options(&s, comm, &text, e);
    ses_device *dev = ok ? ses_device_open(ses_rank_device(comm, s.a->compute.device, device), &o, e) : NULL;
    ok = ses_rank_args_open(comm, dev, c->quiet, e) && pretrain(&s, dev, e);
    ok = ses_rank_args_leave(comm, ok, e);
    ses_device_free(dev);
    ses_command_text_free(&text);
    return ok;
}
