#define _POSIX_C_SOURCE 200809L
#include "train_monitor.h"

#include "base/alloc.h"
#include "cli/ui/show_values.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>

enum {
    WINDOW = 50
}; /* updates an entry of log_history is the mean of: ten times finer than the reference's */

/* ---- signals ---- */

static volatile sig_atomic_t interrupted; /* the signal that asked to stop */

static void on_signal(int sig) { interrupted = sig; }

void ses_train_monitor_catch_signals(void)
{
    struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND };
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

bool ses_train_monitor_should_stop(void *watch)
{
    (void)watch;
    return interrupted != 0;
}

/* ---- begin and end ---- */

bool ses_train_monitor_resume(ses_trainer *t, const char *dir, bool quiet, ses_err *e)
{
    ses_resume_result from;
    if (!ses_trainer_resume(t, &from, e)) return false;
    if (*from.skipped) fprintf(stderr, "sesame: passed over: %s\n", from.skipped);
    if (!from.found && *from.skipped)
        return ses_fail(e, SES_EFORMAT, "%s: no checkpoint is whole; --overwrite begins anew", dir);
    if (from.found && !quiet)
        fprintf(stderr, "going on from %s: update %" PRId64 " of %" PRId64 "\n", from.dir,
                ses_trainer_state(t)->updates, ses_trainer_total_updates(t));
    return true;
}

static double wall_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A process that was killed may have left a line cut short: it stays one line. */
static FILE *open_log(const char *path, bool append)
{
    FILE *f = fopen(path, append ? "a+" : "w");
    if (!f) return NULL;
    setvbuf(f, NULL, _IOLBF, BUFSIZ); /* and a killed process leaves whole lines, if it can */
    if (append && !fseek(f, -1, SEEK_END)) {
        int last = getc(f);
        fseek(f, 0, SEEK_END);
        if (last != '\n') putc('\n', f);
    }
    return f;
}

bool ses_train_monitor_open(ses_train_monitor *w, const ses_train_monitor_options *o, ses_trainer *t,
                            ses_err *e)
{
    const ses_train_state *at = ses_trainer_state(t);
    *w = (ses_train_monitor){ .options = *o,
                              .trainer = t,
                              .first_update = at->updates,
                              .first_tokens = at->tokens,
                              .first_sequences = at->sequences };
    if (!w->options.metric) w->options.metric = "loss";
    if (o->log && !(w->log = open_log(o->log, o->append)))
        return ses_fail(e, SES_EIO, "%s: cannot be written", o->log);
    if (o->tensorboard_dir &&
        !(w->events = ses_event_file_new(o->tensorboard_dir, wall_clock(), at->updates + 1, e)))
        return false;
    ses_train_monitor_catch_signals();
    w->start = ses_seconds();
    ses_energy_meter_start(&w->meter, NULL);
    return true;
}

static double elapsed(const ses_train_monitor *w) { return ses_seconds() - w->start; }

void ses_train_monitor_clear_line(const ses_train_monitor *w)
{
    if (w->options.term && w->options.term->tty && !w->options.quiet) fputs("\r\033[K", stderr);
}

static void settle(ses_train_monitor *w)
{
    w->loss_all += w->loss_sum, w->loss_n += w->loss_count;
    w->loss_sum = 0, w->loss_count = 0;
}

void ses_train_monitor_close(ses_train_monitor *w)
{
    if (!w->trainer || w->seconds > 0) return; /* never opened, or closed */
    w->seconds = fmax(elapsed(w), 1e-9);
    w->energy = ses_energy_meter_stop(&w->meter, w->options.energy.core_watts);
    ses_train_monitor_clear_line(w);
    bool bad = w->log && ferror(w->log) != 0;
    if (w->log && (fclose(w->log) || bad) && !w->log_error.code)
        ses_fail(&w->log_error, SES_EIO, "%s: could not be written whole", w->options.log);
    w->log = NULL;
    ses_event_file_free(w->events);
    w->events = NULL;
    if (w->log_error.code) fprintf(stderr, "sesame: the log is not whole: %s\n", w->log_error.msg);
    settle(w);
}

/* ---- updates ---- */

/* What does not fit on the terminal's line is left out, the least important first. */
static void draw(ses_train_monitor *w, const ses_step_result *s)
{
    const ses_train_state *at = ses_trainer_state(w->trainer);
    double now = ses_seconds(), done = (double)(at->updates - w->first_update), seconds = elapsed(w);
    int64_t total = ses_trainer_total_updates(w->trainer);
    if (!w->options.term->tty || w->options.quiet || now - w->drawn < 0.1) return;
    w->drawn = now;
    char left[SES_NUMBER_TEXT], spark[SES_BAR_SIZE], rate[SES_NUMBER_TEXT], part[8][SES_BAR_SIZE];
    ses_duration_text(left, done > 0 ? seconds / done * (double)(total - at->updates) : 0);
    ses_count_text(rate, (uint64_t)((double)(at->tokens - w->first_tokens) / fmax(seconds, 1e-9)));
    snprintf(part[0], sizeof part[0], "%" PRId64 "/%" PRId64, at->updates, total);
    snprintf(part[1], sizeof part[1], "  loss %.4f", s->loss);
    snprintf(part[2], sizeof part[2], "  %s left", left);
    snprintf(part[3], sizeof part[3], "  %s tokens/s", rate);
    snprintf(part[4], sizeof part[4], "  rate %.2e", s->lr);
    snprintf(part[5], sizeof part[5], "  norm %.2f", s->grad_norm);
    snprintf(part[6], sizeof part[6], "  epoch %.2f", s->epoch);
    snprintf(part[7], sizeof part[7], "  %s", ses_sparkline_text(&w->spark, w->options.term, spark));
    fputs("\r\033[K", stderr);
    int used = 0;
    for (size_t i = 0; i < SES_LEN(part); i++) {
        used += (int)ses_text_width(part[i]);
        if (used >= w->options.term->width) break;
        fputs(part[i], stderr);
    }
    fflush(stderr);
}

/* A finished object as a line of the log and, where asked, as an entry of log_history; frees it. */
static bool put_entry(ses_train_monitor *w, ses_json_writer *j, bool log, bool history, ses_err *e)
{
    size_t n;
    ses_json_end_object(j);
    const char *text = ses_json_writer_text(j, &n, e);
    if (text && log && w->log) fprintf(w->log, "%s\n", text);
    bool ok = text != NULL;
    if (ok && history) {
        char *members = ses_strndup(text + 1, n - 2, e);
        ok = members && ses_trainer_log(w->trainer, members, e);
        ses_free(members);
    }
    ses_json_writer_free(j);
    return ok;
}

static void log_update(ses_train_monitor *w, const ses_step_result *s, double loss, bool history)
{
    ses_json_writer *j = ses_json_writer_new(0, NULL);
    if (!j) return; /* a line less: no reason to end a run */
    ses_json_begin_object(j);
    ses_json_member_real(j, "epoch", s->epoch);
    ses_json_member_real(j, "grad_norm", s->grad_norm);
    ses_json_member_real(j, "learning_rate", s->lr);
    ses_json_member_real(j, "loss", loss);
    ses_json_member_int(j, "step", ses_trainer_state(w->trainer)->updates);
    put_entry(w, j, !history, history, NULL);
}

static void show_update(ses_train_monitor *w, const ses_step_result *s)
{
    const ses_train_state *at = ses_trainer_state(w->trainer);
    const ses_event_value v[] = {
        { "train/loss", s->loss },
        { "train/learning_rate", s->lr },
        { "train/grad_norm", s->grad_norm },
        { "train/epoch", s->epoch },
        { "train/tokens_per_second", (double)(at->tokens - w->first_tokens) / fmax(elapsed(w), 1e-9) },
    };
    if (!w->log_error.code)
        ses_event_file_put(w->events, wall_clock(), at->updates, v, SES_LEN(v), &w->log_error);
}

void ses_train_monitor_on_step(void *watch, const ses_step_result *s)
{
    ses_train_monitor *w = watch;
    if (!s->updated) return;
    ses_energy_meter_update(&w->meter);
    w->loss_sum += s->loss;
    w->loss_count++;
    ses_sparkline_add(&w->spark, s->loss);
    if (w->log) log_update(w, s, s->loss, false);
    if (w->events) show_update(w, s);
    w->window_sum += s->loss;
    if (++w->window == WINDOW || ses_trainer_done(w->trainer)) {
        log_update(w, s, w->window_sum / (double)w->window, true);
        w->window = 0, w->window_sum = 0;
    }
    draw(w, s);
}

/* ---- evaluations ---- */

static void tell_evaluation(const ses_train_monitor *w, double loss, double value)
{
    char time[SES_NUMBER_TEXT], trained[48] = ""; /* nothing was, where a stopped evaluation is done again */
    const ses_train_state *at = ses_trainer_state(w->trainer);
    bool best = !isnan(value) &&
                (isnan(at->best) || (w->options.lower_is_better ? value < at->best : value > at->best));
    ses_train_monitor_clear_line(w);
    if (w->options.quiet) return;
    if (w->loss_count)
        snprintf(trained, sizeof trained, "  train loss %.4f", w->loss_sum / (double)w->loss_count);
    fprintf(stderr, "update %" PRId64 "  epoch %.2f%s", at->updates, ses_trainer_epoch(w->trainer), trained);
    if (!isnan(loss)) fprintf(stderr, "  eval loss %.4f", loss);
    if (strcmp(w->options.metric, "loss")) fprintf(stderr, "  %s %.4f", w->options.metric, value);
    fprintf(stderr, "%s  (%s)\n", best ? " best" : "", ses_duration_text(time, elapsed(w)));
}

static void show_evaluation(ses_train_monitor *w, const ses_scores *scores, double loss)
{
    int64_t at = ses_trainer_state(w->trainer)->updates;
    ses_event_value v = { "eval/loss", loss };
    if (!w->log_error.code && !isnan(loss))
        ses_event_file_put(w->events, wall_clock(), at, &v, 1, &w->log_error);
    for (size_t i = 0; scores && !w->log_error.code && i < scores->n; i++) {
        char tag[96];
        snprintf(tag, sizeof tag, "eval/%s", scores->item[i].name);
        v = (ses_event_value){ tag, scores->item[i].value };
        ses_event_file_put(w->events, wall_clock(), at, &v, 1, &w->log_error);
    }
}

bool ses_train_monitor_on_evaluation(ses_train_monitor *w, const ses_scores *scores, double loss,
                                     double value, ses_err *e)
{
    ses_json_writer *j = ses_json_writer_new(0, e);
    if (!j) return false;
    ses_json_begin_object(j);
    ses_json_member_real(j, "epoch", ses_trainer_epoch(w->trainer));
    for (size_t i = 0; scores && i < scores->n; i++) {
        char key[96];
        snprintf(key, sizeof key, "eval_%s", scores->item[i].name);
        ses_json_member_real(j, key, scores->item[i].value);
    }
    double known;
    if (!scores || !ses_scores_find(scores, "loss", &known)) ses_json_member_real(j, "eval_loss", loss);
    ses_json_member_int(j, "step", ses_trainer_state(w->trainer)->updates);
    bool ok = put_entry(w, j, true, true, e);
    if (w->events) show_evaluation(w, scores, loss);
    tell_evaluation(w, loss, value);
    settle(w);
    return ok;
}

/* ---- afterwards ---- */

static double train_loss(const ses_train_monitor *w)
{
    return w->loss_n ? w->loss_all / (double)w->loss_n : NAN;
}

void ses_train_monitor_put_results(const ses_train_monitor *w, ses_json_writer *out)
{
    const ses_train_state *at = ses_trainer_state(w->trainer);
    ses_json_member_real(out, "epoch", ses_trainer_epoch(w->trainer));
    ses_json_member_real(out, "train_loss", train_loss(w));
    ses_json_member_real(out, "train_runtime", w->seconds);
    ses_json_member_real(out, "train_samples_per_second",
                         (double)(at->sequences - w->first_sequences) / w->seconds);
    ses_json_member_real(out, "train_steps_per_second", (double)(at->updates - w->first_update) / w->seconds);
    ses_json_member_real(out, "train_tokens_per_second", (double)(at->tokens - w->first_tokens) / w->seconds);
    ses_json_member_real(out, "train_energy_kwh", ses_energy_kwh(&w->energy));
    ses_json_member_real(out, "train_co2_kg", ses_energy_co2(&w->energy, &w->options.energy));
    ses_json_member_string(out, "train_energy_source", w->energy.source);
    ses_json_member_int(out, "train_peak_memory_bytes", (int64_t)ses_peak_memory());
    if (w->first_update) ses_json_member_int(out, "train_resumed_step", w->first_update);
}

void ses_train_monitor_show_summary(const ses_train_monitor *w, const ses_term *t, ses_run_end end)
{
    char time[SES_NUMBER_TEXT], rate[SES_NUMBER_TEXT], memory[SES_NUMBER_TEXT], spark[SES_BAR_SIZE],
        energy[SES_ENERGY_TEXT], since[64] = "";
    const ses_train_state *at = ses_trainer_state(w->trainer);
    if (w->first_update) snprintf(since, sizeof since, " since update %" PRId64, w->first_update);
    ses_show_line(t, "Trained", "%" PRId64 " updates%s, loss %.4f  %s", at->updates,
                  end == SES_RUN_EARLY_STOPPED ? " (ended early: no better score)" : "", train_loss(w),
                  ses_sparkline_text(&w->spark, t, spark));
    ses_show_line(t, "Time", "%s%s: %s tokens/s, %.1f examples/s; memory at most %s",
                  ses_duration_text(time, w->seconds), since,
                  ses_count_text(rate, (uint64_t)((double)(at->tokens - w->first_tokens) / w->seconds)),
                  (double)(at->sequences - w->first_sequences) / w->seconds,
                  ses_bytes_text(memory, ses_peak_memory()));
    ses_show_line(t, "Energy", "%s", ses_energy_text(energy, &w->energy, &w->options.energy));
}

void ses_train_monitor_notify_stopped(const ses_train_monitor *w)
{
    fprintf(stderr,
            "stopped after update %" PRId64 " of %" PRId64 "; the same command with --resume goes on\n",
            ses_trainer_state(w->trainer)->updates, ses_trainer_total_updates(w->trainer));
}
