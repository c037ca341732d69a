/* y[r] = w[r] x[r]. The weights get no gradient. x [R, C], w [R]. */
#include "op.h"

static bool infer(ses_node *n, ses_err *e)
{
    const ses_tensor *x = n->in[0], *w = n->in[1];
    if (!ses_check_input(n, 0, "x", e) || !ses_check_input(n, 1, "weight", e)) return false;
    if (ses_count(w) != ses_rows(x))
        return ses_fail(e, SES_EARG, "%lld weights for %lld rows", (long long)ses_count(w),
                        (long long)ses_rows(x));
    return ses_node_out(n, x->dim, e);
}

static void forward(const ses_node *n)
{
    n->k->scale_rows(n->exec, (ses_dst){ n->out->f, false }, n->in[0]->f, ses_input_f32(n, 1),
                     ses_rows(n->out), ses_cols(n->out));
}

static void backward(const ses_node *n)
{
    ses_dst dx = ses_grad(n, 0);
    if (dx.data)
        n->k->scale_rows(n->exec, dx, n->out->grad, ses_input_f32(n, 1), ses_rows(n->out), ses_cols(n->out));
}

static const ses_case cases[] = {
    { .dim = { { 4, 7 }, { 4 } }, .constant = 1u << 1 },
    { .dim = { { 65, 33 }, { 65 } }, .constant = 1u << 1 },
    { .dim = { { 3, 1 }, { 3 } }, .constant = 1u << 1, .scale = 1e4 },
};
const ses_op ses_op_scale_rows = {
    .name = "scale_rows",
    .f32_inputs = 1 << 1,
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_scale_rows(ses_tape *t, ses_tensor *x, ses_tensor *weight)
{
    return ses_apply(t, &ses_op_scale_rows, SES_IN(x, weight), NULL);
}
