/* A search of `finetune`: runs in subfolders and their results. finetune_search.c plans, runs and shows grids
 * and random points, search_halving.c runs by successive halving. Main thread only. */
#ifndef SES_CLI_FINETUNE_SEARCH_H
#define SES_CLI_FINETUNE_SEARCH_H

#include "cli/experiment/experiment.h"
#include "cli/experiment/job_runner.h"
#include "cli/train/finetune_command.h"
#include "search_space.h"

enum { SES_SEARCH_RUNS = 10000, SES_SEARCH_ROUNDS = 16 };

typedef enum { SES_SEARCH_GRID, SES_SEARCH_RANDOM, SES_SEARCH_HALVING } ses_search_kind; /* --search */
enum { SES_SEARCH_TRIALS = 9 }; /* default of --trials */

typedef struct ses_search_run {
    ses_planned_job base;
    char *dir;
    int64_t seed;
    double score, seconds, kwh;
    double round[SES_SEARCH_ROUNDS]; /* halving: scores at the end of its rounds */
    size_t n_rounds;
} ses_search_run;

typedef struct ses_search {
    ses_experiment x;
    const ses_finetune_args *a;
    ses_arena mem;
    ses_search_space space;
    size_t points, seeds;
    ses_search_run *runs; /* [points, seeds] */
    size_t rounds;        /* rounds of halving; 0: another search */
    char metric[64];
    bool lower;
} ses_search;

/* finetune_search.c */
/* Arguments of run i: the command's, with the values of the run. */
bool ses_search_args(const ses_search *s, size_t i, ses_finetune_args *out, ses_err *e);
/* Reads the result of a finished run from its folder; done stays false if it is not finished. */
bool ses_search_read(ses_search *s, ses_search_run *r, const ses_finetune_args *a, ses_err *e);
bool ses_search_save(void *search, size_t i, ses_err *e); /* writes grid.json */
bool ses_search_is_done(const ses_search_run *r);         /* it has a result */
/* Notes why a run has failed; false: the search cannot continue, the error is moved to e. */
bool ses_search_note_failure(ses_search_run *r, const ses_err *why, ses_err *e);
/* The line before run i of n: "[1/9] lr=1e-5"; part: "round 1/3, ", or "". */
void ses_search_show_start(const ses_search *s, const ses_search_run *r, const char *part, bool finished,
                           size_t i, size_t n);
bool ses_search_is_better(const ses_search *s, double a, double b);

/* search_halving.c */
bool ses_halving_plan(ses_search *s, ses_err *e); /* rounds and checks, after the points are drawn */
/* Sets the evaluations of a run: at multiples of the first budget. */
void ses_halving_set_evaluations(const ses_search *s, ses_finetune_args *a);
/* Runs the rounds; a resumed search keeps the rounds of its grid.json. */
bool ses_halving_run(ses_search *s, bool *stopped, ses_err *e);
/* The part of the whole length after which a run has stopped: 1/9, 1/3, 1; NaN: none. */
double ses_halving_part(const ses_search *s, const ses_search_run *r);

#endif
