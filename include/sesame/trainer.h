/* A trainer: a model, batches from a source, an optimizer, a schedule, counters; step by step or a whole run.
 *
 * Everything random is a function of (seed, place in the run): dropout by the tape's key, the order of
 * batches by the source. So a run gives the same bits on any number of threads, and one that was stopped
 * anywhere, between two batches of one update too, goes on from its checkpoint as if nothing had happened.
 *
 * A loss or gradient that is not finite stops the run and names tensor and batch. One thread. */
#ifndef SESAME_TRAINER_H
#define SESAME_TRAINER_H

#include "sesame/batch_source.h"
#include "sesame/model.h"
#include "sesame/optim.h"
#include "sesame/schedule.h"

SES_BEGIN_DECLS

typedef struct ses_trainer ses_trainer;

/* What a batch loses, as a scalar on the tape; NULL with the reason in e, or on the tape. */
typedef ses_tensor *ses_loss_fn(void *ctx, ses_tape *t, const ses_batch *b, ses_err *e);

typedef struct ses_trainer_options {
    /* Both opened for training. The partner is trained along (ELECTRA's generator); NULL: there is none. */
    ses_model *model, *generator;
    /* Parameters trained along, opened for training too: of a loss, of layers behind the model; or NULL. */
    ses_store *extra_params[2];
    ses_batch_source source;
    ses_loss_fn *loss; /* NULL: what the model's heads say */
    void *loss_ctx;

    ses_optim_options optim; /* its ctx must live as long as the trainer */
    ses_layer_groups
        *unfreezing;       /* the ctx of optim's groups by layer: thawed epoch by epoch; NULL: as it is */
    ses_schedule schedule; /* name NULL: constant; total 0: the run's */
    double warmup_ratio;   /* of the run, where schedule.warmup is 0 */
    double max_grad_norm;  /* most gradient norm; 0: none */
    int64_t accumulate;    /* batches an update; 0: 1. An epoch's last update may have fewer */
    double epochs;         /* how long, unless updates says it */
    int64_t updates;
    uint64_t seed;
    bool no_dropout;
    bool recompute;         /* see ses_tape_options */
    double label_smoothing; /* of labels, as the reference does it; 0: none. Of losses of the model's heads */

    /* Of ses_trainer_run. */
    int64_t eval_every; /* updates between evaluations; 0: at each epoch's end, below 0: only at the end */
    double eval_epochs; /* above 0: in place of it, epochs between evaluations, whole or not */
    bool lower_is_better;
    int64_t patience;   /* evaluations without a better one before the run ends; 0: no end */
    double min_delta;   /* a better one is better by this much */
    const char *dir;    /* folder of checkpoints, made if absent and locked; NULL: none are written */
    int64_t save_every; /* updates between checkpoints; 0: at each evaluation, below 0: only when stopped */
    int64_t keep_checkpoints; /* newest checkpoints kept, the best one apart; 0: 2 */
    const char *settings;     /* JSON object; a run is resumed with the same only. NULL: {} */
} ses_trainer_options;

/* Where a run stands. */
typedef struct ses_train_state {
    int64_t epoch, index; /* the next batch */
    int64_t accumulated;  /* batches whose gradients wait for an update */
    int64_t updates, batches, sequences, tokens;
    int64_t evaluated, saved; /* updates at the last of these; -1: never */
    double accumulated_loss;  /* sum over the waiting batches */
    double best;              /* of the metric; NaN: none yet */
    int64_t best_update, bad_evals;
} ses_train_state;

/* What a batch did. */
typedef struct ses_step_result {
    double loss; /* of the batch; where it led to an update, the mean of the update's batches */
    bool updated;
    double grad_norm, lr; /* of the update; the norm before clipping */
    int64_t tokens, sequences;
    double epoch; /* passed, with fraction */
} ses_step_result;

ses_trainer *ses_trainer_new(const ses_trainer_options *o, ses_err *e);
void ses_trainer_free(ses_trainer *t);
bool ses_trainer_step(ses_trainer *t, ses_step_result *out, ses_err *e); /* one batch */
bool ses_trainer_done(const ses_trainer *t);
const ses_train_state *ses_trainer_state(const ses_trainer *t);
int64_t ses_trainer_total_updates(const ses_trainer *t); /* updates of the whole run */
double ses_trainer_epoch(const ses_trainer *t);          /* passed, with fraction */
size_t ses_trainer_tape_bytes(const ses_trainer *t);     /* memory of the tape */
ses_optim *ses_trainer_optim(const ses_trainer *t);

/* An entry of the reference's log_history: members of a JSON object without the braces. */
bool ses_trainer_log(ses_trainer *t, const char *members, ses_err *e);

/* Hooks of a run; each may be NULL. */
typedef struct ses_trainer_hooks {
    void *ctx;
    void (*on_step)(void *ctx, const ses_step_result *s);
    /* Asked before every batch and when an evaluation fails: true saves and ends it. */
    bool (*should_stop)(void *ctx);
    bool (*evaluate)(void *ctx, double *metric, ses_err *e);
    void (*on_saved)(void *ctx, const char *dir);
} ses_trainer_hooks;

typedef enum { SES_RUN_COMPLETE, SES_RUN_STOPPED, SES_RUN_EARLY_STOPPED } ses_run_end;

/* Train to the end. Checkpoints and evaluations as the options say; where both exist, the weights are the
 * best checkpoint's afterwards. Where it cannot be read they are the last, and ses_trainer_restore_error says why. */
bool ses_trainer_run(ses_trainer *t, const ses_trainer_hooks *h, ses_run_end *end, ses_err *e);
const char *ses_trainer_restore_error(const ses_trainer *t); /* NULL: nothing was */

/* Checkpoints: folders checkpoint-UPDATES, each whole or not at all, with a manifest of sizes and hashes. */
bool ses_trainer_save(ses_trainer *t, ses_err *e);

bool ses_trainer_delete_checkpoints(ses_trainer *t, ses_err *e); /* removes every checkpoint of the folder */

/* The newest checkpoint of the folder that is whole. Others found newer are named in `refused` and renamed:
 * checkpoint-UPDATES.damaged. */
typedef struct ses_resume_result {
    bool found;
    char dir[512], skipped[512];
} ses_resume_result;
bool ses_trainer_resume(ses_trainer *t, ses_resume_result *out, ses_err *e);
/* trainer_state.json, in the reference's key names. */
bool ses_trainer_write_state(ses_trainer *t, const char *path, bool overwrite, ses_err *e);
bool ses_trainer_restore_best(ses_trainer *t,
                              ses_err *e); /* the weights of the best checkpoint; true: or none */
const char *ses_trainer_best_dir(const ses_trainer *t); /* NULL: none */

SES_END_DECLS

#endif
