/* Gated linear unit: y = act(a) b, where x [T, 2F] is a and b side by side. */
#include "op.h"

typedef struct attr {
    ses_act act;
} attr;

/* saved 0: a, 1: b, 2: act(a) */
static bool infer(ses_node *n, ses_err *e)
{
    if (!ses_want_input(n, 0, "x", e)) return false;
    int64_t rows = ses_rows(n->in[0]), cols = ses_cols(n->in[0]) / 2;
    if (ses_cols(n->in[0]) % 2) return ses_fail(e, SES_EARG, "an odd number of columns has no halves");
    for (int i = 0; i < 3; i++)
        if (!ses_node_save_cells(n, i, rows * cols, e)) return false;
    return ses_node_out(n, SES_DIM(rows, cols), e);
}

static void forward(const ses_node *n)
{
    const attr *a = n->attr;
    int64_t rows = ses_rows(n->out), cols = ses_cols(n->out);
    for (int half = 0; half < 2; half++)
        n->k->copy_cols(n->exec, (ses_sink){ n->saved[half], false }, cols,
                        ses_real_at(n, n->in[0]->f, half * cols), 2 * cols, rows, cols);
    n->k->act(n->exec, n->saved[2], n->saved[0], rows * cols, a->act);
    n->k->mul(n->exec, (ses_sink){ n->out->f, false }, n->saved[2], n->saved[1], rows * cols);
}

static void backward(const ses_node *n)
{
    const attr *a = n->attr;
    int64_t rows = ses_rows(n->out), cols = ses_cols(n->out), count = rows * cols;
    ses_sink dx = ses_grad(n, 0);
    ses_real *part = dx.data ? ses_scratch(n, count) : NULL;
    if (!part) return;
    n->k->mul(n->exec, (ses_sink){ part, false }, n->out->grad, n->saved[2], count); /* db = dy act(a) */
    n->k->copy_cols(n->exec, ses_sink_at(n, dx, cols), 2 * cols, part, cols, rows, cols);
    n->k->mul(n->exec, (ses_sink){ part, false }, n->out->grad, n->saved[1], count); /* da = dy b act'(a) */
    n->k->act_bwd(n->exec, (ses_sink){ part, false }, part, n->saved[0], count, a->act);
    n->k->copy_cols(n->exec, dx, 2 * cols, part, cols, rows, cols);
}

static const ses_case cases[] = {
    { .dim = { { 3, 14 } }, .attr = &(const attr){ SES_ACT_GELU } },
    { .dim = { { 5, 66 } }, .attr = &(const attr){ SES_ACT_SILU }, .scale = 4 },
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
