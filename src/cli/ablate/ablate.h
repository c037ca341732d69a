/* `sesame ablate`: pretraining runs with different settings, downstream tasks with several seeds after each,
 * and one table of their scores.
 *
 * A job is one command of sesame in a child process: a pretraining run, or a task of the pretrained model. A
 * task waits for its pretraining run. Folders: OUT/RUN is the model of a run, OUT/RUN,tasks/TASK,seed=N a
 * task's; further pretraining seeds are OUT/RUN,seed=N. A finished job has job.json there with its arguments
 * and results, so it need not run again; job.log has its messages.
 *
 * Ownership: a ses_ablate owns its recipe, jobs and strings (mem); arguments are borrowed. One thread. */
#ifndef SES_CLI_ABLATE_H
#define SES_CLI_ABLATE_H

#include "base/arena.h"
#include "base/strmap.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/experiment/job_runner.h"
#include "data/row_overlap.h"
#include "math/student_t.h"

#define SES_ABLATE_JOB "job.json"
#define SES_ABLATE_LOG "job.log"
#define SES_ABLATE_START "start.json"   /* arguments of a job that has started */
#define SES_ABLATE_OUTPUT "output.json" /* what a command without training has printed */

enum {
    SES_ABLATE_AXES = 8,      /* options in "grid" */
    SES_ABLATE_RUNS = 1000,   /* rows */
    SES_ABLATE_TASKS = 64,    /* downstream tasks */
    SES_ABLATE_SEEDS = 100,   /* seeds of each kind */
    SES_ABLATE_JOBS = 100000, /* in all */
    SES_ABLATE_SCORES = 12,   /* columns of pretraining scores */
    SES_ABLATE_FOLDER = 200,  /* bytes of a folder's name */
    SES_ABLATE_COLUMNS = SES_ABLATE_TASKS + SES_ABLATE_SCORES + 1
};

typedef struct ses_ablate_args {
    ses_compute_args compute;
    const char *output, *only, *tasks;
    ses_opt_list set;
    int64_t jobs, seeds;
    double confidence;
    bool resume, overwrite, keep_models, plan;
} ses_ablate_args;

/* An entry of "tasks". */
typedef struct ses_ablate_task {
    const char *name;
    const ses_json *options;
    const ses_command *command;
    bool tunes;         /* finetune: trains a copy of the model, once per seed */
    const char *metric; /* key of the results, without "eval_" */
    bool lower_is_better;
    bool in_percent;         /* scores are at most 100, not 1 */
    ses_row_overlap overlap; /* evaluation examples that are trained on; of the run with the most */
} ses_ablate_task;

/* A row of the table. */
typedef struct ses_ablate_run {
    const char *name, *entry;   /* entry: its name in "runs", without the values of the grid; "": none */
    const ses_json *change;     /* its options in "runs"; NULL: none */
    const ses_json *tune;       /* its options of fine-tuning; NULL: none */
    const ses_json *tasks;      /* the names of its tasks; NULL: all */
    const char *model;          /* without pretraining: the model of its tasks; NULL: "tune" has a config */
    const char *dir;            /* folder of that model; NULL: `from` has it */
    size_t from;                /* an earlier run whose model it starts from; SIZE_MAX: none */
    bool pretrains;             /* false: tasks only */
    size_t at[SES_ABLATE_AXES]; /* index of the value on each axis of "grid" */
} ses_ablate_run;

typedef struct ses_ablate_job {
    ses_planned_job base; /* comes after the job that makes its model */
    size_t run, task;     /* task SIZE_MAX: the pretraining run */
    size_t pretrain_seed, seed;
    char *dir;
    char **word; /* arguments by the recipe, then NULL */
    size_t n_words;
    int64_t model_time;   /* when the model it starts from was finished, in microseconds; 0: unknown */
    ses_json_doc *record; /* job.json; NULL: not finished */
} ses_ablate_job;

typedef enum { SES_COLUMN_SCORE, SES_COLUMN_TASK, SES_COLUMN_MEAN } ses_ablate_kind;

typedef struct ses_ablate_column {
    const char *name;
    ses_ablate_kind kind;
    size_t task;
    bool lower_is_better;
    double scale; /* factor in the table: 100 for shares */
} ses_ablate_column;

/* A run in a column. */
typedef struct ses_ablate_entry {
    double *value; /* [n]: in the order of the seeds; with several pretraining seeds their means over the
                    * fine-tuning seeds */
    size_t n;
    size_t results; /* number of results of all seeds */
    double median;  /* median of them */
    ses_mean_interval interval;
    double published; /* NaN: none */
} ses_ablate_entry;

/* Costs of a run; NaN: unknown. */
typedef struct ses_ablate_costs {
    double seconds, rate, flops, watt_hours, price; /* pretraining: means; rate: tokens per second */
    double task_seconds;                            /* all tasks of all seeds */
} ses_ablate_costs;

typedef struct ses_ablate {
    ses_call *c;
    const ses_ablate_args *a;
    const char *path; /* file of the recipe */
    ses_arena mem;
    ses_json_doc *recipe, *set, *tune_set; /* set, tune_set: --set as objects */
    const ses_json *common, *grid, *scores, *tune, *published;
    const char *title, *source;
    ses_ablate_run *run;
    ses_ablate_task *task;
    size_t n_runs, n_tasks;
    int64_t seed[SES_ABLATE_SEEDS], pretrain_seed[SES_ABLATE_SEEDS];
    size_t n_seeds, n_pretrain_seeds; /* n_pretrain_seeds 0: one, by the options */
    bool averages[SES_ABLATE_TASKS];  /* tasks in the column "mean" */
    size_t n_averaged;
    ses_ablate_job *job;
    size_t n_jobs;
    ses_ablate_column column[SES_ABLATE_COLUMNS];
    size_t n_columns;
    ses_strmap checked;      /* options of fine-tuning whose data were read */
    ses_ablate_entry *entry; /* [n_runs, n_columns] */
    ses_ablate_costs *costs;
    char *command; /* the command line */
} ses_ablate;

/* ablate_recipe.c: reads the recipe and the selections of the command line. */
bool ses_ablate_read(ses_ablate *s, ses_err *e);
/* The folder of a run: special characters of its name become '-'. */
void ses_ablate_name_folder(const char *run, char name[SES_ABLATE_FOLDER]);
bool ses_ablate_lower_is_better(const char *metric);
/* Whether a run takes part in a task. */
bool ses_ablate_has_task(const ses_ablate *s, size_t run, size_t task);

/* ablate_words.c: options of a recipe as arguments. */
typedef struct ses_ablate_layer {
    const ses_json *object; /* NULL: none */
    const char *where;      /* for messages: "common" */
    const char *reserved;   /* its keys that are not options, '|' between; NULL: none */
    const size_t *at;       /* values are arrays, of which these elements count; NULL: they are the values */
} ses_ablate_layer;
typedef struct ses_ablate_argv {
    char **word; /* then NULL */
    size_t n, cap;
} ses_ablate_argv;
/* A value as text; NULL: neither a text nor a number. */
const char *ses_ablate_text(ses_ablate *s, const ses_json *v, ses_err *e);
bool ses_ablate_add_word(ses_ablate *s, ses_ablate_argv *w, const char *a, const char *b, ses_err *e);
/* Adds the options of the layers: a later layer replaces the values of an earlier one, but adds to lists;
 * null removes an option. Fails for an unknown option and for a missing file. */
bool ses_ablate_add_options(ses_ablate *s, ses_ablate_argv *w, const ses_command *c,
                            const ses_ablate_layer *layer, size_t n, ses_err *e);
/* Parses arguments as the command does and passes the options to check. Fails as the command would. */
typedef bool ses_ablate_check_fn(void *ctx, const void *args, ses_err *e);
bool ses_ablate_check_words(const ses_command *c, const ses_ablate_argv *w, ses_ablate_check_fn *check,
                            void *ctx, ses_err *e);

/* ablate_data.c: a ses_ablate_check_fn of options of finetune; ctx: a ses_ablate_data. Reads the data of a
 * task before the first job starts. */
typedef struct ses_ablate_data {
    ses_ablate *study;
    size_t task;
} ses_ablate_data;
bool ses_ablate_check_data(void *ctx, const void *args, ses_err *e);
/* Tells on standard error which tasks evaluate examples that they train on. */
void ses_ablate_show_overlap(const ses_ablate *s);
/* A sentence about task i; "" if it has no such examples. */
const char *ses_ablate_overlap_text(const ses_ablate *s, size_t i, char *buf, size_t size);

/* ablate_plan.c: the jobs, in the order in which they start. */
bool ses_ablate_plan(ses_ablate *s, ses_err *e);
/* Reads the data of all fine-tuning jobs. */
bool ses_ablate_check_inputs(ses_ablate *s, ses_err *e);
/* Number of models of a run: its pretraining seeds, or the models of the run it starts from. */
size_t ses_ablate_models_of(const ses_ablate *s, size_t run);
/* Whether a text is the name or the model folder of a run with pretraining. */
bool ses_ablate_is_model(const ses_ablate *s, const ses_ablate_run *a, const char *text);
/* The folder of the model that a job starts from; NULL: its arguments name it, or it has none. */
const char *ses_ablate_model_of(const ses_ablate *s, const ses_ablate_job *j);
/* The task of a job; NULL: it is a pretraining run. */
const ses_ablate_task *ses_ablate_task_of(const ses_ablate *s, const ses_ablate_job *j);

/* ablate_results.c: files of jobs. */
/* One that has finished before. If the model it started from has been made again since, it is repeated. */
bool ses_ablate_read_job(ses_ablate *s, ses_ablate_job *j, ses_err *e);
/* One of a model that will be made again: its files are removed. */
bool ses_ablate_reset_job(const ses_ablate *s, const ses_ablate_job *j, ses_err *e);
bool ses_ablate_finish_job(ses_ablate *s, ses_ablate_job *j, ses_err *e); /* its command has succeeded */
/* Before its command starts: whether its folder has a checkpoint of the same arguments and the same model,
 * which are then saved there. */
bool ses_ablate_begin_job(const ses_ablate *s, ses_ablate_job *j, bool *resume, ses_err *e);
double ses_ablate_result(const ses_ablate_job *j, const char *key); /* NaN: none */
/* The score of a task's job; NaN: none. */
double ses_ablate_score(const ses_ablate *s, const ses_ablate_job *j);

/* ablate_queue.c: runs the open jobs; *stopped: by a signal. */
bool ses_ablate_run_jobs(ses_ablate *s, bool *stopped, ses_err *e);
/* Prints the commands of all jobs. */
bool ses_ablate_print_plan(ses_ablate *s, ses_err *e);

/* ablate_table.c: columns, cells and costs from the results. */
bool ses_ablate_fill(ses_ablate *s, ses_err *e);
double ses_ablate_median(double *x, size_t n); /* sorts x; NaN: n is 0 */
ses_ablate_entry *ses_ablate_entry_at(const ses_ablate *s, size_t run, size_t column);
/* Whether a run takes part in the task of a column, or in all tasks of their mean. */
bool ses_ablate_has_column(const ses_ablate *s, size_t run, size_t column);

/* ablate_json.c */
void ses_ablate_put_json(ses_ablate *s, ses_json_writer *w);
bool ses_ablate_write_json(ses_ablate *s, ses_err *e); /* ablate.json */
bool ses_ablate_print_json(ses_ablate *s, ses_err *e);

/* ablate_show.c: table and plots, ablate.md, ablate.svg, ablate-flops.svg, ablate.html. */
bool ses_ablate_show(ses_ablate *s, ses_err *e);

/* ablate.c: the whole command. */
bool ses_ablate_command(ses_call *c, ses_err *e);
void ses_ablate_free(ses_ablate *s);

#endif
