/* AdamW (Loshchilov and Hutter 2019): Adam with decoupled weight decay. */
#include "optim_kind.h"

#include <math.h>

void ses_adam_state_layout(const ses_optim_options *o, const ses_param *p, const ses_tensor *w,
                           ses_optim_buffer b[SES_OPTIM_BUFFERS])
{
    (void)o, (void)p;
    b[0] = (ses_optim_buffer){ "m", ses_count(w) };
    b[1] = (ses_optim_buffer){ "v", ses_count(w) };
}

ses_adamw ses_adam_constants(const ses_optim_call *c)
{
    const ses_optim_options *o = c->opt;
    double t = (double)c->step;
    return (ses_adamw){ .lr = c->lr,
                        .beta1 = o->beta1,
                        .beta2 = o->beta2,
                        .eps = o->eps,
                        .weight_decay = c->decay,
                        .correction1 = o->no_bias_correction ? 1 : 1 / (1 - pow(o->beta1, t)),
                        .correction2 = o->no_bias_correction ? 1 : 1 / (1 - pow(o->beta2, t)),
                        .scale = c->scale };
}

void ses_adam_step_all(const ses_optim_call *c, size_t n)
{
    enum { MAX_PARTS = 128 };
    for (size_t from = 0; from < n; from += MAX_PARTS) {
        ses_adamw_tensor part[MAX_PARTS];
        size_t count = n - from < MAX_PARTS ? n - from : MAX_PARTS;
        for (size_t i = 0; i < count; i++) {
            const ses_optim_call *one = &c[from + i];
            ses_tensor *w = one->w;
            part[i] = (ses_adamw_tensor){
                ses_master_data(w),         w->grad,      one->state[0],          one->state[1],
                w->master ? w->data : NULL, ses_count(w), ses_adam_constants(one)
            };
        }
        c->dev->k_f32.adamw_list(&c->dev->exec, part, (int64_t)count);
    }
}

const ses_optim_kind ses_optim_adamw = {
    .name = "adamw",
    .description = "Adam with decoupled weight decay",
    .defaults = { .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8 },
    .momentum = offsetof(ses_optim_options, beta1),
    .state_layout = ses_adam_state_layout,
    .step_all = ses_adam_step_all,
};
