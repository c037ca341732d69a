/* What an optimizer is: what it keeps for a parameter, and its step. One file optim_NAME.c each. */
#ifndef SES_TRAIN_OPTIM_KIND_H
#define SES_TRAIN_OPTIM_KIND_H

#include "sesame/optim.h"
#include "tensor/device_impl.h"

/* What a kind may keep for a parameter; and the moving average, which is any kind's. */
enum { SES_OPTIM_MAX_STATE = 3, SES_OPTIM_BUFFERS = SES_OPTIM_MAX_STATE + 1 };

/* A buffer kept for a parameter. */
typedef struct ses_optim_buffer {
    const char *kind;
    int64_t n;
} ses_optim_buffer;

/* One parameter's step. */
typedef struct ses_optim_call {
    ses_device *dev;
    const ses_optim_options *opt;
    ses_tensor *w;
    ses_real *const *state;  /* in the order of `keeps`; NULL where it was 0 long */
    ses_real *scratch;       /* as long as the largest parameter, of kinds that want one */
    int64_t step;            /* of this parameter, from 1 */
    double lr, decay, scale; /* of this parameter; scale is the gradient's */
} ses_optim_call;

typedef struct ses_optim_kind {
    const char *name, *what;
    ses_optim_options usual;
    bool scratch;
    void (*keeps)(const ses_optim_options *o, const ses_tensor *w, ses_optim_buffer b[SES_OPTIM_BUFFERS]);
    void (*step)(const ses_optim_call *c);          /* of one parameter; or, all at once, */
    void (*all)(const ses_optim_call *c, size_t n); /* which also makes the copies of narrow reals */
} ses_optim_kind;

#define SES_OPTIM(name) extern const ses_optim_kind ses_optim_##name;
#include "optims.def"
#undef SES_OPTIM

/* Shared by the Adams: both moments; the numbers of a step. */
void ses_adam_keeps(const ses_optim_options *o, const ses_tensor *w, ses_optim_buffer b[SES_OPTIM_BUFFERS]);
ses_adamw ses_adam_numbers(const ses_optim_call *c);
void ses_adam_all(const ses_optim_call *c, size_t n);

#endif
