/* y = a + b, elementwise; a and b have the same shape. */
#include "op.h"

static bool infer(ses_node *n, ses_err *e)
{
    if (!ses_check_input(n, 0, "a", e) || !ses_check_input(n, 1, "b", e)) return false;
    if (!ses_same_shape(n->in[0], n->in[1])) return ses_fail(e, SES_EARG, "a and b must have the same shape");
    return ses_node_out(n, n->in[0]->dim, e);
}

static void forward(const ses_node *n)
{
    n->k->add(n->exec, n->out->f, n->in[0]->f, n->in[1]->f, ses_count(n->out));
}

static void backward(const ses_node *n)
{
    for (int i = 0; i < 2; i++) {
        if (i == 1 && ses_grad_donate(n, 1)) return;
        ses_dst d = ses_grad(n, i);
        if (d.data) n->k->scale(n->exec, d, n->out->grad, 1, ses_count(n->out));
    }
}

static const ses_case cases[] = {
    { .dim = { { 3, 7 }, { 3, 7 } } },
    { .dim = { { 1 }, { 1 } } },
    { .dim = { { 5, 33 }, { 5, 33 } }, .scale = 1e4 },
};
const ses_op ses_op_add = {
    .name = "add",
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_add(ses_tape *t, ses_tensor *a, ses_tensor *b)
{
    return ses_apply(t, &ses_op_add, SES_IN(a, b), NULL);
}
