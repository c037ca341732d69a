/* y = x - log(sum(exp(x))) over the last axis. */
#include "op.h"

static bool infer(ses_node *n, ses_err *e)
{
    return ses_check_input(n, 0, "x", e) && ses_node_out(n, n->in[0]->dim, e);
}

static void forward(const ses_node *n)
{
    n->k->log_softmax(n->exec, n->out->f, n->in[0]->f, ses_rows(n->out), ses_cols(n->out));
}

static void backward(const ses_node *n)
{
    n->k->log_softmax_bwd(n->exec, ses_grad(n, 0), n->out->grad, n->out->f, ses_rows(n->out),
                          ses_cols(n->out));
}

static const ses_case cases[] = {
    { .dim = { { 3, 7 } } },
    { .dim = { { 2, 2, 33 } } },
    { .dim = { { 4, 1 } } },
    { .dim = { { 2, 40 } }, .scale = 1e4 },
};
const ses_op ses_op_log_softmax = {
    .name = "log_softmax",
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_log_softmax(ses_tape *t, ses_tensor *x)
{
    return ses_apply(t, &ses_op_log_softmax, SES_IN(x), NULL);
}
