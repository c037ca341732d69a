/* Optimizers: one step over the parameters of a store opened for training, by its gradients.
 *
 * What a parameter does differently (its rate, its decay, whether it moves at all) is its group's. State lies
 * on the store's device; it can be listed, so that a checkpoint can keep it. One thread. */
#ifndef SESAME_OPTIM_H
#define SESAME_OPTIM_H

#include "sesame/store.h"

SES_BEGIN_DECLS

typedef struct ses_optim ses_optim;

enum { SES_MAX_GROUPS = 64 };

/* What a group of parameters does differently. */
typedef struct ses_param_group {
    double lr_scale, weight_decay;
} ses_param_group;

typedef struct ses_optim_options {
    const char *name; /* of optims.def: "adamw", "bert_adam", "sgd", "adafactor", "lamb"; NULL: adamw */
    double lr, beta1, beta2, eps;
    bool no_bias_correction; /* leave Adam's bias correction out, as BERT's own optimizer did */

    double momentum, dampening; /* of sgd */
    bool nesterov;

    /* Of adafactor, in the reference's names; eps is its first epsilon, beta1 0 means no first moment.
     * relative_step: the rate is made from the step, and lr is not asked. */
    double eps_scale, clip_threshold, decay_rate;
    bool scale_parameter, relative_step, warmup_init;

    double ema_decay; /* memory of a moving average of the weights, kept beside them; 0: none */

    ses_param_group group[SES_MAX_GROUPS];
    int (*group_of)(void *ctx, const ses_param *p); /* which group; below 0: frozen. NULL: all in group 0 */
    void *ctx;
} ses_optim_options;

/* The usual numbers of an optimizer: one group, rate 1e-3, no decay. False: there is none of this name. */
bool ses_optim_defaults(const char *name, ses_optim_options *out, ses_err *e);
const char *ses_optim_name(size_t i, const char **what); /* the i-th of optims.def; NULL past the end */

ses_optim *ses_optim_new(ses_store *s, const ses_optim_options *options, ses_err *e);
void ses_optim_free(ses_optim *o);

/* One step by the store's gradients, each times grad_scale (clipping, the mean over accumulated batches).
 * lr < 0: the one of the options. */
void ses_optim_step(ses_optim *o, double lr, double grad_scale);
int64_t ses_optim_steps(const ses_optim *o);

/* Weights and their moving average change places; once more, and they are as they were. Without an average
 * nothing happens. */
void ses_optim_swap_ema(ses_optim *o);

/* Asks group_of again for every parameter: what was frozen may begin to move, and the other way round. */
bool ses_optim_regroup(ses_optim *o, ses_err *e);

/* What a resumed run needs besides the steps done: buffers, each with a name ("layer.0.ffn.up.weight.m"). */
typedef struct ses_optim_state {
    const char *param, *kind; /* "layer.0.ffn.up.weight", "m" */
    ses_real *data;           /* on the device */
    int64_t n;
} ses_optim_state;
size_t ses_optim_state_count(const ses_optim *o);
ses_optim_state ses_optim_state_at(const ses_optim *o, size_t i);
void ses_optim_set_steps(ses_optim *o, int64_t steps);

/* For group_of: 0 where decay is the custom (matrices), 1 where it is not (biases and norms). */
int ses_group_by_decay(void *ctx, const ses_param *p);

/* For group_of, with a ses_layer_groups as ctx: two groups a level, as above. Level 0 is the embeddings, 1 to
 * `layers` the layers, the last everything on top. Levels below `frozen` do not move. */
typedef struct ses_layer_groups {
    int64_t layers, frozen;
    int64_t min_frozen; /* of gradual unfreezing: levels that stay frozen */
} ses_layer_groups;
/* ULMFiT's gradual unfreezing: in epoch 0 the top level moves alone, in each one after it one more. */
int64_t ses_layer_groups_frozen_at(const ses_layer_groups *l, int64_t epoch);
int64_t ses_param_level(const ses_param *p, int64_t layers);
int ses_group_by_layer(void *ctx, const ses_param *p);
/* Fills the groups for it: level l has rate fall^(layers + 1 - l), as ULMFiT's discriminative rates. */
bool ses_optim_set_layer_groups(ses_optim_options *o, ses_layer_groups *ctx, double decay, double fall,
                                ses_err *e);

/* Factor that brings gradients of this norm down to `most`, as the reference counts it; 1 where most is 0. */
double ses_clip_scale(double norm, double most);

SES_END_DECLS

#endif
