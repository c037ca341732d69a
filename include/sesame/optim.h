/* AdamW over the parameters of a store opened for training: decoupled weight decay, per parameter group. */
#ifndef SESAME_OPTIM_H
#define SESAME_OPTIM_H

#include "sesame/store.h"

typedef struct ses_optim ses_optim;

/* What a group of parameters does differently. */
typedef struct ses_group {
    double lr_scale, decay;
} ses_group;

typedef struct ses_optim_options {
    double lr, beta1, beta2, eps;
    bool no_correction; /* leave Adam's bias correction out, as BERT's own optimizer did */
    ses_group group[4];
    int (*group_of)(void *ctx, const ses_param *p); /* which group; below 0: frozen. NULL: all in group 0 */
    void *ctx;
} ses_optim_options;

ses_optim *ses_optim_new(ses_store *s, const ses_optim_options *options, ses_err *e);
void ses_optim_free(ses_optim *o);
void ses_optim_step(ses_optim *o, double lr); /* by the store's gradients; lr < 0: the one of the options */
int64_t ses_optim_steps(const ses_optim *o);

/* For group_of: 0 where decay is the custom (matrices), 1 where it is not (biases and norms). */
int ses_group_by_decay(void *ctx, const ses_param *p);

#endif
