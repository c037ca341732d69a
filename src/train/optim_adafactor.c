/* Adafactor (Shazeer and Stern 2018), as the reference library has it: of a matrix only the means of the
 * squared gradient over rows and over columns are kept, and
 *     u = g / sqrt(row col' / mean(row)),    w -= lr u / max(1, rms(u) / clip_threshold)
 * With relative_step the rate is min(1e-2, 1 / sqrt(step)) (warmup_init: 1e-6 step in place of 1e-2); with
 * scale_parameter it is times max(eps_scale, rms(w)). */
#include "optim_kind.h"

#include <math.h>

static bool factored(const ses_tensor *w) { return ses_rank(w) >= 2; }

static void keeps(const ses_optim_options *o, const ses_tensor *w, ses_optim_buffer b[SES_OPTIM_BUFFERS])
{
    int64_t n = ses_count(w), cols = ses_cols(w);
    b[0] = (ses_optim_buffer){ "m", o->beta1 != 0 ? n : 0 };
    b[1] = (ses_optim_buffer){ factored(w) ? "row" : "v", factored(w) ? n / cols : n };
    b[2] = (ses_optim_buffer){ "col", factored(w) ? n / w->dim[ses_rank(w) - 2] : 0 };
}

static double rms(const ses_optim_call *c, const ses_real *a)
{
    int64_t n = ses_count(c->w);
    return sqrt(c->dev->k_f32.sum_squares(&c->dev->exec, a, n) / (double)n);
}

static double rate(const ses_optim_call *c)
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
    double lr = rate(c);
    ses_adafactor a = { .beta2 = 1 - pow((double)c->step, o->decay_rate), .eps = o->eps, .scale = c->scale };
    if (factored(w)) {
        int64_t cols = ses_cols(w), rows = w->dim[ses_rank(w) - 2];
        for (int64_t i = 0; i < n / (rows * cols); i++) /* of a tensor with more axes, each matrix alone */
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
    .what = "second moments as rows and columns, a rate of its own",
    .usual = { .lr = 1e-3,
               .eps = 1e-30,
               .eps_scale = 1e-3,
               .clip_threshold = 1,
               .decay_rate = -0.8,
               .scale_parameter = true,
               .relative_step = true },
    .scratch = true,
    .keeps = keeps,
    .step = step,
};
