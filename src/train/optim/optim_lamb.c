/* LAMB (You et al. 2020): Adam's update plus weight decay, scaled by the trust ratio |w| / |u|:
 *     u = m^ / (sqrt(v^) + eps) + decay w,    w -= lr |w| / |u| u    (the ratio is 1 if either norm is 0) */
#include "optim_kind.h"

static void step(const ses_optim_call *c)
{
    ses_exec *x = &c->dev->exec;
    const ses_kernels *k = &c->dev->k_f32;
    ses_adamw a = ses_adam_constants(c);
    ses_real *value = ses_master_data(c->w);
    int64_t n = ses_count(c->w);
    k->lamb(x, c->scratch, value, c->w->grad, c->state[0], c->state[1], n, &a);
    k->lamb_update(x, value, c->scratch, n, c->lr);
}

const ses_optim_kind ses_optim_lamb = {
    .name = "lamb",
    .description = "Adam with a trust ratio per tensor, for large batches",
    .defaults = { .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6 },
    .needs_scratch = true,
    .whole_tensors = true,
    .momentum = offsetof(ses_optim_options, beta1),
    .state_layout = ses_adam_state_layout,
    .step = step,
};
