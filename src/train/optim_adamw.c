/* AdamW (Loshchilov and Hutter 2019): Adam with a decay that acts on the weights themselves. */
#include "optim_kind.h"

#include <math.h>

void ses_adam_keeps(const ses_optim_options *o, const ses_tensor *w, ses_optim_buffer b[SES_OPTIM_BUFFERS])
{
    (void)o;
    b[0] = (ses_optim_buffer){ "m", ses_count(w) };
    b[1] = (ses_optim_buffer){ "v", ses_count(w) };
}

ses_adamw ses_adam_numbers(const ses_optim_call *c)
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

void ses_adam_all(const ses_optim_call *c, size_t n)
{
    enum { MOST = 128 };
    for (size_t from = 0; from < n; from += MOST) {
        ses_adamw_tensor part[MOST];
        size_t some = n - from < MOST ? n - from : MOST;
        for (size_t i = 0; i < some; i++) {
            const ses_optim_call *one = &c[from + i];
            ses_tensor *w = one->w;
            part[i] = (ses_adamw_tensor){
                ses_master_data(w),         w->grad,      one->state[0],        one->state[1],
                w->master ? w->data : NULL, ses_count(w), ses_adam_numbers(one)
            };
        }
        c->dev->k_f32.adamw_list(&c->dev->exec, part, (int64_t)some);
    }
}

const ses_optim_kind ses_optim_adamw = {
    .name = "adamw",
    .what = "Adam with decoupled weight decay",
    .usual = { .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8 },
    .keeps = ses_adam_keeps,
    .all = ses_adam_all,
};
