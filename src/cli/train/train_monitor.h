/* A training run as people and programs follow it: one moving line on a terminal, a line for each evaluation,
 * JSON lines, TensorBoard's event files, Ctrl-C, and at the end what it took. For every command that trains:
 *
 *     ses_train_monitor w = { 0 };
 *     ses_trainer_hooks h = { .ctx = &w, .stepped = ses_train_monitor_on_step, .stop = ses_train_monitor_should_stop, ... };
 *     ok = ses_train_monitor_resume(trainer, dir, quiet, e) && ses_train_monitor_open(&w, &options, trainer, e) &&
 *          ses_trainer_run(trainer, &h, &end, e);
 *     ses_train_monitor_close(&w);
 *     if (end == SES_RUN_STOPPED) ses_train_monitor_notify_stopped(&w);
 *
 * A hook with a context of its own calls ses_train_monitor_on_step(&its.watch, s). The watch does not own the
 * trainer. */
#ifndef SES_CLI_TRAIN_WATCH_H
#define SES_CLI_TRAIN_WATCH_H

#include "cli/energy.h"
#include "cli/ui/sparkline.h"
#include "io/event_file.h"
#include "sesame/json.h"
#include "sesame/metric.h"
#include "sesame/trainer.h"

typedef struct ses_train_monitor_options {
    const ses_term *term; /* what stderr is */
    bool quiet;
    const char *log;             /* JSON lines, a line an update and an evaluation; NULL: none */
    bool append;                 /* to it, as a resumed run does */
    const char *tensorboard_dir; /* folder of TensorBoard's event files; NULL: none */
    const char *metric;   /* the score that chooses the best, as people know it; NULL or "loss": the loss */
    bool lower_is_better; /* is better */
    ses_energy_args energy;
} ses_train_monitor_options;

typedef struct ses_train_monitor {
    ses_train_monitor_options options;
    ses_trainer *trainer;
    FILE *log;
    ses_event_file *events;
    ses_err log_error;            /* what could not be logged, the first of it: no reason to end a run */
    double start, seconds, drawn; /* seconds: of the run, once it is closed */
    int64_t first_update, first_tokens, first_sequences;
    double loss_sum, loss_all, window_sum;
    int64_t loss_count, loss_n, window;
    ses_sparkline spark;
    ses_energy_meter meter;
    ses_energy energy; /* of the run, once it is closed */
} ses_train_monitor;

/* What ses_trainer_resume does, told on stderr. Before ses_train_monitor_open. */
bool ses_train_monitor_resume(ses_trainer *t, const char *dir, bool quiet, ses_err *e);

/* Opens the logs, catches SIGINT and SIGTERM, starts the clock. A second signal of a kind ends the process
 * as usual. */
bool ses_train_monitor_open(ses_train_monitor *w, const ses_train_monitor_options *o, ses_trainer *t,
                            ses_err *e);
void ses_train_monitor_close(ses_train_monitor *w); /* fine twice, and on a zeroed one */

void ses_train_monitor_on_step(void *watch, const ses_step_result *s); /* a hook */
void ses_train_monitor_catch_signals(
    void); /* from now on Ctrl-C asks to stop; a second one ends the process */
bool ses_train_monitor_should_stop(void *watch); /* a hook; NULL does as well: a signal came */

/* An evaluation: its line, and an entry of every log. value: of options.metric. scores may be NULL. */
bool ses_train_monitor_on_evaluation(ses_train_monitor *w, const ses_scores *scores, double loss,
                                     double value, ses_err *e);
void ses_train_monitor_clear_line(
    const ses_train_monitor *w); /* the moving line, before something else is printed on stderr */

/* Of a closed watch: members in the reference's names (epoch, train_loss, train_runtime, ...); the lines
 * "Trained", "Time", "Energy" of the closing summary on stdout; how to go on. */
void ses_train_monitor_put_results(const ses_train_monitor *w, ses_json_writer *out);
void ses_train_monitor_show_summary(const ses_train_monitor *w, const ses_term *t, ses_run_end end);
void ses_train_monitor_notify_stopped(const ses_train_monitor *w);

#endif
