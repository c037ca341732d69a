/* The trainer's struct, shared by trainer.c (steps), trainer_run.c (whole runs) and trainer_checkpoint.c.
 * Models, stores and device are borrowed, the rest is owned. One thread. */
#ifndef SES_TRAIN_TRAINER_IMPL_H
#define SES_TRAIN_TRAINER_IMPL_H

#include "base/dir.h"
#include "base/str.h"
#include "lane_statistics.h"
#include "lanes.h"
#include "sesame/unstable/trainer.h"
#include "tensor/device_impl.h"

enum { SES_MAX_TRAINED = 5 }; /* model, generator, extra_params[2], scores of pruning */

struct ses_trainer {
    ses_trainer_options o;
    ses_model *model[2];
    size_t n_models;
    ses_store *store[SES_MAX_TRAINED]; /* the models' stores first */
    ses_optim *optim[SES_MAX_TRAINED];
    size_t n_stores;
    ses_device *dev;
    ses_tape *tape;
    int rank, ranks;
    ses_lanes *lanes; /* NULL: one lane, so one rank */
    ses_lane_statistics statistics;
    struct ses_update_rows *rows; /* results of the batches of an update; NULL without lanes */
    bool wants_stop, must_stop;   /* this rank wants to stop; one of them did in the last update */
    bool weights_outdated;        /* the f32 values of other ranks: see ses_trainer_gather_weights */
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
    struct ses_pruner *pruner;       /* NULL: no pruning; its scores are the last store, if it has any */
    ses_err restore_error;           /* why the best weights could not be restored */
};

/* Batches of one update, the last one of an epoch excepted. */
int64_t ses_trainer_update_batches(const ses_trainer *t);

/* One batch of an update. */
typedef struct ses_batch_run {
    int64_t index, number; /* in its epoch, in the run; from 0 */
    bool is_first;         /* the gradients are zeroed before it */
    const ses_tape_watch *watch;
    int64_t next_epoch, next_index; /* the batch this rank computes next; next_epoch < 0: none */
} ses_batch_run;

/* The results of a batch. */
typedef struct ses_batch_row {
    double loss;
    int64_t tokens, sequences;
    int64_t predictions; /* its weight with weight_by_tokens; else 1 */
    double flops;
} ses_batch_row;

/* Forward and backward pass: adds to the gradients, times row->predictions. A loss that is not finite does
 * not fail. The error names the batch. */
bool ses_trainer_run_batch(ses_trainer *t, const ses_batch_run *r, ses_batch_row *row, ses_err *e);

/* Adds the position to an error: "update 12, epoch 2, batch 7 (lines ...)". */
bool ses_trainer_wrap_batch(const ses_trainer *t, int64_t index, ses_err *e);

/* Batches of the current epoch, begin .. end - 1. */
typedef struct ses_batch_range {
    int64_t begin, end;
} ses_batch_range;

/* Fails and names the parameter nearest to the loss with a weight, or else a gradient, that is not finite
 * (not_finite.c). Then repeats these batches, all in the current update, and names the layer whose output or
 * gradient is the first that is not finite. All ranks call it and fail with the same message. */
bool ses_trainer_fail_not_finite(ses_trainer *t, const char *quantity, double value, ses_batch_range batches,
                                 ses_err *e);

/* The optimizers' step: the gradients of `batches` are divided by `weight`, the sum of the batches' weights,
 * and clipped. Sets lr, loss and grad_norm of out, whose norm and loss are sums on entry. */
bool ses_trainer_update(ses_trainer *t, double weight, ses_batch_range batches, ses_step_result *out,
                        ses_err *e);

/* A step with lanes: a whole update. */
bool ses_trainer_open_lanes(ses_trainer *t, ses_err *e);
void ses_trainer_close_lanes(ses_trainer *t);
bool ses_trainer_step_lanes(ses_trainer *t, ses_step_result *out, ses_err *e);

/* Appends to t->score. */
bool ses_trainer_keep_score(ses_trainer *t, double score, ses_err *e);

/* Creates and locks t->dir on rank 0, and checks that all ranks see it (trainer_checkpoint.c). */
bool ses_trainer_open_dir(ses_trainer *t, ses_err *e);

/* Reads trainer_state.json: fails with SES_EARG if settings, seed or data differ (trainer_state.c). */
bool ses_trainer_read_state(ses_trainer *t, const char *path, ses_err *e);

/* Repeats the gradual unfreezing up to the current epoch of a resumed run. */
bool ses_trainer_restore_unfrozen(ses_trainer *t, ses_err *e);

#endif
