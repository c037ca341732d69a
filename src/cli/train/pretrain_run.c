/* A pretraining run: what it says, evaluations, the time it may take. */
#include "base/alloc.h"
#include "base/file.h"
#include "cli/ui/show_values.h"
#include "pretrain_command.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- evaluation ---- */

static bool go_on(void *ctx)
{
    (void)ctx;
    return !ses_train_monitor_should_stop();
}

/* Of what was chosen among the vocabulary, not of yes or no. */
static bool of_tokens(const ses_objective_mix *a, const char *name, size_t n)
{
    for (size_t i = 0; i < a->n; i++) {
        const ses_objective *o = a->item[i].objective;
        if (strlen(o->name) == n && !strncmp(o->name, name, n))
            return strstr(o->head, "lm") || strstr(o->head, "generation");
    }
    return true; /* a generator's */
}

/* Means; the exponential of a loss is its perplexity. */
static bool scores_of(ses_pretrain *p, const ses_metric_sums *t, ses_err *e)
{
    ses_scores_free(&p->scores);
    p->scores.item = ses_alloc_array(2 * t->n + 1, sizeof *p->scores.item, e);
    if (!p->scores.item) return false;
    p->scores.cap = 2 * t->n + 1;
    for (size_t i = 0; i < t->n; i++) {
        const char *name = t->item[i].name, *loss = strstr(name, "_loss");
        double mean = t->item[i].count > 0 ? t->item[i].sum / t->item[i].count : NAN;
        ses_score *s = &p->scores.item[p->scores.n++];
        *s = (ses_score){ .value = mean, .low = NAN, .high = NAN };
        snprintf(s->name, sizeof s->name, "%s", name);
        if (!loss || !of_tokens(p->aim, name, (size_t)(loss - name))) continue;
        s = &p->scores.item[p->scores.n++];
        *s = (ses_score){ .value = exp(mean), .low = NAN, .high = NAN };
        snprintf(s->name, sizeof s->name, "%.*s_perplexity", (int)(loss - name), name);
    }
    return true;
}

static bool measure(ses_pretrain *p, ses_err *e)
{
    ses_metric_sums t;
    ses_optim *optim = p->trainer ? ses_trainer_optim(p->trainer) : NULL;
    if (optim) ses_optim_swap_ema(optim);
    bool ok =
        ses_curriculum_evaluate(p->course, p->a->eval_tokens, go_on, NULL, &t, e) && scores_of(p, &t, e);
    if (optim) ses_optim_swap_ema(optim);
    if (ok) p->eval_loss = ses_objective_mix_total_loss(p->aim, &t);
    return ok;
}

/* The last weights are the result, so no evaluation is the best one. */
static bool evaluate(void *ctx, double *metric, ses_err *e)
{
    ses_pretrain *p = ctx;
    *metric = NAN;
    if (!measure(p, e) || !ses_run_log_on_evaluation(&p->run_log, &p->scores, p->eval_loss, e)) return false;
    ses_train_monitor_on_event(&p->monitor, &(ses_training_event){ .kind = SES_TRAINING_EVALUATED,
                                                                   .trainer = p->trainer,
                                                                   .scores = &p->scores,
                                                                   .loss = p->eval_loss,
                                                                   .metric = NAN });
    return true;
}

static void stepped(void *ctx, const ses_step_result *s)
{
    ses_pretrain *p = ctx;
    ses_run_log_on_step(&p->run_log, s);
    ses_train_monitor_on_event(
        &p->monitor,
        &(ses_training_event){
            .kind = SES_TRAINING_STEP, .trainer = p->trainer, .step = s, .loss = s->loss, .metric = NAN });
}

static bool stop(void *ctx)
{
    ses_pretrain *p = ctx;
    p->out_of_time = p->deadline > 0 && ses_seconds() > p->deadline;
    return p->out_of_time || ses_train_monitor_should_stop();
}

/* ---- time ---- */

/* "25m", "1h30m", "90s", "90". */
static bool parse_time(const char *text, double *seconds, ses_err *e)
{
    *seconds = 0;
    for (const char *s = text; *s;) {
        double n = 0;
        size_t digits = strspn(s, "0123456789");
        for (size_t i = 0; i < digits && digits < 10; i++) n = 10 * n + (s[i] - '0');
        s += digits;
        double unit = *s == 'h' ? 3600 : *s == 'm' ? 60 : *s == 's' || !*s ? 1 : 0;
        if (!digits || digits > 9 || !unit) {
            *seconds = 0;
            break;
        }
        *seconds += unit * n;
        if (*s) s++;
    }
    return *seconds > 0 ||
           ses_fail(e, SES_EUSAGE, "--max-time %s: a time is expected, as 25m, 1h30m or 90s", text);
}

/* Seconds of an update with sequences of this length: a few are made and forgotten. */
static double time_of(ses_pretrain *p, int64_t length, double most, ses_err *e)
{
    double start = ses_seconds(), first = 0;
    int64_t batches = 0;
    ses_curriculum *c = ses_pretrain_course(p, length, 1000000, e);
    ses_trainer_options o = { .model = p->model,
                              .generator = p->generator,
                              .loss = ses_objective_mix_loss,
                              .loss_ctx = p->aim,
                              .extra_params = { ses_distill_store(p->teacher.distill) },
                              .max_grad_norm = p->a->clip,
                              .recompute = p->a->recompute,
                              .updates = 1000000 };
    if (c) o.source = ses_curriculum_source(c);
    ses_trainer *t = c && ses_pretrain_optimizer(p, &o, e) ? ses_trainer_new(&o, e) : NULL;
    bool ok = t != NULL;
    for (ses_step_result s; ok && (batches < 3 || (ses_seconds() - start < most && batches < 200));
         batches++) {
        ok = ses_trainer_step(t, &s, e);
        if (!batches) first = ses_seconds(); /* the first one makes room */
    }
    double each = ok && batches > 1 ? (ses_seconds() - first) / (double)(batches - 1) : -1;
    ses_trainer_free(t);
    ses_curriculum_free(c);
    return each * (double)p->a->accumulate;
}

/* As many updates as fit: the mean of the stages' times, by their shares; the rest for evaluations and the
 * end. */
static bool fit_time(ses_pretrain *p, ses_err *e)
{
    double start = ses_seconds(), mean = 0;
    ses_curriculum_options o = { 0 };
    if (!p->a->max_time || p->updates) return true;
    if (!parse_time(p->a->max_time, &p->budget, e)) return false;
    if (!ses_pretrain_stages(p, &o, e)) return false;
    for (size_t i = 0; i < o.n_stages; i++) {
        double t = time_of(p, o.stage[i].length, p->budget * 0.02 / (double)o.n_stages, e);
        if (t < 0) return false;
        mean += o.stage[i].fraction * t;
    }
    if (!ses_pretrain_models(p, e)) return false; /* as they were */
    double left = p->budget - (ses_seconds() - start);
    p->updates = (int64_t)fmax(1, 0.95 * left / mean);
    p->deadline = start + p->budget;
    if (!p->quiet)
        fprintf(stderr, "%.3g s an update: %" PRId64 " updates in %s\n", mean, p->updates, p->a->max_time);
    return true;
}

/* ---- the run ---- */

/* Whose labels are tokens: the generator's, where there is one. */
const char *ses_pretrain_way(const ses_pretrain *p, size_t way)
{
    const ses_objective *o = p->aim->item[way].objective;
    return o->needs & SES_NEEDS_GENERATOR ? "generator" : o->name;
}

static bool find_frequencies(ses_pretrain *p, ses_err *e)
{
    for (size_t i = 0; i < p->aim->n_primary; i++)
        if (!ses_curriculum_unigram_loss(p->course, i, p->a->eval_tokens, &p->by_frequency[i], e))
            return false;
    return true;
}

static void announce(const ses_pretrain *p)
{
    char a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT], c[SES_NUMBER_TEXT];
    if (p->quiet) return;
    double pass = (double)ses_curriculum_pass_tokens(p->course);
    fprintf(stderr, "%s%s%s: %s parameters", ses_style_on(p->talk, SES_BOLD), ses_model_class_name(p->model),
            ses_style_on(p->talk, SES_PLAIN),
            ses_grouped_text(a, ses_store_element_count(ses_model_store(p->model))));
    if (p->generator)
        fprintf(stderr, " and a generator of %s",
                ses_grouped_text(a, ses_store_element_count(ses_model_store(p->generator))));
    fprintf(stderr, "; %s; %s tokens a pass, %s updates", p->a->objective, ses_count_text(b, (uint64_t)pass),
            ses_grouped_text(c, ses_trainer_total_updates(p->trainer)));
    if (*ses_model_missing_keys(p->model) && p->a->model)
        fprintf(stderr, "; begun at random: %s", ses_model_missing_keys(p->model));
    fputs("\n", stderr);
    for (size_t i = 0; i < p->aim->n_primary; i++)
        if (!isnan(p->by_frequency[i]))
            fprintf(stderr, "by frequency alone %s_loss would be %.4f\n", ses_pretrain_way(p, i),
                    p->by_frequency[i]);
}

static bool prepare_logs(ses_pretrain *p, ses_err *e)
{
    const ses_pretrain_args *a = p->a;
    p->log = a->log ? ses_strdup(a->log, e) : ses_path_join(a->output, SES_RUN_LOG, e);
    p->board = a->board ? ses_strdup(a->board, e) : ses_path_join(a->output, SES_RUN_TENSORBOARD, e);
    if (!p->log || !p->board) return false;
    if (a->resume)
        return ses_training_resume(p->trainer, a->output, ses_train_monitor_on_event, &p->monitor, e);
    return ses_trainer_delete_checkpoints(p->trainer, e) &&
           (a->board || ses_event_files_remove(p->board, e)) && ses_pretrain_remember(p, e);
}

static bool train(ses_pretrain *p, ses_run_end *end, ses_err *e)
{
    ses_trainer_hooks h = {
        .ctx = p, .on_step = stepped, .should_stop = stop, .evaluate = p->n_eval ? evaluate : NULL
    };
    ses_run_log_options o = {
        .path = p->log, .append = p->a->resume, .tensorboard_dir = p->board, .energy = p->a->energy
    };
    if (!find_frequencies(p, e) || !ses_run_log_open(&p->run_log, &o, p->trainer, e)) return false;
    ses_train_monitor_on_event(&p->monitor,
                               &(ses_training_event){ .kind = SES_TRAINING_STARTED, .trainer = p->trainer });
    announce(p);
    bool ok = ses_trainer_run(p->trainer, &h, end, e);
    ses_run_log_close(&p->run_log);
    if (p->run_log.error.code)
        ses_training_warn(ses_train_monitor_on_event, &p->monitor, "the log is incomplete: %s",
                          p->run_log.error.msg);
    bool late = ok && *end == SES_RUN_STOPPED && p->out_of_time;
    if (late) *end = SES_RUN_COMPLETE;
    bool measured = p->scores.n && !late; /* not where a run was resumed at its end */
    return ok && (*end == SES_RUN_STOPPED || measured || !p->n_eval || measure(p, e));
}

bool ses_pretrain_command(ses_call *c, ses_err *e)
{
    ses_pretrain p = { .a = c->args, .talk = &c->err, .quiet = c->quiet };
    const ses_pretrain_args *a = p.a;
    ses_run_end end = SES_RUN_COMPLETE;
    ses_training_options place = {
        .output = a->output, .log = a->log, .resume = a->resume, .overwrite = a->overwrite
    };
    p.monitor = (ses_train_monitor){ .term = &c->err, .quiet = c->quiet, .metric = "loss" };
    if (!ses_train_folder_check(&place, e)) return false;
    ses_device_options o = ses_compute_device_options(&a->shared);
    p.dev = ses_device_open(a->shared.device, &o, e);
    bool ok = p.dev && ses_pretrain_texts(&p, e) && ses_pretrain_models(&p, e) &&
              ses_pretrain_recall(&p, e) && fit_time(&p, e) && ses_pretrain_trainer(&p, e) &&
              prepare_logs(&p, e) && train(&p, &end, e);
    if (ok && end == SES_RUN_STOPPED) {
        ses_train_monitor_notify_stopped(p.trainer);
        ok = false;
    } else if (ok) {
        ses_optim_swap_ema(ses_trainer_optim(p.trainer));
        ok = ses_pretrain_write(&p, e);
        if (ok && !c->quiet) ses_pretrain_summary(&p, c, end);
        if (ok && a->shared.json) ok = ses_pretrain_print(&p, e);
    }
    ses_pretrain_free(&p);
    return ok;
}
