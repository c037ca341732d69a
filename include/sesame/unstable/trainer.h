/* A trainer: a model, a batch source, an optimizer, a schedule and counters. Trains step by step
 * (ses_trainer_step) or a whole run with evaluations and checkpoints (ses_trainer_run).
 *
 * All randomness is a function of the seed and the position in the run: dropout by the tape's key, the
 * order of batches by the source. So a run gives the same bits on any number of threads, and a run stopped
 * anywhere, even between two batches of one update, continues from its checkpoint with the same bits.
 *
 * Ownership: models, stores, device and contexts in the options are borrowed and outlive the trainer;
 * strings are copied. Getters return borrowed pointers. Threads: a trainer belongs to one thread at a time.
 * Failure: false or NULL, reason in e. A loss or gradient that is not finite fails a step; the message
 * names the tensor, the batch and the first layer that computed such a number. */
#ifndef SESAME_TRAINER_H
#define SESAME_TRAINER_H

#include "sesame/model.h"
#include "sesame/unstable/batch_source.h"
#include "sesame/unstable/comm.h"
#include "sesame/unstable/optim.h"
#include "sesame/unstable/schedule.h"

SES_BEGIN_DECLS

typedef struct ses_trainer ses_trainer;

/* The loss of a batch, as a scalar on the tape. NULL: failed, with the reason in e or on the tape. */
typedef ses_tensor *ses_loss_fn(void *ctx, ses_tape *t, const ses_batch *b, ses_err *e);

/* Pruning during training: blocks of the weights inside the layers are set to zero, more and more of them
 * (docs/COMPRESSION.md). Strings are borrowed until the trainer is freed. */
typedef struct ses_pruning_options {
    const char *criterion; /* "movement", "soft-movement", "magnitude"; NULL: no pruning */
    /* Shape of a block: "32x32", outputs x inputs; "row": an output; "column": an input; "unit": a head of
     * attention, a row of the feed-forward block. NULL: 32x32 */
    const char *block;
    double keep; /* fraction of the blocks that is kept, of each matrix; above 0, at most 1 */
    /* Updates before the kept fraction begins to fall from 1 to `keep`, and after it has; below 1: fractions
     * of the run. */
    double warmup, cooldown;
    double score_lr;           /* movement: learning rate of the scores, with the schedule of the run */
    double threshold, penalty; /* soft-movement, instead of keep: smallest sigmoid of a kept score; weight */
} ses_pruning_options;

/* movement's settings: 32x32, warmup 0.1, cooldown 0.3, score_lr 0.01, threshold 0.1, penalty 1; criterion
 * NULL and keep 0. A value; cannot fail. */
ses_pruning_options ses_pruning_defaults(void);

typedef struct ses_trainer_options {
    ses_model *model;     /* opened for training */
    ses_model *generator; /* ELECTRA's generator, trained jointly and opened for training; NULL: none */
    /* Additional trainable parameters (of a loss, of layers after the model), opened for training; or NULL.
     */
    ses_store *extra_params[2];
    ses_batch_source source;
    ses_loss_fn *loss; /* NULL: the loss of the model's heads */
    void *loss_ctx;

    ses_optim_options optim;      /* its ctx must outlive the trainer */
    ses_layer_groups *unfreezing; /* optim.ctx, unfrozen one level per epoch; NULL: no gradual unfreezing */
    ses_schedule schedule;        /* name NULL: constant; total 0: the updates of the run */
    double warmup_ratio;          /* fraction of the run, if schedule.warmup is 0 */
    double max_grad_norm;         /* gradient clipping; 0: none */
    int64_t accumulate; /* batches per update and lane; 0: 1. An epoch's last update may have fewer */
    /* Distributed training. An update sums lanes x accumulate batches: lane i takes the i-th run of
     * `accumulate` batches, and the sums of the lanes are added by a fixed binary tree. Each rank computes
     * consecutive lanes, so the result depends on `lanes`, not on the number of ranks. A step is an update
     * if lanes is above 1. */
    ses_comm *comm; /* NULL: one rank */
    int64_t lanes;  /* at least the number of ranks; 0: the number of ranks */
    /* Weights each batch by its number of predictions, as one large batch would; false: the mean of the
     * batches' mean losses, as in transformers. */
    bool weight_by_tokens;
    /* The number of predictions whose mean `loss` is, for weight_by_tokens; ctx: loss_ctx. Negative: the loss
     * is not such a mean. NULL: unknown if loss is set, else the labels of the model's first head. */
    int64_t (*predictions)(void *ctx, const ses_batch *b);
    /* Gradients are sent in buckets of this many elements; 0: 6,553,600 (26 MB). The bits are the same. */
    int64_t bucket;
    /* Rounds gradients to bf16 before they are sent to another rank: half the bytes. The ranks still agree,
     * but the result depends on their number: sums inside a rank are not rounded. No effect on one rank. */
    bool comm_bf16;
    bool no_overlap; /* send gradients after the backward pass, not during it. The bits are the same */
    double epochs;   /* length of the run, if updates is 0 */
    int64_t updates; /* length of the run in optimizer steps; 0: epochs */
    uint64_t seed;
    bool no_dropout;
    bool recompute;         /* gradient checkpointing, see ses_tape_options */
    double label_smoothing; /* as in transformers; 0: none. Only if loss is NULL */
    /* Weights of the labels in the mean, as `weight` of PyTorch's CrossEntropyLoss: sum(w nll) / sum(w) over
     * a batch. Borrowed, one per label of the model. NULL: equal. Only if loss is NULL, without smoothing. */
    const double *class_weights;

    /* ses_trainer_run only: */
    int64_t eval_every; /* updates between evaluations; 0: at the end of each epoch, < 0: only at the end */
    double eval_epochs; /* > 0: epochs between evaluations, possibly fractional; replaces eval_every */
    bool lower_is_better;
    bool keep_last;   /* the last weights are the result: evaluations select no best checkpoint */
    int64_t patience; /* early stopping: evaluations without improvement; 0: off */
    double min_delta; /* smallest change of the metric that counts as an improvement */
    const char *dir;  /* folder of checkpoints, created if absent and locked; NULL: no checkpoints */
    /* Updates between checkpoints; 0: at each evaluation, due by eval_every also if evaluate is NULL; < 0:
     * only when stopped and at the end. */
    int64_t save_every;
    int64_t keep_checkpoints; /* number of newest checkpoints kept, besides the best one; 0: 2 */
    const char *settings;     /* JSON object; resuming requires equal settings. NULL: {} */
    /* Prunes `model`; one rank. Evaluations select a best checkpoint once the kept fraction is final. */
    ses_pruning_options pruning;
} ses_trainer_options;

/* The position of a run. */
typedef struct ses_train_state {
    int64_t epoch, index;                        /* next batch */
    int64_t accumulated;                         /* batches accumulated since the last update */
    int64_t updates, batches, sequences, tokens; /* done so far */
    int64_t evaluated, saved;                    /* `updates` at the last evaluation, checkpoint; -1: none */
    double accumulated_loss; /* sum over the accumulated batches, times their predictions if weighted */
    double best;             /* best metric; NaN: none yet */
    int64_t best_update, bad_evals;  /* its update, or -1; evaluations since without improvement */
    int64_t accumulated_predictions; /* predictions of the accumulated batches, if weighted by them */
    int64_t average_from;            /* `updates` when asgd's trigger started its average; 0: not yet */
    int64_t decays, decay_evals;     /* schedule plateau: decays; bad evaluations since the last one */
    double flops; /* FLOPs of the models, counted as in docs/RUNS.md; of a resumed older run, since then */
} ses_train_state;

/* The result of one batch. */
typedef struct ses_step_result {
    double loss;          /* batch loss; if updated, the mean over the update's batches */
    bool updated;         /* the batch completed an update */
    double grad_norm, lr; /* if updated; the norm before clipping */
    int64_t tokens, sequences;
    double epoch; /* epochs done, with fraction */
    double flops; /* forward and backward passes of the models */
} ses_step_result;

/* Makes a trainer and its optimizers. Creates and locks dir if set; it does not read checkpoints, see
 * ses_trainer_resume. Fails with SES_EARG if a model is not open for training, the models are on different
 * devices or the run has 0 updates. */
ses_trainer *ses_trainer_new(const ses_trainer_options *o, ses_err *e);
void ses_trainer_free(ses_trainer *t); /* t may be NULL */

/* Trains one batch: forward, backward and, if due, an optimizer step; with more than one lane, the batches of
 * one update: `accumulated` stays 0, and `out` has their sums and means. On failure the state is that
 * before the batch, but gradients may have been added: resume from a checkpoint. */
bool ses_trainer_step(ses_trainer *t, ses_step_result *out, ses_err *e);

bool ses_trainer_done(const ses_trainer *t); /* all updates are done */
const ses_train_state *ses_trainer_state(const ses_trainer *t);
int64_t ses_trainer_total_updates(const ses_trainer *t);
double ses_trainer_epoch(const ses_trainer *t);      /* epochs done, with fraction */
size_t ses_trainer_tape_bytes(const ses_trainer *t); /* memory of activations */
ses_optim *ses_trainer_optim(const ses_trainer *t);  /* the model's */
/* Pruning: the fraction of the pruned weights that is kept now. NaN without pruning. */
double ses_trainer_kept(const ses_trainer *t);
/* Evaluations select the best checkpoint: not while the kept fraction of pruning still falls. */
bool ses_trainer_selects_best(const ses_trainer *t);

/* Distributed training. All ranks call these together; with one rank they do nothing but the swap.
 *
 * On a device with bf16 activations the f32 weights that a rank does not own are outdated during training:
 * ses_trainer_gather_weights makes them current, e.g. before they are saved or evaluated in f32. On other
 * devices they always are. ses_trainer_swap_average is ses_optim_swap_ema of the model's optimizer, and
 * sends the weights to all ranks. */
bool ses_trainer_gather_weights(ses_trainer *t, ses_err *e);
bool ses_trainer_swap_average(ses_trainer *t, ses_err *e);

/* Appends an entry to log_history of trainer_state.json (transformers' format). members: the members of a
 * JSON object without the braces. Fails if memory runs out. */
bool ses_trainer_log(ses_trainer *t, const char *members, ses_err *e);

/* Callbacks of ses_trainer_run, on its thread; each may be NULL. */
typedef struct ses_trainer_hooks {
    void *ctx;
    void (*on_step)(void *ctx, const ses_step_result *s); /* after each batch */
    /* Called before each batch and after a failed evaluation. True: save a checkpoint and end the run. */
    bool (*should_stop)(void *ctx);
    /* Evaluates the model: sets *metric, or NaN for no "best" checkpoint. False fails the run. */
    bool (*evaluate)(void *ctx, double *metric, ses_err *e);
    /* Writes further files into dir, a checkpoint that is being saved; none may start with '.'. Called on all
     * ranks; dir is NULL except on rank 0. */
    bool (*add_files)(void *ctx, const char *dir, ses_err *e);
    void (*on_saved)(void *ctx, const char *dir); /* after each checkpoint */
} ses_trainer_hooks;

typedef enum {
    SES_RUN_COMPLETE,      /* all updates done */
    SES_RUN_STOPPED,       /* by should_stop; ses_trainer_resume continues */
    SES_RUN_EARLY_STOPPED, /* by patience */
    SES_RUN_WAS_COMPLETE   /* fine-tuning, pretraining: resumed, but its results exist; nothing was trained */
} ses_run_end;

/* Trains to the end, with evaluations and checkpoints as the options set them. If both exist, the weights of
 * the best checkpoint are restored at the end; if that fails, the last weights stay and
 * ses_trainer_restore_error returns the reason. h must not be NULL. */
bool ses_trainer_run(ses_trainer *t, const ses_trainer_hooks *h, ses_run_end *end, ses_err *e);
const char *ses_trainer_restore_error(const ses_trainer *t); /* NULL: no error */

/* Writes the checkpoint dir/checkpoint-UPDATES atomically, with a manifest of sizes and hashes, and deletes
 * superseded ones. Fails with SES_EARG without a dir. */
bool ses_trainer_save(ses_trainer *t, ses_err *e);

/* Fails with SES_EIO if the file system of dir has less free space than the run needs: an estimate of its
 * checkpoints and the final model. evaluates: ses_trainer_run gets an `evaluate` hook, so a best checkpoint
 * is kept. True without a dir, or if the free space is unknown. */
bool ses_trainer_check_disk(const ses_trainer *t, bool evaluates, ses_err *e);

/* Deletes every checkpoint in dir. */
bool ses_trainer_delete_checkpoints(ses_trainer *t, ses_err *e);

typedef struct ses_resume_result {
    bool found;        /* a checkpoint was loaded */
    char dir[512];     /* its folder */
    char skipped[512]; /* newer damaged checkpoints and why, "" if none */
} ses_resume_result;

/* Loads the newest intact checkpoint in dir. Newer damaged ones are renamed to checkpoint-UPDATES.damaged.
 * If dir has no checkpoint, found is false. Fails with SES_EARG if seed, settings or data differ from the
 * checkpoint's, with SES_EFORMAT if all checkpoints are damaged. */
bool ses_trainer_resume(ses_trainer *t, ses_resume_result *out, ses_err *e);

/* Writes trainer_state.json, with transformers' keys. overwrite: replace an existing file. */
bool ses_trainer_write_state(ses_trainer *t, const char *path, bool overwrite, ses_err *e);

/* Restores the weights of the best checkpoint; true if there is none. */
bool ses_trainer_restore_best(ses_trainer *t, ses_err *e);
const char *ses_trainer_best_dir(const ses_trainer *t); /* its folder; NULL: none */

SES_END_DECLS

#endif
