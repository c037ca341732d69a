/* Adafactor (Shazeer and Stern 2018), as in transformers. The second moment of a matrix is factored into its
 * means over rows and over columns:
 *     u = g / sqrt(row col' / mean(row)),    w -= lr u / max(1, rms(u) / clip_threshold)
 * relative_step: lr = min(1e-2, 1 / sqrt(step)) (warmup_init: 1e-6 step instead of 1e-2).
 * scale_parameter: lr is multiplied by max(eps_scale, rms(w)). */
#include "optim_kind.h"

#include <math.h>

static bool is_factored(const ses_tensor *w) { return ses_rank(w) >= 2; }

static void state_layout(const ses_optim_options *o, const ses_param *p, const ses_tensor *w,
                         ses_optim_buffer b[SES_OPTIM_BUFFERS])
{
    (void)p;
    int64_t n = ses_count(w), cols = ses_cols(w);
    b[0] = (ses_optim_buffer){ "m", o->beta1 != 0 ? n : 0 };
    b[1] = (ses_optim_buffer){ is_factored(w) ? "row" : "v", is_factored(w) ? n / cols : n };
    b[2] = (ses_optim_buffer){ "col", is_factored(w) ? n / w->dim[ses_rank(w) - 2] : 0 };
}

static double rms(const ses_optim_call *c, const ses_real *a)
{
    int64_t n = ses_count(c->w);
    return sqrt(c->dev->k_f32.sum_squares(&c->dev->exec, a, n) / (double)n);
}

static double effective_lr(const ses_optim_call *c)
{
    const ses_optim_options *o = c->opt;
    double t = (double)c->step, lr = c->lr;
    if (o->relative_step) {
        double floor = o->warmup_init ? 1e-6 * t : 1e-2;
        lr = fmin(floor, 1 / sqrt(t));
    }
    return o->scale_parameter ? lr * fmax(o->eps_scale, rms(c, ses_master_data(c->w))) : lr;
}

static void step(const ses_optim_call *c)
{
    const ses_optim_options *o = c->opt;
    const ses_kernels *k = &c->dev->k_f32;
    ses_exec *x = &c->dev->exec;
    ses_tensor *w = c->w;
    ses_real *value = ses_master_data(w);
    int64_t n = ses_count(w);
    double lr = effective_lr(c);
    ses_adafactor a = { .beta2 = 1 - pow((double)c->step, o->decay_rate), .eps = o->eps, .scale = c->scale };
    if (is_factored(w)) {
        int64_t cols = ses_cols(w), rows = w->dim[ses_rank(w) - 2];
        for (int64_t i = 0; i < n / (rows * cols); i++) /* more than two axes: each matrix separately */
            k->adafactor_matrix(x, c->scratch + i * rows * cols, c->state[1] + i * rows,
                                c->state[2] + i * cols, w->grad + i * rows * cols, rows, cols, &a);
    } else {
        k->adafactor_each(x, c->scratch, c->state[1], w->grad, n, &a);
    }
    double factor = lr / fmax(1, rms(c, c->scratch) / o->clip_threshold);
    ses_real *update = c->scratch;
    if (c->state[0]) {
        k->scale(x, (ses_dst){ c->state[0], false }, c->state[0], (ses_real)o->beta1, n);
        k->scale(x, (ses_dst){ c->state[0], true }, c->scratch, (ses_real)((1 - o->beta1) * factor), n);
        update = c->state[0];
        factor = 1;
    }
    if (c->decay != 0) k->scale(x, (ses_dst){ value, false }, value, (ses_real)(1 - c->decay * lr), n);
    k->scale(x, (ses_dst){ value, true }, update, (ses_real)-factor, n);
}

const ses_optim_kind ses_optim_adafactor = {
    .name = "adafactor",
    .description = "Adam with factored second moments",
    .defaults = { .lr = 1e-3,
                  .eps = 1e-30,
                  .eps_scale = 1e-3,
                  .clip_threshold = 1,
                  .decay_rate = -0.8,
                  .scale_parameter = true,
                  .relative_step = true },
    .needs_scratch = true,
    .whole_tensors = true,
    .state_layout = state_layout,
    .step = step,
};
