/* Records of training runs, read from their folders for comparison: settings (run.json), progress
 * (log.jsonl, or the log_history of trainer_state.json, which transformers writes, too), results
 * (all_results.json). Missing files are allowed. Ownership: ses_run_records_free frees everything. One
 * thread per list. */
#ifndef SES_CLI_RUN_RECORD_H
#define SES_CLI_RUN_RECORD_H

#include "cli/ui/term.h"
#include "sesame/json.h"

typedef struct ses_series { /* a value over steps */
    char name[64];          /* "loss", "learning_rate", "eval_accuracy" */
    double *step, *value;
    size_t n, cap;
} ses_series;

typedef struct ses_run_record {
    char *dir, *name;                     /* name: unique in the list */
    ses_json_doc *run, *results, *errors; /* run.json, all_results.json, eval_errors.json; or NULL */
    const ses_json *options, *outcome;    /* objects in them, or NULL */
    ses_series *series;
    size_t n_series, cap;
    char metric[64]; /* "eval_accuracy", or "" */
    bool lower_is_better;
    size_t rank; /* 1: best score among the runs with this metric; 0: no score, or not ranked */
} ses_run_record;

typedef struct ses_run_records {
    ses_run_record *item;
    size_t n, cap;
} ses_run_records;

/* Adds the run in a folder, or all runs in its subfolders (a search), sorted by name. */
bool ses_run_records_add(ses_run_records *l, const char *path, ses_err *e);
/* Adds a run of which only the log is known. */
bool ses_run_records_add_log(ses_run_records *l, const char *log, const char *name, ses_err *e);
/* Fails without a run. */
bool ses_run_records_open(ses_run_records *l, char *const *paths, size_t n, ses_err *e);
void ses_run_records_free(ses_run_records *l); /* back to zero */

const ses_series *ses_run_record_series(const ses_run_record *r, const char *name); /* NULL: none */
double ses_run_record_number(const ses_run_record *r, const char *key); /* from the results; NaN: missing */
double ses_run_record_final_score(const ses_run_record *r);             /* final value of the metric */
/* Best value of the metric, and its step. */
double ses_run_record_best_score(const ses_run_record *r, double *step);
void ses_run_record_sparkline(const ses_run_record *r, const char *name, const ses_term *t,
                              char buf[SES_BAR_SIZE]);

/* Sorts the runs by their final score, the best first, and sets their ranks; equal scores have the same
 * rank. Runs with different metrics are ranked apart, in the order of their first run. Runs without a
 * score come last. */
bool ses_run_records_rank(ses_run_records *l, ses_err *e);

/* Whether an option differs between runs. Options about output and logging never count. */
bool ses_run_records_differ(const ses_run_records *l, const char *option);
/* The i-th option that differs; NULL past the last. */
const char *ses_run_records_setting(const ses_run_records *l, size_t i);

#endif
