/* Options of commands that train: a command puts a ses_train_args into its args and includes the tables
 * below, or single options by macro. Strings are borrowed from argv. */
#ifndef SES_CLI_TRAIN_ARGS_H
#define SES_CLI_TRAIN_ARGS_H

#include "cli/energy_options.h"
#include "cli/option_parser.h"
#include "sesame/training.h"

typedef struct ses_train_args {
    ses_training_options run;
    int optimizer, schedule; /* indices of their names */
    ses_energy_args energy;
} ses_train_args;

/* a->run with optimizer, schedule and energy set. */
ses_training_options ses_train_args_options(const ses_train_args *a);

/* Tables for a ses_train_args. */
extern const ses_opt_table ses_train_batch_options;     /* batch-size, tokens-per-batch, accumulate */
extern const ses_opt_table ses_train_optimizer_options; /* optimizer, schedule */
extern const ses_opt_table ses_train_update_options;    /* weight-decay, clip, recompute */
extern const ses_opt_table ses_train_log_options;       /* log, tensorboard */
extern const ses_opt_table ses_train_resume_options;    /* resume, overwrite */
/* For a ses_teacher_options. */
extern const ses_opt_table ses_teacher_option_table;

/* Single options. field: a ses_train_args. */
#define SES_OPT_STEPS(struct_, field)                                                                   \
    {                                                                                                   \
        .name = "steps", .type = SES_OPT_INT, .offset = offsetof(struct_, field.run.steps), .def = "0", \
        .min = 0, .max = 1e12, .help = "updates, instead of epochs; 0: use epochs"                      \
    }
#define SES_OPT_SEED(struct_, field)                                                                     \
    {                                                                                                    \
        .name = "seed", .letter = 's', .type = SES_OPT_INT, .offset = offsetof(struct_, field.run.seed), \
        .def = "42", .min = 0, .max = 9e15, .help = "random seed"                                        \
    }
#define SES_OPT_LR(struct_, field, default_)                                                          \
    {                                                                                                 \
        .name = "lr", .letter = 'l', .type = SES_OPT_REAL, .offset = offsetof(struct_, field.run.lr), \
        .def = default_, .min = 0, .max = 100, .help = "peak learning rate"                           \
    }
#define SES_OPT_WARMUP(struct_, field, default_)                                              \
    {                                                                                         \
        .name = "warmup", .letter = 'w', .type = SES_OPT_REAL,                                \
        .offset = offsetof(struct_, field.run.warmup), .def = default_, .min = 0, .max = 1e9, \
        .help = "warmup updates; below 1: fraction of the run"                                \
    }

#endif
