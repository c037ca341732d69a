/* y = act(x), elementwise. */
#include "op.h"

typedef struct attr {
    ses_act act;
} attr;

static bool infer(ses_node *n, ses_err *e)
{
    return ses_check_input(n, 0, "x", e) && ses_node_out(n, n->in[0]->dim, e);
}

static void forward(const ses_node *n)
{
    const attr *a = n->attr;
    n->k->act(n->exec, n->out->f, n->in[0]->f, ses_count(n->out), a->act);
}

static void backward(const ses_node *n)
{
    const attr *a = n->attr;
    n->k->act_bwd(n->exec, ses_grad(n, 0), n->out->grad, n->in[0]->f, ses_count(n->out), a->act);
}

static const ses_case cases[] = {
    { .dim = { { 3, 7 } }, .attr = &(const attr){ SES_ACT_GELU } },
    { .dim = { { 5, 33 } }, .attr = &(const attr){ SES_ACT_GELU }, .scale = 4 },
    { .dim = { { 5, 33 } }, .attr = &(const attr){ SES_ACT_GELU_TANH }, .scale = 4 },
    { .dim = { { 1 } }, .attr = &(const attr){ SES_ACT_RELU } },
    { .dim = { { 5, 33 } }, .attr = &(const attr){ SES_ACT_RELU } },
    { .dim = { { 5, 33 } }, .attr = &(const attr){ SES_ACT_SILU }, .scale = 4 },
    { .dim = { { 5, 33 } }, .attr = &(const attr){ SES_ACT_TANH }, .scale = 2 },
    { .dim = { { 5, 33 } }, .attr = &(const attr){ SES_ACT_SIGMOID }, .scale = 4 },
    { .dim = { { 40 } }, .attr = &(const attr){ SES_ACT_GELU }, .scale = 1e4 },
    { .dim = { { 40 } }, .attr = &(const attr){ SES_ACT_GELU_TANH }, .scale = 1e4 },
    { .dim = { { 40 } }, .attr = &(const attr){ SES_ACT_SILU }, .scale = 1e4 },
    { .dim = { { 40 } }, .attr = &(const attr){ SES_ACT_TANH }, .scale = 1e4 },
};
const ses_op ses_op_activate = {
    .name = "activate",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_activate(ses_tape *t, ses_tensor *x, ses_act act)
{
    return ses_apply(t, &ses_op_activate, SES_IN(x), &(attr){ act });
}
