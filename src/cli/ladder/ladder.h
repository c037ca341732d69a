/* `sesame ladder`: methods of growing cost on one data set, in one table. A method is a line in
 * ladder_methods.def, unless it is a classifier with a file method_NAME.c. Each writes its model and
 * all_results.json into a folder of its own, from which the table is made; so finished ones need not run
 * again.
 *
 * Ownership: a ses_ladder owns its data and results, arguments are borrowed. One thread. */
#ifndef SES_CLI_LADDER_H
#define SES_CLI_LADDER_H

#include "base/dir.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/experiment/experiment.h"
#include "cli/experiment/job_runner.h"
#include "data/row_overlap.h"
#include "sesame/finetune.h"
#include "train/energy/energy_meter.h"
#include "tune/finetune_options.h"

typedef struct ses_ladder_args {
    ses_data_options data; /* task: the first operand */
    ses_compute_args compute;
    const char *only, *skip; /* names of methods, ',' between; NULL: all, none */
    const char *output, *svg, *html;
    const char *model, *vectors;
    const char *lm, *elmo; /* folders; NULL: their methods are left out */
    bool resume, overwrite;
    int64_t seed, seeds, bootstrap, max_length;
    double confidence, test_size, epochs, lr;
    ses_energy_args energy;
} ses_ladder_args;

typedef struct ses_ladder_method ses_ladder_method;

/* Figures of a method. */
typedef struct ses_ladder_row {
    ses_planned_job base;
    const ses_ladder_method *method;
    double score, low, high;      /* mean score over the seeds; interval of the first seed */
    double deviation;             /* standard deviation over the seeds; NaN: one seed */
    double train_seconds, joules; /* mean over the seeds */
    double seconds_per_text;      /* prediction time */
    double bytes;                 /* files needed for prediction */
    int64_t runs;
} ses_ladder_row;

typedef struct ses_ladder {
    ses_experiment x;
    const ses_ladder_args *a;
    ses_device *dev;
    const char *task;
    const char *train_name, *test_name; /* file names; equal: one file was split */
    ses_examples *train, *test;
    ses_row_overlap overlap; /* test texts that are training texts */
    const char *metric;      /* name of the score */
    bool lower_is_better;
    char *root; /* folder of the methods' folders */
    ses_dir_lock *lock;
    bool temporary; /* root is removed at the end */
    ses_ladder_row *row;
    size_t n_rows;
    /* Features of the test texts, kept for runs with the same texts; the owner frees x. NULL: not kept */
    struct ses_test_features {
        float *x; /* [texts, width]; NULL: not computed yet */
        size_t width;
    } * test_features;
    bool last_weights; /* the test data select no epoch: the weights after the last update are evaluated */
    int64_t least_updates; /* runs of fewer updates by their epochs get this many; 0: no limit */
} ses_ladder;

struct ses_ladder_method {
    const char *name, *summary;
    bool seeded; /* results depend on the seed */
    /* Writes into buf why the method cannot run; false: it can. NULL: it always can. */
    bool (*unavailable)(const ses_ladder *l, char *buf, size_t size);
    /* Fails if the files that the options name cannot be used; called before the first method runs. NULL: it
     * reads none. */
    bool (*check)(const ses_ladder_args *a, ses_err *e);
    /* Trains and evaluates; writes the model and all_results.json into folder dir, which may hold files of an
     * interrupted run. */
    bool (*run)(ses_ladder *l, const ses_ladder_method *r, const char *dir, int64_t seed, ses_err *e);
    const char *classifier; /* a classifier that it trains; NULL: none */
    int64_t ngrams;         /* its setting; 0: the default */
};

#define SES_LADDER_METHOD(id) extern const ses_ladder_method ses_ladder_method_##id;
#define SES_LADDER_CLASSIFIER(id, ...) SES_LADDER_METHOD(id)
#include "ladder_methods.def"
#undef SES_LADDER_CLASSIFIER
#undef SES_LADDER_METHOD

const ses_ladder_method *ses_ladder_method_at(size_t i); /* NULL past the last */

/* ladder_data.c: reads, splits and compares the data; sets metric. */
bool ses_ladder_read(ses_ladder *l, ses_err *e);

bool ses_ladder_is_done(const ses_ladder_row *row); /* it has a score */
/* ladder_show.c */
void ses_ladder_put(const void *ladder, ses_json_writer *w);         /* members of ladder.json */
bool ses_ladder_fill(const void *ladder, ses_report *r, ses_err *e); /* table and bars */

/* ladder.c: the whole command. */
bool ses_ladder_command(ses_call *c, ses_err *e);

/* Helpers of methods. */
bool ses_ladder_check_model(const ses_ladder_args *a, ses_err *e); /* --model */
/* The folder of an option has a model of this type; NULL: the option is not given. */
bool ses_ladder_check_type(const char *option, const char *dir, const char *type, ses_err *e);
bool ses_ladder_check_vectors(const ses_ladder_args *a, ses_err *e); /* --vectors */
/* Options of a run into dir; the model is not set. */
ses_finetune_options ses_ladder_options(const ses_ladder *l, const char *dir, int64_t seed);
/* Trains the classifier of a method. vectors may be NULL. */
bool ses_ladder_run_classifier(ses_ladder *l, const ses_ladder_method *r, const char *dir, int64_t seed,
                               const char *vectors, ses_err *e);
/* ladder_vectors.c: calls run with a file of word vectors: --vectors, or trained on the training texts, whose
 * cost is added to the row. */
typedef bool ses_vectors_method(ses_ladder *l, const ses_ladder_method *r, const char *dir, int64_t seed,
                                const char *vectors, ses_err *e);
bool ses_ladder_with_vectors(ses_ladder *l, const ses_ladder_method *r, const char *dir, int64_t seed,
                             ses_vectors_method *run, ses_err *e);
/* ladder_finetune.c: a run of a model or config into dir, with progress; an interrupted one continues. */
bool ses_ladder_finetune(ses_ladder *l, ses_finetune_options o, const char *dir, ses_err *e);
/* r->steps, or `least` if the epochs are fewer updates of this many examples. */
int64_t ses_least_updates(const ses_training_options *r, size_t examples, int64_t least);
/* ladder_lm.c: fine-tunes or trains a language model on the training texts, then a classifier that starts
 * from it into dir. Data, and the model of the classifier, are set here; the cost of the first part is added
 * to the row. */
bool ses_ladder_with_lm(ses_ladder *l, const ses_finetune_options *lm, const char *dir,
                        const ses_finetune_options *classifier, ses_err *e);
/* The same with a new LSTM and this loss of the task continue. */
bool ses_ladder_run_lstm(ses_ladder *l, const char *dir, int64_t seed, const char *loss, ses_err *e);
/* Adds the figures of a finished run in dir to row; false: the folder has no score, and nothing is added. */
bool ses_ladder_read_run(const ses_ladder *l, const char *dir, ses_ladder_row *row, double *score);
/* Writes rung.json: costs that all_results.json does not have, added to the row. */
bool ses_ladder_write_extra(const char *dir, double seconds, double joules, double bytes, ses_err *e);
/* Bytes of the files in a model folder that prediction reads; NaN: unknown. */
double ses_ladder_folder_bytes(const char *dir);

#endif
