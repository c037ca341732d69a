/* Adagrad (Duchi et al. 2011), as torch.optim.Adagrad:
 *     d = g + decay w,    sum += d^2,    w -= lr d / (sqrt(sum + accumulator) + eps)
 * accumulator is the sum before the first step: 0 in PyTorch, 1 in ELMo's training. */
#include "optim_kind.h"

static void state_layout(const ses_optim_options *o, const ses_param *p, const ses_tensor *w,
                         ses_optim_buffer b[SES_OPTIM_BUFFERS])
{
    (void)o, (void)p;
    b[0] = (ses_optim_buffer){ "sum", ses_count(w) };
}

static void step(const ses_optim_call *c)
{
    ses_adagrad a = { .lr = c->lr,
                      .eps = c->opt->eps,
                      .accumulator = c->opt->accumulator,
                      .weight_decay = c->decay,
                      .scale = c->scale };
    c->dev->k_f32.adagrad(&c->dev->exec, ses_master_data(c->w), c->w->grad, c->state[0], ses_count(c->w), &a);
}

const ses_optim_kind ses_optim_adagrad = {
    .name = "adagrad",
    .description = "rates divided by the sum of squared gradients",
    .defaults = { .lr = 1e-2, .eps = 1e-10 },
    .uses = SES_OPTIM_USES_ACCUMULATOR,
    .state_layout = state_layout,
    .step = step,
};
