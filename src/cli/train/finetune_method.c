/* finetune --method: one run of a method that learns from few labels (tune/few_shot). */
#include "base/str.h"
#include "base/suggest.h"
#include "cli/ui/show_values.h"
#include "command_text.h"
#include "eval_report_show.h"
#include "finetune_command.h"
#include "train_monitor.h"
#include "tune/few_shot/tune_method.h"

#include <string.h>

/* ---- options ---- */

/* Names of all methods: of classifiers, then of this file. */
static const char *method_name(const void *ctx, size_t i)
{
    size_t n = 0;
    (void)ctx;
    while (ses_classifier_at(n)) n++;
    if (i < n) return ses_classifier_at(i)->name;
    return ses_tune_method_at(i - n) ? ses_tune_method_at(i - n)->name : NULL;
}

static bool check_name(const char *name, ses_err *e)
{
    const char *known;
    for (size_t i = 0; (known = method_name(NULL, i)); i++)
        if (!strcmp(known, name)) return true;
    return ses_fail_unknown(e, SES_EUSAGE, "method", (ses_string){ name, strlen(name) }, method_name, NULL);
}

static bool in_list(const char *list, const char *name)
{
    const char *item;
    size_t n;
    for (size_t i = 0; ses_list_at(list, i, &item, &n); i++)
        if (ses_equal(item, n, name)) return true;
    return false;
}

/* Options of a table that the list does not have must have their defaults. */
static bool check_table(const ses_opt_table *t, const void *args, const char *used, const char *method,
                        ses_err *e)
{
    ses_buf line = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < t->n; i++) {
        if (in_list(used, t->opt[i].name)) continue;
        line.len = 0;
        ses_options_put_command_line(&t->opt[i], 1, args, &line);
        if (line.len)
            ok = ses_fail(e, SES_EUSAGE, "--%s has no effect %s%s: see sesame finetune --help",
                          t->opt[i].name, method ? "on method " : "without --method", method ? method : "");
    }
    ses_buf_free(&line);
    return ok;
}

bool ses_finetune_check_method(const ses_finetune_args *a, ses_err *e)
{
    const char *name = a->s.method;
    const ses_tune_method *m = name ? ses_tune_method_find(name) : NULL;
    const char *used = m ? m->settings : "";
    return (!name || check_name(name, e)) && check_table(&ses_tune_option_table, &a->s.tune, used, name, e) &&
           (!m || check_table(&ses_classifier_option_table, &a->s.classifier, used, name, e));
}

/* ---- results ---- */

static void show_summary(const ses_finetune *f, const ses_finetune_args *a, const ses_tune_method *m,
                         const ses_term *t)
{
    const char *out = a->s.train.run.output;
    char usage[600];
    ses_show_line(t, "Model", "%s: %s, %s", out, ses_model_class_name(ses_finetune_model(f)), m->name);
    if (a->s.o.eval) ses_eval_report_show(ses_finetune_report(f), t);
    ses_finetune_usage(f, out, usage, sizeof usage);
    ses_show_line(t, "Next", "sesame eval %s FILE; sesame predict %s FILE; %s", out, out, usage);
}

static bool finish(const ses_tune_run *r, const ses_finetune_args *a, const ses_call *c, bool part,
                   ses_err *e)
{
    const char *out = a->s.train.run.output;
    if (r->end == SES_RUN_STOPPED && !part)
        fprintf(stderr, "stopped; --resume continues after the last finished model\n");
    if (r->end == SES_RUN_STOPPED || part) return true;
    if (!r->final || r->end == SES_RUN_WAS_COMPLETE) {
        if (!c->quiet) fprintf(stderr, "%s: the run is complete\n", out);
        return !a->compute.json || ses_train_print_results(out, e);
    }
    if (a->compute.json) return ses_finetune_print_json(r->final, out, e);
    if (!c->quiet) show_summary(r->final, a, r->plan.method, &c->out);
    return true;
}

bool ses_finetune_by_method(ses_call *c, const ses_finetune_args *a, bool part, bool *stopped, ses_err *e)
{
    ses_command_text text;
    ses_train_monitor monitor = { .term = &c->err, .quiet = c->quiet };
    ses_tune_plan plan = { .method = ses_tune_method_find(a->s.method),
                           .settings = a->s.tune,
                           .c = a->s.classifier.given.c ? a->s.classifier.c : 1 };
    ses_finetune_options o = ses_finetune_settings_options(&a->s);
    ses_device_options d = ses_compute_device_options(&a->compute);
    *stopped = false;
    if (!ses_command_text_make(&ses_command_finetune, a, &text, e)) return false;
    o.command = text.line;
    o.command_options = text.options;
    o.on_event = ses_train_monitor_on_event;
    o.ctx = &monitor;
    ses_train_monitor_catch_signals();
    ses_device *dev = ses_device_open(a->compute.device, &d, e);
    ses_tune_run *r = dev ? ses_tune_method_run(&o, &plan, dev, e) : NULL;
    *stopped = r && r->end == SES_RUN_STOPPED;
    bool ok = r && finish(r, a, c, part, e);
    ses_tune_run_free(r);
    ses_device_free(dev);
    ses_command_text_free(&text);
    return ok;
}
