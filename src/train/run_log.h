/* Log of a training run: JSON lines, TensorBoard event files, log_history of trainer_state.json, and the
 * figures of train_results.json. A log error never ends a run: the first one is kept in `error`.
 *
 *     ses_run_log log = { 0 };
 *     ok = ses_run_log_open(&log, &options, trainer, e);
 *     ... ses_run_log_on_step after each batch, ses_run_log_on_evaluation after each evaluation
 *     ses_run_log_close(&log);
 *     ses_run_log_put_results(&log, writer);
 *
 * The log borrows the trainer and the strings of its options. One thread. */
#ifndef SES_TRAIN_RUN_LOG_H
#define SES_TRAIN_RUN_LOG_H

#include "base/str.h"
#include "io/event_file.h"
#include "sesame/json.h"
#include "sesame/training.h"
#include "train/energy/energy_meter.h"

#include <stdio.h>

/* Sums over a run up to an update. */
typedef struct ses_run_totals {
    /* Functions of the run, the same for every machine and number of ranks. */
    double loss_sum;
    int64_t loss_count;
    double window_sum; /* losses since the last entry of log_history */
    int64_t window;
    /* Measured; false: unknown, 0. */
    bool has_times;
    double seconds, joules;
    double gpu_joules; /* part of joules; 0: no GPU, or not measured */
} ses_run_totals;

typedef struct ses_run_log_options {
    const char *path; /* JSON lines: one line per update and per evaluation; NULL: none */
    bool append;      /* to an existing file, for a resumed run: lines after its update are removed */
    const char *tensorboard_dir; /* folder of the event files; NULL: none */
    ses_energy_args energy;
    ses_energy_sources counters;
    ses_run_totals before; /* resumed run: totals up to its checkpoint */
    ses_comm *comm;        /* ranks of the run; NULL: one. Ranks other than 0 have no path */
    int64_t lanes;
} ses_run_log_options;

typedef struct ses_run_log {
    ses_run_log_options options;
    ses_trainer *trainer;
    FILE *file;
    ses_event_file *events;
    ses_err error;          /* first error of a log; code SES_OK: none */
    double start, seconds;  /* start of the run; its length, set by close */
    int64_t resumed_update; /* updates at open; 0: not resumed */
    /* First update that the figures cover: 0, or resumed_update if the times before it are unknown. */
    int64_t first_update, first_tokens, first_sequences;
    double loss_sum; /* over all updates, in their order: a resumed run gets the same bits */
    int64_t loss_count;
    double window_sum; /* over updates since the last entry of log_history */
    int64_t window;
    ses_energy_meter meter;
    ses_energy energy;    /* set by close; of all ranks after share */
    uint64_t peak_memory; /* the same */
} ses_run_log;

/* The settings of energy and price. */
ses_energy_args ses_training_energy(const ses_training_options *o);

/* Opens the files and starts clock and energy meter. The trainer is at the run's first update. */
bool ses_run_log_open(ses_run_log *l, const ses_run_log_options *o, ses_trainer *t, ses_err *e);
/* Instead of open and close, for a run that was complete when it was resumed: the figures are o->before, no
 * file is opened. */
void ses_run_log_restore(ses_run_log *l, const ses_run_log_options *o, ses_trainer *t);
void ses_run_log_close(ses_run_log *l); /* no effect the second time, or on a zeroed log */

void ses_run_log_on_step(ses_run_log *l, const ses_step_result *s);
/* scores may be NULL; loss NaN: unknown. */
bool ses_run_log_on_evaluation(ses_run_log *l, const ses_scores *scores, double loss, ses_err *e);

double ses_run_log_elapsed(const ses_run_log *l); /* seconds since open, and of the run before a resume */
/* Between open and close. Energy is that of all ranks, which all call it. */
bool ses_run_log_totals(const ses_run_log *l, ses_run_totals *out, ses_err *e);
/* After close, on all ranks: sums their energy. */
bool ses_run_log_share(ses_run_log *l, ses_err *e);
double ses_run_log_train_loss(const ses_run_log *l); /* mean over updates, after close; NaN: none */
/* The figures after close; zeros and a NaN loss of a zeroed log. */
ses_training_stats ses_run_log_stats(const ses_run_log *l);
/* After close: rows of a model card, "| time | 4.2 s |": time, FLOPs, energy, price. put_cell: escapes a
 * cell. */
void ses_run_log_put_card(const ses_run_log *l, ses_buf *b, void (*put_cell)(ses_buf *b, const char *s));
/* After close: members with the names transformers uses (epoch, train_loss, train_runtime, ...); none of a
 * zeroed log. */
void ses_run_log_put_results(const ses_run_log *l, ses_json_writer *out);

#endif
