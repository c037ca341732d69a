/* y = x / sqrt(mean(x^2) + eps) * (gain + plus) over the last axis. */
#include "op.h"

typedef struct attr {
    double eps, plus;
} attr;

static bool infer(ses_node *n, ses_err *e)
{
    const ses_tensor *x = n->in[0], *gain = n->in[1];
    if (!ses_check_input(n, 0, "x", e) || !ses_check_input(n, 1, "gain", e)) return false;
    if (ses_count(gain) != ses_cols(x))
        return ses_fail(e, SES_EARG, "gain must have %lld entries", (long long)ses_cols(x));
    return ses_node_out(n, x->dim, e) && (!ses_node_needs_backward(n) || ses_node_save(n, 0, ses_rows(x), e));
}

static void forward(const ses_node *n)
{
    const attr *a = n->attr;
    const ses_tensor *x = n->in[0];
    n->k->rms(n->exec, n->out->f, n->saved[0], x->f, ses_input_f32(n, 1), ses_rows(x), ses_cols(x), a->eps,
              a->plus);
}

static void backward(const ses_node *n)
{
    const attr *a = n->attr;
    const ses_tensor *x = n->in[0];
    ses_dst dx = ses_grad(n, 0);
    ses_real *dgain = ses_grad_vector(n, 1);
    n->k->rms_bwd(n->exec, dx, dgain, n->out->grad, x->f, n->saved[0], ses_input_f32(n, 1), ses_rows(x),
                  ses_cols(x), a->plus);
}

static const ses_case cases[] = {
    { .dim = { { 4, 7 }, { 7 } }, .attr = &(const attr){ 1e-6 } },
    { .dim = { { 65, 33 }, { 33 } }, .attr = &(const attr){ 1e-6 } },
    { .dim = { { 5, 40 }, { 40 } }, .attr = &(const attr){ 1e-6, 1 } },
    /* with eps 0 the gradient would be 0 */
    { .dim = { { 3, 1 }, { 1 } }, .attr = &(const attr){ 0.5 } },
    { .dim = { { 2, 770 }, { 770 } }, .attr = &(const attr){ 1e-6 }, .scale = 1e4 },
};
const ses_op ses_op_rms_norm = {
    .name = "rms_norm",
    .f32_inputs = 1 << 1,
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_rms_norm(ses_tape *t, ses_tensor *x, ses_tensor *gain, double eps)
{
    return ses_rms_norm_plus(t, x, gain, eps, 0);
}

ses_tensor *ses_rms_norm_plus(ses_tape *t, ses_tensor *x, ses_tensor *gain, double eps, double plus)
{
    return ses_apply(t, &ses_op_rms_norm, SES_IN(x, gain), &(attr){ eps, plus });
}
