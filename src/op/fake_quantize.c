/* y = x as int8 products read it: rows, or columns, rounded to 127 steps of their largest magnitude. The
 * gradient passes unchanged (straight-through estimator). */
#include "op.h"

typedef struct attr {
    bool by_col;
} attr;

static bool infer(ses_node *n, ses_err *e)
{
    return ses_check_input(n, 0, "x", e) && ses_node_out(n, n->in[0]->dim, e);
}

static void forward(const ses_node *n)
{
    const ses_tensor *x = n->in[0];
    /* a weight may have several axes after the first */
    bool by_col = ((const attr *)n->attr)->by_col;
    int64_t count = by_col ? x->dim[0] : ses_rows(x);
    n->k->fake_quantize(n->exec, n->out->f, x->f, count, ses_count(x) / count, by_col);
}

static void backward(const ses_node *n)
{
    if (ses_grad_donate(n, 0)) return;
    ses_dst dx = ses_grad(n, 0);
    if (dx.data) n->k->scale(n->exec, dx, n->out->grad, 1, ses_count(n->out));
}

static const attr rows = { false }, columns = { true };
static const ses_case cases[] = {
    { .dim = { { 3, 7 } }, .attr = &rows },
    { .dim = { { 5, 33 } }, .attr = &rows, .scale = 1e4 },
    { .dim = { { 2, 3, 40 } }, .attr = &rows, .scale = 1e-3 },
    { .dim = { { 4, 1 } }, .attr = &rows },
    { .dim = { { 7, 35 } }, .attr = &columns },
    { .dim = { { 1, 5 } }, .attr = &columns },
};
const ses_op ses_op_fake_quantize = {
    .name = "fake_quantize",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .straight_through = true,
};

ses_tensor *ses_fake_quantize(ses_tape *t, ses_tensor *x, bool by_col)
{
    return ses_apply(t, &ses_op_fake_quantize, SES_IN(x), &(attr){ by_col });
}

void ses_round_operands(ses_tape *t, ses_tensor **x, ses_tensor **w, ses_weight_layout layout)
{
    ses_tensor *v = *w;
    if (!v || !v->rounds_i8) return;
    if (ses_rank(v) > 2) v = ses_reshape(t, v, SES_DIM(v->dim[0], ses_count(v) / v->dim[0]));
    *w = ses_fake_quantize(t, v, layout == SES_IN_OUT);
    if (x) *x = ses_fake_quantize(t, *x, false);
}
