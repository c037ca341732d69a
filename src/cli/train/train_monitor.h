/* Terminal output of a training run: one line that is redrawn, a line per evaluation, Ctrl-C, the closing
 * summary. The monitor is the ctx of a ses_training_fn:
 *
 *     ses_train_monitor m = { .term = &call->err, .quiet = call->quiet, .metric = "accuracy" };
 *     options.on_event = ses_train_monitor_on_event, options.ctx = &m;
 *
 * It owns nothing. One monitor per process: the signal flag is global. */
#ifndef SES_CLI_TRAIN_MONITOR_H
#define SES_CLI_TRAIN_MONITOR_H

#include "cli/ui/sparkline.h"
#include "sesame/training.h"
#include "train/energy/energy_options.h"

/* A run that stops at an evaluation and continues later, as in a search. */
typedef struct ses_train_budget {
    int64_t updates; /* the first evaluation after N updates stops the run; 0: after `epochs` */
    double epochs;
    bool reached;       /* result: it has stopped for this reason */
    double score;       /* result: score of that evaluation */
    const char *metric; /* its name; NULL: the loss */
} ses_train_budget;

typedef struct ses_train_monitor {
    const ses_term *term; /* stderr */
    bool quiet;           /* errors and warnings only */
    bool silent;          /* a rank other than 0: nothing */
    const char *metric;   /* score that selects the best checkpoint; NULL or "loss": the loss */

    ses_train_budget *budget; /* NULL: none */

    double start, drawn; /* seconds: start of the run, last redraw */
    int64_t first_update, first_tokens;
    double evaluated[3],
        trained[3]; /* losses of the last evaluations, at least an epoch apart; train losses */
    double evaluated_epoch;
    int n_evaluated;
    bool overfits;   /* it was reported */
    double loss_sum; /* over updates since the last evaluation */
    int64_t loss_count;
    ses_sparkline spark;
} ses_train_monitor;

/* A ses_training_fn. Returns false after a signal that stops; the first STARTED event installs the
 * handlers. */
bool ses_train_monitor_on_event(void *monitor, const ses_training_event *event);

/* From now on SIGINT, SIGTERM, SIGHUP (unless ignored, as by nohup) and SIGUSR1 request a stop; the same
 * signal again ends the process. */
void ses_train_monitor_catch_signals(void);
bool ses_train_monitor_should_stop(void);
int ses_train_monitor_signal(void); /* number of the signal that requested the stop; 0: none */
void ses_train_monitor_set_signal(int sig);

/* Lines "Trained", "Time", "Energy" of the closing summary, on stdout. */
void ses_train_monitor_show_summary(const ses_train_monitor *m, const ses_trainer *t,
                                    const ses_training_stats *s, const ses_energy_args *energy,
                                    const ses_term *out, ses_run_end end);
void ses_train_monitor_notify_stopped(const ses_trainer *t);
/* The stored results of a complete run, as JSON on stdout. */
bool ses_train_print_results(const char *output, ses_err *e);

#endif
