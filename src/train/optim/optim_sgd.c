/* Stochastic gradient descent with momentum (heavy ball or Nesterov). Weight decay is added to the
 * gradient, as in torch.optim.SGD. */
#include "optim_kind.h"

static void state_layout(const ses_optim_options *o, const ses_param *p, const ses_tensor *w,
                         ses_optim_buffer b[SES_OPTIM_BUFFERS])
{
    (void)p;
    b[0] = (ses_optim_buffer){ "momentum", o->momentum != 0 ? ses_count(w) : 0 };
}

static void step(const ses_optim_call *c)
{
    const ses_optim_options *o = c->opt;
    ses_sgd s = { .lr = c->lr,
                  .momentum = o->momentum,
                  .grad_weight =
                      c->step == 1 ? 1 : 1 - o->dampening, /* the first gradient initializes the buffer */
                  .weight_decay = c->decay,
                  .scale = c->scale,
                  .nesterov = o->nesterov };
    c->dev->k_f32.sgd(&c->dev->exec, ses_master_data(c->w), c->w->grad, c->state[0], ses_count(c->w), &s);
}

const ses_optim_kind ses_optim_sgd = {
    .name = "sgd",
    .description = "SGD with momentum",
    .defaults = { .lr = 1e-3, .momentum = 0.9 },
    .uses = SES_OPTIM_USES_MOMENTUM,
    .momentum = offsetof(ses_optim_options, momentum),
    .state_layout = state_layout,
    .step = step,
};
