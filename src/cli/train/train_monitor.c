/* Terminal output of a training run. */
#define _POSIX_C_SOURCE 200809L
#include "train_monitor.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/ui/show_values.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <string.h>

/* ---- signals ---- */

static volatile sig_atomic_t stop_signal; /* number of the signal that requested a stop; 0: none */

static void on_signal(int sig) { stop_signal = sig; }

void ses_train_monitor_catch_signals(void)
{
    static const int stops[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1 };
    struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND }, before;
    sigemptyset(&a.sa_mask);
    for (size_t i = 0; i < SES_LEN(stops); i++) {
        sigaction(stops[i], NULL, &before);
        if (stops[i] == SIGHUP && before.sa_handler == SIG_IGN) continue; /* nohup */
        sigaction(stops[i], &a, NULL);
    }
}

int ses_train_monitor_signal(void) { return stop_signal; }
void ses_train_monitor_set_signal(int sig) { stop_signal = sig; }

bool ses_train_monitor_should_stop(void) { return stop_signal != 0; }

/* ---- the line that is redrawn ---- */

static void clear_line(const ses_train_monitor *m)
{
    if (m->term->tty && !m->quiet) fputs("\r\033[K", stderr);
}

/* Parts that do not fit the terminal's width are left out, the least important first. */
static void draw(ses_train_monitor *m, const ses_training_event *ev)
{
    const ses_step_result *s = ev->step;
    const ses_train_state *at = ses_trainer_state(ev->trainer);
    double now = ses_seconds(), done = (double)(at->updates - m->first_update), seconds = now - m->start;
    int64_t total = ses_trainer_total_updates(ev->trainer);
    if (!m->term->tty || m->quiet || now - m->drawn < 0.1) return;
    m->drawn = now;
    char left[SES_NUMBER_TEXT], spark[SES_BAR_SIZE], rate[SES_NUMBER_TEXT], bar[SES_PERCENT_SIZE],
        part[9][SES_PERCENT_SIZE + 64];
    double kept = ses_trainer_kept(ev->trainer);
    ses_duration_text(left, done > 0 ? seconds / done * (double)(total - at->updates) : 0);
    ses_count_text(rate, (uint64_t)((double)(at->tokens - m->first_tokens) / fmax(seconds, 1e-9)));
    snprintf(part[0], sizeof part[0], "%s %" PRId64 "/%" PRId64,
             ses_percent_text(m->term, bar, total > 0 ? (double)at->updates / (double)total : 0), at->updates,
             total);
    snprintf(part[1], sizeof part[1], "  loss %.4f", s->loss);
    part[2][0] = '\0';
    if (!isnan(kept)) snprintf(part[2], sizeof part[2], "  kept %.1f %%", 100 * kept);
    snprintf(part[3], sizeof part[3], "  %s left", left);
    snprintf(part[4], sizeof part[4], "  %s tokens/s", rate);
    snprintf(part[5], sizeof part[5], "  lr %.2e", s->lr);
    snprintf(part[6], sizeof part[6], "  norm %.2f", s->grad_norm);
    snprintf(part[7], sizeof part[7], "  epoch %.2f", s->epoch);
    snprintf(part[8], sizeof part[8], "  %s", ses_sparkline_text(&m->spark, m->term, spark));
    fputs("\r\033[K", stderr);
    int used = 0;
    for (size_t i = 0; i < SES_LEN(part); i++) {
        used += (int)ses_text_width(part[i]);
        if (used >= m->term->width) break;
        fputs(part[i], stderr);
    }
    fflush(stderr);
}

/* A long evaluation replaces the line. */
static void on_evaluating(ses_train_monitor *m, const ses_training_event *ev)
{
    double now = ses_seconds();
    char bar[SES_PERCENT_SIZE];
    if (ev->done >= ev->total) clear_line(m);
    if (!m->term->tty || m->quiet || now - m->drawn < 0.1 || ev->done >= ev->total) return;
    m->drawn = now;
    fprintf(stderr, "\r\033[Kevaluating %s",
            ses_percent_text(m->term, bar, (double)ev->done / (double)ev->total));
    fflush(stderr);
}

/* ---- events ---- */

static void start(ses_train_monitor *m, const ses_training_event *ev)
{
    const ses_train_state *at = ses_trainer_state(ev->trainer);
    ses_train_monitor_catch_signals();
    m->start = ses_seconds();
    m->first_update = at->updates;
    m->first_tokens = at->tokens;
}

static void on_step(ses_train_monitor *m, const ses_training_event *ev)
{
    if (!ev->step->updated) return;
    m->loss_sum += ev->step->loss;
    m->loss_count++;
    ses_sparkline_add(&m->spark, ev->step->loss);
    draw(m, ev);
}

/* A notice, once, if the evaluation loss has risen for two epochs while the training loss fell. */
static void watch_overfitting(ses_train_monitor *m, const ses_training_event *ev)
{
    double epoch = ses_trainer_epoch(ev->trainer), *e = m->evaluated, *t = m->trained;
    if (m->overfits || !m->loss_count || isnan(ev->loss)) return;
    if (m->n_evaluated && epoch < m->evaluated_epoch + 1 - 1e-9) return;
    for (int i = 0; i < 2; i++) e[i] = e[i + 1], t[i] = t[i + 1];
    e[2] = ev->loss;
    t[2] = m->loss_sum / (double)m->loss_count;
    m->evaluated_epoch = epoch;
    m->overfits = ++m->n_evaluated > 2 && e[0] < e[1] && e[1] < e[2] && t[0] > t[1] && t[1] > t[2];
    if (m->overfits && !m->quiet)
        fputs("overfitting: the evaluation loss has risen for two epochs, the training loss fell; fewer "
              "--epochs, or "
              "--patience 1\n",
              stderr);
}

static void on_evaluation(ses_train_monitor *m, const ses_training_event *ev)
{
    char time[SES_NUMBER_TEXT], train[48] = ""; /* stays empty if a stopped evaluation is repeated */
    clear_line(m);
    if (!m->quiet) {
        if (m->loss_count)
            snprintf(train, sizeof train, "  train loss %.4f", m->loss_sum / (double)m->loss_count);
        fprintf(stderr, "update %" PRId64 "  epoch %.2f%s", ses_trainer_state(ev->trainer)->updates,
                ses_trainer_epoch(ev->trainer), train);
        if (!isnan(ev->loss)) fprintf(stderr, "  eval loss %.4f", ev->loss);
        if (m->metric && strcmp(m->metric, "loss")) fprintf(stderr, "  %s %.4f", m->metric, ev->metric);
        if (!isnan(ses_trainer_kept(ev->trainer)))
            fprintf(stderr, "  kept %.1f %%", 100 * ses_trainer_kept(ev->trainer));
        fprintf(stderr, "%s  (%s)\n", ev->is_best ? " best" : "",
                ses_duration_text(time, ses_seconds() - m->start));
    }
    watch_overfitting(m, ev);
    m->loss_sum = 0;
    m->loss_count = 0;
}

/* Whether the run continues after an evaluation. */
static bool is_within_budget(const ses_train_monitor *m, const ses_training_event *ev)
{
    ses_train_budget *b = m->budget;
    if (!b || ev->kind != SES_TRAINING_EVALUATED) return true;
    b->reached = b->updates ? ses_trainer_state(ev->trainer)->updates >= b->updates
                            : ses_trainer_epoch(ev->trainer) >= b->epochs - 1e-9;
    b->score = ev->metric;
    b->metric = m->metric;
    return !b->reached;
}

bool ses_train_monitor_on_event(void *monitor, const ses_training_event *ev)
{
    ses_train_monitor *m = monitor;
    if (m->silent) {
        if (ev->kind == SES_TRAINING_STARTED) ses_train_monitor_catch_signals();
        return !ses_train_monitor_should_stop();
    }
    switch (ev->kind) {
    case SES_TRAINING_STARTED: start(m, ev); break;
    case SES_TRAINING_STEP: on_step(m, ev); break;
    case SES_TRAINING_EVALUATED: on_evaluation(m, ev); break;
    case SES_TRAINING_EVALUATING: on_evaluating(m, ev); break;
    case SES_TRAINING_NOTICE:
        clear_line(m);
        if (!m->quiet || ev->is_warning)
            fprintf(stderr, "%s%s\n", ev->is_warning ? "sesame: " : "", ev->text);
        break;
    }
    return is_within_budget(m, ev) && !ses_train_monitor_should_stop();
}

/* ---- summary ---- */

void ses_train_monitor_show_summary(const ses_train_monitor *m, const ses_trainer *t,
                                    const ses_training_stats *s, const ses_energy_args *energy,
                                    const ses_term *out, ses_run_end end)
{
    char time[SES_NUMBER_TEXT], rate[SES_NUMBER_TEXT], memory[SES_NUMBER_TEXT], spark[SES_BAR_SIZE],
        energy_text[SES_ENERGY_TEXT], flops[SES_NUMBER_TEXT], speed[SES_NUMBER_TEXT], since[64] = "";
    ses_energy used = { .joules = s->joules,
                        .gpu_joules = s->gpu_joules,
                        .gpu = s->gpu_joules > 0 ? SES_GPU_MEASURED : SES_GPU_UNUSED,
                        .measured = s->energy_is_measured };
    snprintf(used.source, sizeof used.source, "%s", s->energy_source);
    if (s->first_update) snprintf(since, sizeof since, " since update %" PRId64, s->first_update);
    ses_show_line(out, "Trained", "%" PRId64 " updates%s, loss %.4f  %s", ses_trainer_state(t)->updates,
                  end == SES_RUN_EARLY_STOPPED ? " (stopped early: no improvement)" : "", s->train_loss,
                  ses_sparkline_text(&m->spark, out, spark));
    ses_show_line(out, "Time", "%s%s: %s tokens/s, %.1f examples/s; peak memory %s",
                  ses_duration_text(time, s->seconds), since,
                  ses_count_text(rate, (uint64_t)((double)s->tokens / s->seconds)),
                  (double)s->sequences / s->seconds, ses_bytes_text(memory, ses_peak_memory()));
    if (s->flops > 0)
        ses_show_line(out, "FLOPs", "%s, %s per second", ses_flops_text(flops, s->flops),
                      ses_flops_text(speed, s->flops / s->seconds));
    ses_show_line(out, "Energy", "%s", ses_energy_text(energy_text, &used, energy));
    if (!isnan(s->price)) ses_show_line(out, "Price", "%.4g", s->price);
}

void ses_train_monitor_notify_stopped(const ses_trainer *t)
{
    fprintf(stderr,
            "stopped after update %" PRId64 " of %" PRId64 "; the same command with --resume continues\n",
            ses_trainer_state(t)->updates, ses_trainer_total_updates(t));
}

bool ses_train_print_results(const char *output, ses_err *e)
{
    enum { RESULTS_MAX = 1 << 28 };
    char *path = ses_path_join(output, "all_results.json", e);
    ses_json_doc *d = path ? ses_json_load(path, RESULTS_MAX, e) : NULL;
    ses_json_writer *w = d ? ses_json_writer_new(0, e) : NULL;
    bool ok = w != NULL;
    if (ok) {
        const ses_json *root = ses_json_root(d);
        ses_json_begin_object(w);
        ses_json_member_string(w, "output", output);
        for (size_t i = 0; ses_json_type_of(root) == SES_JSON_OBJECT && i < ses_json_len(root); i++) {
            ses_json_put_key(w, ses_json_key(root, i, NULL));
            ses_json_put_value(w, ses_json_at(root, i));
        }
        ses_json_end_object(w);
        ok = ses_json_writer_print(w, e); /* frees w */
    }
    ses_json_free(d);
    ses_free(path);
    return ok;
}
