/* The trainer's inside, shared by trainer.c (steps), run.c (whole runs) and checkpoint.c. */
#ifndef SES_TRAIN_TRAINER_IMPL_H
#define SES_TRAIN_TRAINER_IMPL_H

#include "base/dir.h"
#include "base/str.h"
#include "sesame/trainer.h"
#include "tensor/device_impl.h"

enum { SES_TRAINED = 4 }; /* a model, its partner, and what else learns along */

struct ses_trainer {
    ses_trainer_options o;
    ses_model *model[2];
    size_t n_models;
    ses_store *store[SES_TRAINED]; /* the models' first */
    ses_optim *optim[SES_TRAINED];
    size_t n;
    ses_device *dev;
    ses_tape *tape;
    ses_train_state at;
    int64_t total, count; /* updates of the run, batches of the epoch at.epoch */
    ses_buf log;          /* entries, one a line */
    ses_dir_lock *lock;
    char data[24];                   /* the source's hash, in hex; empty: it has none */
    char *dir, *settings, *best_dir; /* best_dir: a folder of dir */
    ses_err lost;                    /* why the best weights could not be read at the end */
};

bool ses_trainer_restore_unfrozen(ses_trainer *t, ses_err *e); /* what moves in the epoch of a resumed run */

#endif
