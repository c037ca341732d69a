/* y = s x. */
#include "op.h"

typedef struct attr {
    double s;
} attr;

static bool infer(ses_node *n, ses_err *e)
{
    return ses_check_input(n, 0, "x", e) && ses_node_out(n, n->in[0]->dim, e);
}

static void forward(const ses_node *n)
{
    const attr *a = n->attr;
    n->k->scale(n->exec, (ses_dst){ n->out->f, false }, n->in[0]->f, (ses_real)a->s, ses_count(n->out));
}

static void backward(const ses_node *n)
{
    const attr *a = n->attr;
    ses_dst dx = ses_grad(n, 0);
    if (dx.data) n->k->scale(n->exec, dx, n->out->grad, (ses_real)a->s, ses_count(n->out));
}

static const ses_case cases[] = {
    { .dim = { { 3, 7 } }, .attr = &(const attr){ -0.5 } },
    { .dim = { { 1 } }, .attr = &(const attr){ 3 } },
    { .dim = { { 2, 40 } }, .attr = &(const attr){ 1e-3 }, .scale = 1e4 },
};
const ses_op ses_op_scale = {
    .name = "scale",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_scale(ses_tape *t, ses_tensor *x, double s)
{
    return ses_apply(t, &ses_op_scale, SES_IN(x), &(attr){ s });
}
