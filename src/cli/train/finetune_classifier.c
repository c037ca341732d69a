/* finetune --method: one run of a classifier that reads texts. */
#include "finetune_command.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/number_text.h"
#include "cli/ui/show_values.h"
#include "command_text.h"
#include "eval_report_show.h"
#include "train_monitor.h"
#include "tune/classifier_run.h"

#include <math.h>
#include <string.h>

/* Options of finetune that a method reads, besides its settings. */
static const char *const READ =
    "task|train|train-size|shots|eval|output|method|text|pair|label|labels|delimiter|format|quotes|no-header|"
    "skip-bad|label-separator|encoding|"
    "metrics|metric|"
    "overwrite|resume|seed|seeds|grid|core-watts|co2-per-kwh|price-per-hour|price-per-kwh|bootstrap|"
    "confidence|threads|isa|device|json|"
    "epochs|lr|loss"; /* the last three are checked with the settings */

static bool is_read(const char *name)
{
    if (ses_list_has(READ, name)) return true;
    for (size_t i = 0; i < ses_classifier_option_table.n; i++)
        if (!strcmp(ses_classifier_option_table.opt[i].name, name)) return true;
    return false;
}

/* Options that only models read must have their defaults. */
static bool check_options(const ses_finetune_args *a, const ses_classifier_kind *k, ses_err *e)
{
    const ses_command *c = &ses_command_finetune;
    const ses_opt *o;
    ses_buf line = { 0 };
    bool ok = true;
    for (ses_opt_iter it = ses_opt_begin(c->opt, c->n_opt); ok && (o = ses_opt_next(&it));) {
        if (is_read(o->name)) continue;
        line.len = 0;
        ses_options_put_command_line(o, 1, a, &line);
        if (line.len)
            ok = ses_fail(e, SES_EUSAGE, "--%s has no effect on method %s: only models read it", o->name,
                          k->name);
    }
    ses_buf_free(&line);
    return ok;
}

static ses_classifier_settings settings_of(const ses_finetune_settings *s)
{
    ses_classifier_settings x = s->classifier;
    x.loss = s->o.task.loss;
    x.given.loss = x.loss != NULL;
    x.given.epochs = s->train.has_epochs;
    x.given.lr = s->train.has_lr;
    if (x.given.epochs) x.epochs = s->train.run.epochs;
    if (x.given.lr) x.lr = s->train.run.lr;
    return x;
}

bool ses_finetune_check_classifier(const ses_finetune_args *a, ses_err *e)
{
    const ses_classifier_kind *k = ses_classifier_find(a->s.method, e);
    ses_classifier_settings s = settings_of(&a->s);
    return k && check_options(a, k, e) && ses_classifier_check_settings(k, &s, e);
}

static bool show_progress(void *ctx, int64_t done, int64_t total, double loss)
{
    ses_progress *line = ctx;
    (void)loss;
    line->total = total;
    ses_progress_show(line, done);
    return !ses_train_monitor_should_stop();
}

static void show_summary(const ses_finetune *f, const ses_finetune_args *a, const ses_classifier_kind *k,
                         const ses_call *c)
{
    const ses_term *t = &c->out;
    const char *out = a->s.train.run.output;
    ses_classifier_cost cost = ses_classifier_finetune_cost(f);
    char number[SES_NUMBER_TEXT], time[SES_NUMBER_TEXT], energy[SES_NUMBER_TEXT];
    ses_show_line(t, "Model", "%s: %s, %s parameters", out, k->name,
                  ses_grouped_text(number, ses_classifier_finetune_parameters(f)));
    if (a->s.o.eval) ses_eval_report_show(ses_finetune_report(f), t);
    ses_show_line(t, "Time", "%s", ses_duration_text(time, cost.train_seconds));
    ses_show_line(t, "Energy", "%s%s", ses_watt_hours_text(energy, cost.joules),
                  cost.energy_is_measured ? "" : " (estimate)");
    ses_show_line(t, "Next", "sesame eval %s FILE; sesame predict %s FILE; sesame ladder classify FILE...",
                  out, out);
}

static bool finish(const ses_finetune *f, const ses_finetune_args *a, const ses_classifier_kind *k,
                   const ses_call *c, bool part, ses_err *e)
{
    if (part) return true;
    if (!a->compute.json) {
        if (!c->quiet) show_summary(f, a, k, c);
        return true;
    }
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "output", a->s.train.run.output);
    ses_finetune_put_results(f, w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

bool ses_finetune_classifier(ses_call *c, const ses_finetune_args *a, bool part, bool *stopped, ses_err *e)
{
    const ses_classifier_kind *k = ses_classifier_find(a->s.method, e);
    *stopped = false;
    ses_command_text text;
    if (!k || !check_options(a, k, e) || !ses_command_text_make(&ses_command_finetune, a, &text, e))
        return false;
    ses_train_monitor monitor = { .term = &c->err, .quiet = c->quiet };
    ses_progress line = ses_progress_start(stderr, &c->err, c->quiet, "training", 0);
    ses_classifier_plan plan = {
        .kind = k, .settings = settings_of(&a->s), .progress = show_progress, .ctx = &line
    };
    ses_finetune_options o = ses_finetune_settings_options(&a->s);
    ses_device_options d = ses_compute_device_options(&a->compute);
    o.command = text.line;
    o.command_options = text.options;
    o.on_event = ses_train_monitor_on_event;
    o.ctx = &monitor;
    ses_train_monitor_catch_signals();
    ses_device *dev = ses_device_open(a->compute.device, &d, e);
    ses_finetune *f = dev ? ses_classifier_finetune(&o, &plan, dev, e) : NULL;
    ses_progress_end(&line);
    if (!f && ses_train_monitor_should_stop()) { /* main exits with the code of the signal */
        fprintf(stderr, "sesame: %s\n", e->msg);
        *e = (ses_err){ 0 };
        *stopped = true;
    }
    bool ok = f ? finish(f, a, k, c, part, e) : *stopped;
    ses_finetune_free(f);
    ses_device_free(dev);
    ses_command_text_free(&text);
    return ok;
}

static bool is_in_time(void *deadline, int64_t done, int64_t total, double loss)
{
    (void)done, (void)total, (void)loss;
    return ses_seconds() < *(double *)deadline && !ses_train_monitor_should_stop();
}

void ses_finetune_show_logreg(const ses_finetune *f, const ses_finetune_args *a)
{
    ses_err ignored = { 0 };
    const char *metric = ses_finetune_metric(f);
    double model, score, run = ses_finetune_stats(f).seconds, begin = ses_seconds();
    double deadline = begin + fmax(0.02 * run, 0.2);
    char time[SES_NUMBER_TEXT], run_time[SES_NUMBER_TEXT];
    ses_classifier_plan plan = { .kind = &ses_classifier_logreg, .progress = is_in_time, .ctx = &deadline };
    plan.settings = (ses_classifier_settings){ .ngrams = 1, .min_count = 2 };
    plan.settings.given.ngrams = plan.settings.given.min_count = true;
    ses_device_options d = ses_compute_device_options(&a->compute);
    if (!ses_scores_find(&ses_finetune_report(f)->scores, metric, &model)) return;
    ses_device *dev = ses_device_open("cpu", &d, &ignored);
    if (dev && ses_classifier_beside(f, &plan, dev, &score))
        fprintf(
            stderr,
            "logistic regression on words: %s %.4f in %s, the model %.4f in %s (--method logreg --ngrams 1 "
            "--min-count 2)\n",
            metric, score, ses_duration_text(time, ses_seconds() - begin), model,
            ses_duration_text(run_time, run));
    ses_device_free(dev);
}
