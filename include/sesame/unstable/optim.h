/* Optimizers: one step over the parameters of a store opened for training, by their gradients.
 *
 * A parameter's group sets its learning-rate scale and weight decay, or freezes it. The optimizer's state
 * lies on the store's device and can be listed, so that a checkpoint can store it.
 *
 * Ownership: ses_optim_new borrows the store, which outlives the optimizer; ses_optim_free frees the state.
 * Threads: an optimizer and its store belong to one thread at a time. Failure: false or NULL, reason in e. */
#ifndef SESAME_OPTIM_H
#define SESAME_OPTIM_H

#include "sesame/unstable/store.h"

SES_BEGIN_DECLS

typedef struct ses_optim ses_optim;

enum { SES_MAX_GROUPS = 64 };

typedef struct ses_param_group {
    double lr_scale, weight_decay; /* lr_scale: factor of the learning rate */
} ses_param_group;

typedef struct ses_optim_options {
    const char *name; /* "adamw", "sgd", ... (optims.def, ses_optim_name); NULL: adamw */
    double lr, beta1, beta2, eps;
    bool no_bias_correction; /* omit Adam's bias correction, as BERT's original optimizer did */

    double momentum, dampening; /* sgd, muon (momentum) */
    bool nesterov;

    /* adafactor, named as in transformers; eps is eps[0], eps_scale eps[1]; beta1 0: no first moment.
     * relative_step: the learning rate follows from the step; lr is ignored. */
    double eps_scale, clip_threshold, decay_rate;
    bool scale_parameter, relative_step, warmup_init;

    double accumulator; /* adagrad: sum of squares before the first step */

    /* asgd: decay, power of the rate's decay, steps before the average (see optim_asgd.c).
     * average_trigger: the average starts when the trainer's evaluation is worse than the best one before the
     * last N (NT-ASGD; AWD-LSTM: 5). 0: at the first step. */
    double asgd_lambda, asgd_alpha, asgd_t0;
    int64_t average_trigger;

    double ema_decay; /* decay of an exponential moving average of the weights; 0: none */

    ses_param_group group[SES_MAX_GROUPS];
    /* The group of a parameter; negative: frozen. NULL: all in group 0. ctx must outlive the optimizer. */
    int (*group_of)(void *ctx, const ses_param *p);
    void *ctx;

    /* muon, with momentum and nesterov; AdamW with lr and the Adam options trains all parameters except
     * hidden matrices. muon_ratio: factor of the learning rate of hidden matrices; 0: 1. muon_original:
     * updates are scaled by sqrt(max(1, outputs / inputs)) instead of 0.2 sqrt(max(outputs, inputs)).
     * muon_whole: q, k and v, or gate and value, in one matrix are orthogonalized together. */
    double muon_ratio;
    bool muon_original, muon_whole;
} ses_optim_options;

/* Fills out with the defaults of the optimizer `name` (NULL: adamw): one group, lr 1e-3, no weight decay.
 * Fails with SES_EARG on an unknown name. */
bool ses_optim_defaults(const char *name, ses_optim_options *out, ses_err *e);

/* Lists the optimizers: the name of the i-th, NULL past the last. description may be NULL. Static strings. */
const char *ses_optim_name(size_t i, const char **description);

/* Makes an optimizer for the trainable parameters of s, which must be open for training. Allocates the state
 * and sets requires_grad of every parameter by its group. The options are copied. */
ses_optim *ses_optim_new(ses_store *s, const ses_optim_options *options, ses_err *e);
void ses_optim_free(ses_optim *o); /* o may be NULL */

/* Applies one step. grad_scale multiplies the gradients (clipping, mean over accumulated batches). lr < 0:
 * the options' lr. Cannot fail. */
void ses_optim_step(ses_optim *o, double lr, double grad_scale);
int64_t ses_optim_steps(const ses_optim *o); /* steps done */

/* Sets the momentum of the following steps: sgd's momentum, Adam's beta1; other optimizers ignore it. sgd
 * without momentum at its creation has no buffer and stays without. */
void ses_optim_set_momentum(ses_optim *o, double momentum);

/* Swaps the weights with their average (EMA, asgd); a second call restores them. Does nothing without an
 * average or before its first step. */
void ses_optim_swap_ema(ses_optim *o);

/* asgd with average_trigger: the average starts after `steps` steps; < 0: not yet. */
void ses_optim_average_from(ses_optim *o, int64_t steps);

/* Calls group_of again for every parameter, to freeze or unfreeze. State of a newly trained parameter is
 * allocated and starts at zero. Fails if memory runs out or a group is out of range. */
bool ses_optim_regroup(ses_optim *o, ses_err *e);

/* The state as buffers, for checkpoints. A resumed optimizer needs these and ses_optim_set_steps. In
 * distributed training every rank lists all buffers in the same order and holds a slice of each. */
typedef struct ses_optim_state {
    const char *param, *kind; /* "layer.0.ffn.up.weight", "m" */
    ses_real *data; /* [n], on the device; borrowed and writable; NULL: this rank holds no element */
    int64_t n;
    int64_t offset, total; /* data is elements offset .. offset + n - 1 of `total`; one rank: all of them */
} ses_optim_state;
size_t ses_optim_state_count(const ses_optim *o);
ses_optim_state ses_optim_state_at(const ses_optim *o, size_t i); /* i < ses_optim_state_count */
void ses_optim_set_steps(ses_optim *o, int64_t steps);

/* A group_of: 0 for parameters with weight decay (matrices), 1 for parameters without (biases, norms). */
int ses_group_by_decay(void *ctx, const ses_param *p);

/* Groups by layer. Level 0 is the embeddings, levels 1 to `layers` are the layers, level layers + 1 is
 * everything on top. Each level has two groups, with and without weight decay. */
typedef struct ses_layer_groups {
    int64_t layers;
    int64_t frozen;     /* levels below it are frozen */
    int64_t min_frozen; /* gradual unfreezing: levels that stay frozen */
} ses_layer_groups;

/* A group_of; ctx is a ses_layer_groups. */
int ses_group_by_layer(void *ctx, const ses_param *p);
/* The level of a parameter. */
int64_t ses_param_level(const ses_param *p, int64_t layers);
/* Levels frozen in an epoch by ULMFiT's gradual unfreezing: epoch 0 trains the top level only, each later
 * epoch one level more. */
int64_t ses_layer_groups_frozen_at(const ses_layer_groups *l, int64_t epoch);
/* Sets o's groups, group_of and ctx: level l has the learning-rate scale layer_decay^(layers + 1 - l), as
 * ULMFiT's discriminative fine-tuning. ctx is borrowed. Fails with SES_EARG if there are too many layers. */
bool ses_optim_set_layer_groups(ses_optim_options *o, ses_layer_groups *ctx, double weight_decay,
                                double layer_decay, ses_err *e);

/* The factor min(1, max_norm / (norm + 1e-6)) of torch.nn.utils.clip_grad_norm_; 1 if max_norm is 0. */
double ses_clip_scale(double norm, double max_norm);

SES_END_DECLS

#endif
