/* Interface of an optimizer kind: the state it keeps for a parameter, and its step. One file optim_NAME.c
 * each. ses_optim owns state and scratch. One thread. */
#ifndef SES_TRAIN_OPTIM_KIND_H
#define SES_TRAIN_OPTIM_KIND_H

#include "sesame/unstable/optim.h"
#include "tensor/device_impl.h"

/* State buffers of a parameter: up to SES_OPTIM_MAX_STATE of the kind, then the moving average. */
enum { SES_OPTIM_MAX_STATE = 3, SES_OPTIM_BUFFERS = SES_OPTIM_MAX_STATE + 1 };

typedef struct ses_optim_buffer {
    const char *kind; /* name in checkpoints */
    int64_t n;        /* elements; 0: not used */
} ses_optim_buffer;

/* One parameter's step. */
typedef struct ses_optim_call {
    ses_device *dev;
    const ses_optim_options *opt;
    const ses_param *param;
    ses_tensor *w;           /* the parameter, or a slice of it with one axis: see `whole_tensors` */
    ses_real *const *state;  /* in the order of state_layout; NULL for unused buffers */
    ses_real *scratch;       /* [scratch_len], for kinds with needs_scratch or an EMA */
    int64_t scratch_len;     /* the largest parameter, or by scratch_size */
    int64_t step;            /* steps of this parameter, from 1 */
    int64_t average_step;    /* steps of its average, from 1; <= 0: it has not started */
    double lr, decay, scale; /* scale multiplies the gradient */
} ses_optim_call;

/* Options of a training run that an optimizer reads, besides the learning rate. */
typedef enum {
    SES_OPTIM_USES_MOMENTUM = 1,
    SES_OPTIM_USES_ACCUMULATOR = 2,
    SES_OPTIM_USES_AVERAGE_TRIGGER = 4,
    SES_OPTIM_USES_MUON = 8 /* the options muon_* */
} ses_optim_uses;

typedef struct ses_optim_kind {
    const char *name, *description;
    ses_optim_options defaults;
    unsigned uses; /* options: bits of ses_optim_uses */
    bool needs_scratch;
    bool whole_tensors; /* a step needs all elements of a parameter; false: it is elementwise */
    size_t momentum;    /* offset of the option that schedules of the momentum set; 0: none */
    /* Elements of scratch, from the elements of the largest parameter and of all; NULL: of the largest. */
    int64_t (*scratch_size)(int64_t largest, int64_t all);
    /* w: parameter p, or a slice of it */
    void (*state_layout)(const ses_optim_options *o, const ses_param *p, const ses_tensor *w,
                         ses_optim_buffer b[SES_OPTIM_BUFFERS]);
    void (*step)(const ses_optim_call *c);               /* one parameter; or */
    void (*step_all)(const ses_optim_call *c, size_t n); /* all parameters, and their bf16 copies */
    /* The weight of new values in the average of weights; NULL: the kind has none. */
    double (*average_weight)(const ses_optim_call *c);
} ses_optim_kind;

#define SES_OPTIM(name) extern const ses_optim_kind ses_optim_##name;
#include "optims.def"
#undef SES_OPTIM

/* The kind with this name; name NULL: the default. NULL: unknown name. */
const ses_optim_kind *ses_optim_find(const char *name);

/* As ses_optim_new, for elements begin .. end - 1 of the store's flat buffers: state is kept and steps are
 * done for these alone. If the kind needs whole tensors, no parameter may cross the borders. */
ses_optim *ses_optim_new_slice(ses_store *s, const ses_optim_options *options, int64_t begin, int64_t end,
                               ses_err *e);

/* A number of a layer is part of the parameter's name, as in "layer.3.ffn" and "rnn.weight_ih_l3_reverse". */
bool ses_param_in_layer(const ses_param *p);

/* Shared by the Adam family: state m and v; the constants of a step. */
void ses_adam_state_layout(const ses_optim_options *o, const ses_param *p, const ses_tensor *w,
                           ses_optim_buffer b[SES_OPTIM_BUFFERS]);
ses_adamw ses_adam_constants(const ses_optim_call *c);
void ses_adam_step_all(const ses_optim_call *c, size_t n);

#endif
