/* Runs that were, read from their folders for those who compare: what they were told (run.json), how they
 * went (log.jsonl, or trainer_state.json's log_history, also the reference library's), what came of them
 * (all_results.json). Whatever is not there is left out. */
#ifndef SES_CLI_RUN_RECORD_H
#define SES_CLI_RUN_RECORD_H

#include "sesame/json.h"
#include "cli/ui/term.h"

typedef struct ses_series { /* one number over steps */
    char name[64];          /* "loss", "learning_rate", "eval_accuracy" */
    double *step, *value;
    size_t n, cap;
} ses_series;

typedef struct ses_run_record {
    char *dir, *name;                  /* name: what tells it from the others, for people */
    ses_json_doc *run, *results;       /* or NULL */
    const ses_json *options, *outcome; /* objects in them, or NULL */
    ses_series *series;
    size_t n_series, cap;
    char metric[64]; /* "eval_accuracy", or "" */
    bool lower;      /* of it is better */
} ses_run_record;

typedef struct ses_runs {
    ses_run_record *item;
    size_t n, cap;
} ses_runs;

/* A folder of a run, or one whose folders are runs (a search): all of them, by name. */
bool ses_runs_add(ses_runs *l, const char *path, ses_err *e);
bool ses_runs_open(ses_runs *l, char *const *paths, size_t n, ses_err *e); /* at least one run */
void ses_runs_free(ses_runs *l);                                           /* back to zero */

const ses_series *ses_run_record_series(const ses_run_record *r, const char *name); /* NULL: none */
double ses_run_record_number(const ses_run_record *r, const char *key); /* of the results; NaN: none */
double ses_run_record_score(const ses_run_record *r);                   /* of its metric, at the end */
double ses_run_record_best(const ses_run_record *r, double *step);      /* of its metric, on the way */
void ses_run_record_curve(const ses_run_record *r, const char *name, const ses_term *t,
                          char buf[SES_BAR_SIZE]);

/* Does an option differ between runs? Those that say only where and how fast never do. */
bool ses_runs_differ(const ses_runs *l, const char *option);
/* The i-th option that differs, of the first run that has options; NULL past the last. */
const char *ses_runs_setting(const ses_runs *l, size_t i);

#endif
