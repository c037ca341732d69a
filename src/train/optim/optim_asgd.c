/* Averaged SGD (Polyak and Juditsky 1992), as torch.optim.ASGD:
 *     eta = lr / (1 + lambda lr t)^alpha,    w = (1 - lambda eta) w - eta (g + decay w),    t = 0, 1, ...
 *     average += mu (w - average),           mu = 1 / max(1, t - t0)
 * AWD-LSTM (Merity et al. 2018) sets t0 = lambda = 0 and begins with plain SGD: the average starts when the
 * loss of an evaluation has not fallen for a while (average_trigger; the trainer decides). */
#include "optim_kind.h"

#include <math.h>

static void state_layout(const ses_optim_options *o, const ses_param *p, const ses_tensor *w,
                         ses_optim_buffer b[SES_OPTIM_BUFFERS])
{
    (void)p;
    (void)o, (void)w, (void)b; /* the average is ses_optim's */
}

static void step(const ses_optim_call *c)
{
    const ses_optim_options *o = c->opt;
    double eta = c->lr / pow(1 + o->asgd_lambda * c->lr * (double)(c->step - 1), o->asgd_alpha);
    ses_sgd s = { .lr = eta, .grad_weight = 1, .weight_decay = c->decay + o->asgd_lambda, .scale = c->scale };
    c->dev->k_f32.sgd(&c->dev->exec, ses_master_data(c->w), c->w->grad, NULL, ses_count(c->w), &s);
}

static double average_weight(const ses_optim_call *c)
{
    return 1 / fmax(1, (double)(c->average_step - 1) - c->opt->asgd_t0);
}

const ses_optim_kind ses_optim_asgd = {
    .name = "asgd",
    .description = "SGD whose weights are averaged, on a trigger (AWD-LSTM)",
    .defaults = { .lr = 1e-2, .asgd_alpha = 0.75 },
    .uses = SES_OPTIM_USES_AVERAGE_TRIGGER,
    .state_layout = state_layout,
    .step = step,
    .average_weight = average_weight,
};
