/* y = (x - mean) / sqrt(var + eps) * gain + bias by column (Ioffe and Szegedy 2015). A training tape uses
 * mean and variance of the rows of x and moves the running statistics towards them, as PyTorch does;
 * otherwise the running statistics are used, so that rows are independent. One row has no variance: it uses
 * the running statistics, too. */
#include "op.h"

static bool infer(ses_node *n, ses_err *e)
{
    static const char *const names[] = { "x", "gain", "bias", "mean", "var" };
    for (int i = 0; i < (int)SES_LEN(names); i++)
        if (!ses_check_input(n, i, names[i], e)) return false;
    for (int i = 1; i < (int)SES_LEN(names); i++)
        if (ses_count(n->in[i]) != ses_cols(n->in[0]))
            return ses_fail(e, SES_EARG, "%s must have %lld entries", names[i],
                            (long long)ses_cols(n->in[0]));
    return ses_node_out(n, n->in[0]->dim, e) && ses_node_save(n, 0, 2 * ses_cols(n->in[0]), e);
}

static bool is_training(const ses_node *n)
{
    const ses_batch_norm_spec *o = n->attr;
    return o->train && ses_rows(n->in[0]) > 1;
}

static void forward(const ses_node *n)
{
    const ses_tensor *x = n->in[0];
    ses_batch_norm_spec o = *(const ses_batch_norm_spec *)n->attr;
    o.train = is_training(n);
    n->k->batch_norm(n->exec, n->out->f, n->saved[0], x->f, ses_input_f32(n, 1), ses_input_f32(n, 2),
                     ses_master_data(n->in[3]), ses_master_data(n->in[4]), ses_rows(x), ses_cols(x), &o);
}

static void backward(const ses_node *n)
{
    const ses_tensor *x = n->in[0];
    ses_dst dx = ses_grad(n, 0);
    ses_real *dgain = ses_grad_vector(n, 1), *dbias = ses_grad_vector(n, 2);
    n->k->batch_norm_bwd(n->exec, dx, dgain, dbias, n->out->grad, x->f, n->saved[0], ses_input_f32(n, 1),
                         ses_rows(x), ses_cols(x), is_training(n));
}

enum { STATISTICS = 1 << 3 | 1 << 4 };
static const ses_case cases[] = {
    { .dim = { { 5, 7 }, { 7 }, { 7 }, { 7 }, { 7 } },
      .attr = &(const ses_batch_norm_spec){ 1e-5, 0.1, true },
      .constant = STATISTICS },
    { .dim = { { 33, 131 }, { 131 }, { 131 }, { 131 }, { 131 } },
      .attr = &(const ses_batch_norm_spec){ 1e-5, 0.1, true },
      .constant = STATISTICS,
      .scale = 1e2 },
    { .dim = { { 4, 18 }, { 18 }, { 18 }, { 18 }, { 18 } },
      .attr = &(const ses_batch_norm_spec){ 0.1, 0.1, false },
      .constant = STATISTICS },
    { .dim = { { 1, 3 }, { 3 }, { 3 }, { 3 }, { 3 } },
      .attr = &(const ses_batch_norm_spec){ 0.1, 0.1, true },
      .constant = STATISTICS },
    { .dim = { { 3, 1 }, { 1 }, { 1 }, { 1 }, { 1 } },
      .attr = &(const ses_batch_norm_spec){ 1e-5, 0.1, true },
      .constant = STATISTICS },
};
const ses_op ses_op_batch_norm = {
    .name = "batch_norm",
    .f32_inputs = 1 << 1 | 1 << 2 | STATISTICS,
    .attr_size = sizeof(ses_batch_norm_spec),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_batch_norm(ses_tape *t, ses_tensor *x, ses_tensor *gain, ses_tensor *bias, ses_tensor *mean,
                           ses_tensor *var, double eps, double momentum)
{
    ses_batch_norm_spec o = { eps, momentum, ses_tape_training(t) };
    return ses_apply(t, &ses_op_batch_norm, SES_IN(x, gain, bias, mean, var), &o);
}
