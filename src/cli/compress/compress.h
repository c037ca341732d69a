/* `sesame compress`: smaller forms of a fine-tuned model, measured against it.
 *
 * A candidate is a chain of methods: transformations (a student with fewer layers), then at most one
 * precision (int8). Its model is made from the model of the chain without the last method, so that chains
 * share their beginnings. A method is a line in compress_methods.def: commands of sesame, which run as
 * processes of their own. Candidate 0 is the model itself.
 *
 * Files: OUTPUT/candidates/NAME is the model of a candidate, NAME.json its figures, NAME.log the
 * messages of its commands. So finished candidates need not run again.
 *
 * Ownership: a ses_compress owns its candidates and strings, arguments are borrowed. One thread; models run
 * in child processes only. */
#ifndef SES_CLI_COMPRESS_H
#define SES_CLI_COMPRESS_H

#include "cli/experiment/experiment.h"
#include "cli/experiment/job_runner.h"
#include "cli/train/predictor_args.h"
#include "data/row_overlap.h"
#include "sesame/finetune.h"
#include "tune/finetune_data.h"

typedef enum { SES_BY_LATENCY, SES_BY_SIZE, SES_BY_MEMORY, SES_BY_ENERGY } ses_compress_measure;
const char *ses_compress_measure_name(int by); /* as --by has it */

typedef struct ses_compress_args {
    ses_predictor_args tune; /* task, data, threads, device of training, bootstrap */
    const char *train, *eval, *methods, *output;
    double max_drop, epochs, lr, budget;
    int64_t seed, jobs, batch_size, train_size, rounds, texts;
    int by; /* ses_compress_measure */
    bool resume, overwrite, make_only;
} ses_compress_args;

typedef enum {
    SES_COMPRESS_TRANSFORM, /* may be followed by other methods */
    SES_COMPRESS_PRECISION, /* only a rule may follow */
    SES_COMPRESS_RULE       /* ends a chain: a setting of prediction, the model stays the same */
} ses_compress_kind;

/* Type of a method's parameter. */
typedef enum {
    SES_COMPRESS_NONE,
    SES_COMPRESS_PART,  /* above 0, below 1 */
    SES_COMPRESS_COUNT, /* a part, or a whole number */
    SES_COMPRESS_UNIT   /* above 0, at most 1 */
} ses_compress_type;

/* A line of compress_methods.def. */
typedef struct ses_compress_method {
    const char *name;
    ses_compress_kind kind;
    const char *tasks; /* fine-tuning tasks, '|' between; NULL: all */
    ses_compress_type type;
    const char *values; /* default values of its parameter, ',' between; NULL: it has no parameter */
    bool is_default;    /* used without --methods */
    bool trains;        /* needs --data */
    const char *after;  /* RULE: a method that its chain must contain; else NULL */
    const char *steps;  /* commands, ';' between: see compress_steps.c */
    const char *summary;
} ses_compress_method;

/* Costs of a model on this machine. NaN: not measured. */
typedef struct ses_compress_costs {
    double latency;    /* seconds of one text: median */
    double throughput; /* texts per second, several at a time */
    double memory;     /* bytes that a process needs for the model and its computation */
    double bytes;      /* files that prediction reads */
    double parameters;
    double flops;  /* per token, of the products with weights in the layers */
    double joules; /* per text */
} ses_compress_costs;

typedef struct ses_candidate {
    ses_planned_job base;              /* done: its model is made */
    char *name;                        /* "student:0.5+int8" */
    char *value;                       /* parameter of the last method; "": none */
    const ses_compress_method *method; /* the last one; NULL: the model itself */
    size_t parent;                     /* index; of the model itself 0 */
    bool is_measured;
    char *dir;           /* folder of the model */
    ses_json_doc *files; /* sizes and SHA-256 of its files when it was made: see ses_manifest_put */
    ses_buf commands;    /* lines that made it from its parent */
    const char *step;    /* the command that runs */
    double score, low, high;
    double drop; /* in points, as --max-drop */
    ses_compress_costs cost;
    double speed, rate, energy_ratio; /* original / candidate: latency, time in batches, joules */
    bool on_front, is_chosen;
} ses_candidate;

typedef struct ses_compress {
    ses_experiment x;
    const ses_compress_args *a;
    const char *model;           /* as given */
    char *output, *train, *eval; /* folder; files, train NULL: none */
    bool holds_out;              /* they are parts of --data */
    size_t n_held_out;
    ses_row_overlap overlap; /* examples of eval that are in train */
    const struct ses_finetune_task *task;
    ses_data_spec train_spec, eval_spec; /* how the files are read */
    const char *metric;
    bool lower_is_better, in_percent;
    int64_t layers;         /* layers of the model */
    bool teaches_scores;    /* the head of the task has scores that a student can learn */
    bool is_new;            /* the model has no head for the task: the original is fine-tuned first */
    bool is_stored_smaller; /* the model is an adapter or quantized: the original is its f32 form */
    ses_candidate *candidate;
    size_t n, cap;
    char *root;            /* folder of the candidates */
    char machine[200];     /* processor and threads of the measurements */
    char energy_note[300]; /* why no energy was measured; "": it was */
    size_t chosen;         /* index; 0: the original */
} ses_compress;

/* compress_methods.c */
/* The rule by which the texts of a candidate leave early, in buf; NULL: none. */
const char *ses_compress_rule_of(const ses_candidate *x, char *buf, size_t size);
/* Whether a chain has parts that only a rule at its end would use: the classifiers of exits without exit. */
bool ses_compress_lacks_rule(const ses_compress *z, size_t i);
/* Makes the candidates of --methods. */
bool ses_compress_choose_methods(ses_compress *z, ses_err *e);
/* Adds the chain "A:VALUE+B" and its beginnings, unless they exist. *index: of the last one; may be NULL. */
bool ses_compress_add_chain(ses_compress *z, const char *chain, size_t n, size_t *index, ses_err *e);

/* compress_data.c */
/* Sets output, train and eval. */
bool ses_compress_choose_files(ses_compress *z, ses_err *e);
/* Whether the files can be read and have the labels of the model, and without --eval whether --data can be
 * split into two parts. Writes nothing. */
bool ses_compress_check_data(const ses_compress *z, ses_err *e);
/* Without --eval: writes these parts; the folder exists. Compares training and evaluation data. */
bool ses_compress_hold_out(ses_compress *z, ses_err *e);

/* compress_steps.c */
/* Fills out with the commands that make a candidate, one per line, quoted for a shell. False: the method
 * cannot be used, with the reason. */
bool ses_compress_put_steps(const ses_compress *z, size_t candidate, ses_buf *out, ses_err *e);
/* Splits a line of such commands into words; the array ends with NULL and is freed as a whole. */
char **ses_compress_split(const char *line, size_t n, ses_err *e);
const char *ses_compress_step_end(const char *line); /* end of the line */
bool ses_compress_original(const ses_compress *z, ses_buf *out, ses_err *e);

/* compress_make.c: makes the models, --jobs at a time; *stopped: by a signal. */
bool ses_compress_make(ses_compress *z, bool *stopped, ses_err *e);

/* compress_files.c */
/* Figures of an earlier call, unless its record or a file of its model is damaged or missing, which is said:
 * then it is made again. Fails if the given model has changed. */
bool ses_compress_read_candidate(ses_compress *z, size_t i, ses_err *e);
/* Sets the files of a candidate that has been made. */
bool ses_compress_note_files(ses_compress *z, size_t i, ses_err *e);
bool ses_compress_write_candidate(const ses_compress *z, size_t i, ses_err *e);
void ses_compress_put_candidate(const ses_compress *z, const ses_candidate *x, ses_json_writer *w);
char *ses_compress_path(const ses_compress *z, size_t i, const char *ending, ses_err *e);
/* Copies the chosen model to OUTPUT/model, with a card that has its commands and figures. */
bool ses_compress_write_model(const ses_compress *z, ses_err *e);

/* compress_card.c: README.md of the chosen model in dir, from the card that is there. */
bool ses_compress_write_card(const ses_compress *z, const char *dir, ses_err *e);

/* compress_measure.c: scores and costs of the made models; *stopped: by a signal. */
bool ses_compress_measure_all(ses_compress *z, bool *stopped, ses_err *e);

/* compress_choice.c */
/* Marks the front and the chosen candidate: the least cost among the ones that lose at most --max-drop. */
bool ses_compress_choose(ses_compress *z, ses_err *e);
double ses_compress_cost_of(const ses_compress *z, const ses_candidate *x); /* by --by; NaN: unknown */

/* compress_show.c */
void ses_compress_put(const void *compress, ses_json_writer *w);         /* members of compress.json */
bool ses_compress_fill(const void *compress, ses_report *r, ses_err *e); /* tables and plot */
void ses_compress_fill_page(const void *compress, ses_report *r); /* the commands of the chosen model */
void ses_compress_print_commands(const ses_compress *z);

/* compress.c: the whole command. */
bool ses_compress_command(ses_call *c, ses_err *e);

#endif
