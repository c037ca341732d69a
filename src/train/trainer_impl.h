/* The trainer's struct, shared by trainer.c (steps), trainer_run.c (whole runs) and trainer_checkpoint.c.
 * Models, stores and device are borrowed, the rest is owned. One thread. */
#ifndef SES_TRAIN_TRAINER_IMPL_H
#define SES_TRAIN_TRAINER_IMPL_H

#include "base/dir.h"
#include "base/str.h"
#include "sesame/trainer.h"
#include "tensor/device_impl.h"

enum { SES_MAX_TRAINED = 4 }; /* model, generator, extra_params[2] */

struct ses_trainer {
    ses_trainer_options o;
    ses_model *model[2];
    size_t n_models;
    ses_store *store[SES_MAX_TRAINED]; /* the models' stores first */
    ses_optim *optim[SES_MAX_TRAINED];
    size_t n_stores;
    ses_device *dev;
    ses_tape *tape;
    ses_train_state at;
    int64_t total_updates; /* length of the run */
    int64_t epoch_batches; /* batches of the current epoch */
    double *score;         /* [n_scores] evaluations so far, for asgd's trigger */
    size_t n_scores, cap_scores;
    ses_buf log; /* log_history, one entry per line */
    ses_dir_lock *lock;
    char data_hash[24];              /* hash of the source in hex; "": none */
    char *dir, *settings, *best_dir; /* best_dir: the best checkpoint */
    const ses_trainer_hooks *hooks;  /* during ses_trainer_run */
    ses_err restore_error;           /* why the best weights could not be restored */
};

/* Appends to t->score. */
bool ses_trainer_keep_score(ses_trainer *t, double score, ses_err *e);

/* Creates and locks t->dir on rank 0, and checks that all ranks see it (trainer_checkpoint.c). */
bool ses_trainer_open_dir(ses_trainer *t, ses_err *e);

/* Reads trainer_state.json: fails with SES_EARG if settings, seed or data differ (trainer_state.c). */
bool ses_trainer_read_state(ses_trainer *t, const char *path, ses_err *e);

/* Repeats the gradual unfreezing up to the current epoch of a resumed run. */
bool ses_trainer_restore_unfrozen(ses_trainer *t, ses_err *e);

#endif
