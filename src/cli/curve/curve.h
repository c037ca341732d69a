/* `sesame curve`: learning curves, scores of methods by the number of training examples. A run is of a
 * method, a size and a seed. Each writes cells/NAME.json, from which the table is made; finished ones need
 * not run again.
 *
 * Ownership: a ses_curve owns its data and results, arguments are borrowed. One thread; --jobs forks. */
#ifndef SES_CLI_CURVE_H
#define SES_CLI_CURVE_H

#include "cli/experiment/experiment.h"
#include "cli/experiment/job_runner.h"
#include "cli/ladder/ladder.h"
#include "data/row_overlap.h"
#include "math/student_t.h"

typedef struct ses_curve_args {
    ses_data_options data;
    ses_compute_args compute;
    const char *model, *train, *eval, *sizes, *methods, *output, *vectors;
    const char *patterns, *unlabeled; /* files of few-shot methods; unlabeled NULL: --train */
    ses_opt_list set;                 /* "METHOD:OPTION=VALUE" */
    bool per_class, keep_models, resume, overwrite;
    int64_t seed, seeds, least_updates, batch_size, max_length, jobs;
    double epochs, lr, confidence;
    ses_energy_args energy;
} ses_curve_args;

enum { SES_CURVE_NAME = 120 };

typedef enum { SES_METHOD_MODEL, SES_METHOD_NEW, SES_METHOD_OWN, SES_METHOD_CLASSIFIER } ses_method_kind;

/* A line of curve_methods.def. */
typedef struct ses_curve_method {
    const char *name, *summary, *tasks;
    ses_method_kind kind;
    bool seeded;
    const char *options;
    const ses_ladder_method *ladder; /* instead of options; NULL: none */
} ses_curve_method;

/* A run: a method with a size and a seed. */
typedef struct ses_curve_run {
    ses_planned_job base;
    char name[SES_CURVE_NAME]; /* "lora,size=16,seed=43" */
    double score, train_seconds, joules;
    int64_t examples;
} ses_curve_run;

/* The runs of a method and size. */
typedef struct ses_curve_point {
    ses_mean_interval score;
    double train_seconds, joules; /* means */
    int64_t examples;
} ses_curve_point;

/* The method to use for a size. */
typedef struct ses_curve_choice {
    size_t method, best; /* SIZE_MAX: no method has the scores of all seeds; best: with the best mean */
    size_t within_noise; /* methods that may be as good as the best, itself included */
    size_t incomplete;   /* methods left out: they have scores of some seeds only */
    bool known;          /* differences have intervals: at least two seeds */
} ses_curve_choice;

typedef struct ses_curve {
    ses_experiment x;
    const ses_curve_args *a;
    ses_device *dev; /* for methods; the first one opens it */
    struct ses_test_features features;
    const char *task_name, *metric;
    bool lower_is_better, in_percent; /* in_percent: scores are at most 100, not 1 */
    ses_examples *train, *test;
    ses_row_overlap overlap; /* test examples that are in the training file */
    const ses_curve_method **method;
    int64_t *size; /* examples, or of each class; 0: all. Ascending, 0 last */
    size_t n_methods, n_sizes, n_seeds;
    ses_curve_run *run; /* [n_sizes, n_methods, n_seeds] */
    char *cells;        /* folder of their files */
} ses_curve;

/* curve_methods.c */
/* The method of this name for a task; NULL: unknown, or for other tasks (SES_EUSAGE). */
const ses_curve_method *ses_curve_method_find(const char *name, size_t n, const char *task, ses_err *e);
bool ses_curve_choose_methods(ses_curve *v, ses_err *e); /* --methods, --set */
/* Trains on `train`, the sample of this size and seed, and evaluates, into folder dir. *stopped: by a
 * signal. */
bool ses_curve_run_method(ses_curve *v, const ses_curve_method *m, int64_t size, int64_t seed,
                          ses_examples *train, const char *dir, bool *stopped, ses_err *e);

/* curve_sizes.c */
/* Parses "8,16,...,all" into out [max]: "..." doubles up to the next number, before `all` up to `limit`.
 * Sorted; 0 is `all`. Fails for other words and repeated numbers. */
bool ses_curve_sizes_parse(const char *text, int64_t limit, int64_t *out, size_t max, size_t *n, ses_err *e);
bool ses_curve_choose_sizes(ses_curve *v, ses_err *e); /* --sizes */

/* curve_runs.c */
bool ses_curve_is_done(const ses_curve_run *x); /* it has a score */
ses_curve_run *ses_curve_run_at(const ses_curve *v, size_t size, size_t method, size_t seed);
/* Number of seeds a method runs with: one if nothing depends on the seed. */
size_t ses_curve_seeds_of(const ses_curve *v, size_t size, size_t method);
const char *ses_curve_size_text(int64_t size, char buf[24]); /* "32", "all" */
/* Reads a file of cells/ into a run: done, failed or open. Fails if it is not such a file. */
bool ses_curve_run_read(ses_curve_run *out, const char *path, ses_err *e);
/* Runs the unfinished ones, --jobs at a time; *stopped: by a signal. */
bool ses_curve_run_all(ses_curve *v, bool *stopped, ses_err *e);

/* curve_choice.c */
ses_curve_point ses_curve_point_of(const ses_curve *v, size_t size, size_t method);
/* The cheapest method whose paired difference to the best mean has an interval that contains 0. Methods
 * without the scores of all seeds are left out. */
ses_curve_choice ses_curve_choose(const ses_curve *v, size_t size);

/* curve_show.c */
bool ses_curve_has_score(const ses_curve *v);
void ses_curve_put(const void *curve, ses_json_writer *w);         /* members of curve.json */
bool ses_curve_fill(const void *curve, ses_report *r, ses_err *e); /* tables and plot */

/* curve.c: the whole command. */
bool ses_curve_command(ses_call *c, ses_err *e);

#endif
