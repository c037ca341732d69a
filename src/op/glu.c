/* Gated linear unit: y = act(a) b with x [T, 2F] = a | b. */
#include "op.h"

typedef struct attr {
    ses_act act;
} attr;

static bool infer(ses_node *n, ses_err *e)
{
    if (!ses_check_input(n, 0, "x", e)) return false;
    if (ses_cols(n->in[0]) % 2) return ses_fail(e, SES_EARG, "the number of columns must be even");
    return ses_node_out(n, SES_DIM(ses_rows(n->in[0]), ses_cols(n->in[0]) / 2), e);
}

static void forward(const ses_node *n)
{
    const attr *a = n->attr;
    n->k->glu(n->exec, n->out->f, n->in[0]->f, ses_rows(n->out), ses_cols(n->out), a->act);
}

static void backward(const ses_node *n)
{
    const attr *a = n->attr;
    n->k->glu_bwd(n->exec, ses_grad(n, 0), n->out->grad, n->in[0]->f, ses_rows(n->out), ses_cols(n->out),
                  a->act);
}

static const ses_case cases[] = {
    { .dim = { { 3, 14 } }, .attr = &(const attr){ SES_ACT_GELU } },
    { .dim = { { 5, 66 } }, .attr = &(const attr){ SES_ACT_SILU }, .scale = 4 },
    { .dim = { { 9, 160 } }, .attr = &(const attr){ SES_ACT_GELU } },
    { .dim = { { 2, 2 } }, .attr = &(const attr){ SES_ACT_GELU_TANH } },
    { .dim = { { 2, 40 } }, .attr = &(const attr){ SES_ACT_RELU }, .scale = 1e4 },
};
const ses_op ses_op_glu = {
    .name = "glu",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_glu(ses_tape *t, ses_tensor *x, ses_act act)
{
    return ses_apply(t, &ses_op_glu, SES_IN(x), &(attr){ act });
}
