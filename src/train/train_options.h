/* Options of training runs: a ses_train_args is part of another struct of options, whose table includes the
 * tables below, or single options by macro. Strings are borrowed. */
#ifndef SES_TRAIN_TRAIN_OPTIONS_H
#define SES_TRAIN_TRAIN_OPTIONS_H

#include "sesame/json.h"
#include "sesame/training.h"
#include "train/energy/energy_options.h"

typedef struct ses_train_args {
    ses_training_options run;
    int optimizer, schedule;              /* indices of their names */
    int loss_mean, gradients, muon_scale; /* indices of the options' choices */
    bool has_epochs, has_lr;              /* --epochs, --lr were used in this call */
    ses_energy_args energy;
} ses_train_args;

/* a->run with optimizer, schedule and energy set. */
ses_training_options ses_train_args_options(const ses_train_args *a);

/* Sets the optimizer's name, learning rate and options, but not its groups. */
bool ses_training_optimizer(const ses_training_options *r, ses_optim_options *o, ses_err *e);
/* Sets o's schedule and warmup. */
bool ses_training_schedule(const ses_training_options *r, ses_trainer_options *o, ses_err *e);
/* Lanes and the kind of mean, as members of a JSON object; none for one lane and the default mean. */
void ses_training_put_lanes(const ses_training_options *r, ses_json_writer *w);
/* Settings of optimizer and schedule that a resumed run must share, as members of a JSON object. */
void ses_training_put_optimizer(const ses_training_options *r, ses_json_writer *w);

/* Options of every training run, for a ses_train_args; epochs, lr and warmup have a default per command. */
extern const ses_opt_table ses_train_options;
/* For a ses_teacher_options, without --teacher. */
extern const ses_opt_table ses_teacher_option_table;
/* For a ses_pruning_options (prune/prune_options.c). */
extern const ses_opt_table ses_pruning_option_table;

/* Single options. field: a ses_train_args. */
#define SES_OPT_OUTPUT(struct_, field)                                                                 \
    SES_OPT_TEXT(struct_, field.run.output, "output", "OUT", "folder of the model, created if absent", \
                 .letter = 'o', .required = true, .alias = "to")
#define SES_OPT_EPOCHS(struct_, field, default_, help_)                                       \
    SES_OPT_REAL(struct_, field.run.epochs, "epochs", default_, 0, 1e6, help_, .letter = 'e', \
                 .was_set = offsetof(struct_, field.has_epochs))
#define SES_OPT_LR(struct_, field, default_)                                                         \
    SES_OPT_REAL(struct_, field.run.lr, "lr", default_, 0, 100, "peak learning rate", .letter = 'l', \
                 .was_set = offsetof(struct_, field.has_lr))
#define SES_OPT_WARMUP(struct_, field, default_)                        \
    SES_OPT_REAL(struct_, field.run.warmup, "warmup", default_, 0, 1e9, \
                 "warmup updates; below 1: fraction of the run", .letter = 'w', .group = "optimizer")

#endif
