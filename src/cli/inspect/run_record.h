/* Runs that were, read from their folders for those who compare: what they were told (run.json), how they
 * went (log.jsonl, or trainer_state.json's log_history, also the reference library's), what came of them
 * (all_results.json). Whatever is not there is left out. */
#ifndef SES_CLI_RUN_RECORD_H
#define SES_CLI_RUN_RECORD_H

#include "cli/ui/term.h"
#include "sesame/json.h"

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
    char metric[64];      /* "eval_accuracy", or "" */
    bool lower_is_better; /* of it is better */
} ses_run_record;

typedef struct ses_run_records {
    ses_run_record *item;
    size_t n, cap;
} ses_run_records;

/* A folder of a run, or one whose folders are runs (a search): all of them, by name. */
bool ses_run_records_add(ses_run_records *l, const char *path, ses_err *e);
bool ses_run_records_open(ses_run_records *l, char *const *paths, size_t n,
                          ses_err *e);         /* at least one run */
void ses_run_records_free(ses_run_records *l); /* back to zero */

const ses_series *ses_run_record_series(const ses_run_record *r, const char *name); /* NULL: none */
double ses_run_record_number(const ses_run_record *r, const char *key);  /* of the results; NaN: none */
double ses_run_record_final_score(const ses_run_record *r);              /* of its metric, at the end */
double ses_run_record_best_score(const ses_run_record *r, double *step); /* of its metric, on the way */
void ses_run_record_sparkline(const ses_run_record *r, const char *name, const ses_term *t,
                              char buf[SES_BAR_SIZE]);

/* Does an option differ between runs? Those that say only where and how fast never do. */
bool ses_run_records_differ(const ses_run_records *l, const char *option);
/* The i-th option that differs, of the first run that has options; NULL past the last. */
const char *ses_run_records_setting(const ses_run_records *l, size_t i);

#endif
