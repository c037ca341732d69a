/* y = x gain + bias, by column. gain and bias may be NULL. */
#include "op.h"

static bool infer(ses_node *n, ses_err *e)
{
    if (!ses_check_input(n, 0, "x", e)) return false;
    for (int i = 1; i <= 2; i++)
        if (n->in[i] && (!ses_check_input(n, i, "row", e) || ses_count(n->in[i]) != ses_cols(n->in[0])))
            return ses_fail(e, SES_EARG, "gain or bias has %lld entries, x has %lld columns",
                            (long long)ses_count(n->in[i]), (long long)ses_cols(n->in[0]));
    return ses_node_out(n, n->in[0]->dim, e);
}

static void forward(const ses_node *n)
{
    n->k->affine(n->exec, (ses_dst){ n->out->f, false }, n->in[0]->f, ses_input_f32(n, 1),
                 ses_input_f32(n, 2), ses_rows(n->out), ses_cols(n->out));
}

static void backward(const ses_node *n)
{
    int64_t rows = ses_rows(n->out), cols = ses_cols(n->out);
    const ses_real *dy = n->out->grad;
    ses_dst dx = ses_grad(n, 0);
    ses_dst dgain = ses_grad_zeroed(n, 1), dbias = ses_grad_zeroed(n, 2);
    if (dx.data) n->k->affine(n->exec, dx, dy, ses_input_f32(n, 1), NULL, rows, cols);
    ses_real *part = dgain.data ? ses_scratch(n, rows * cols) : NULL;
    if (part) {
        n->k->mul(n->exec, (ses_dst){ part, false }, dy, n->in[0]->f, rows * cols);
        n->k->col_sum(n->exec, dgain, part, rows, cols, cols);
    }
    if (dbias.data) n->k->col_sum(n->exec, dbias, dy, rows, cols, cols);
}

static const ses_case cases[] = {
    { .dim = { { 3, 7 }, { 7 }, { 7 } } },
    { .dim = { { 1, 1 }, { 1 }, { 1 } } },
    { .dim = { { 5, 33 }, { 0 }, { 3, 11 } }, .scale = 1e4 },
    { .dim = { { 2, 2, 18 }, { 18 } } },
};
const ses_op ses_op_affine = {
    .name = "affine",
    .f32_inputs = 1 << 1 | 1 << 2,
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_affine(ses_tape *t, ses_tensor *x, ses_tensor *gain, ses_tensor *bias)
{
    return ses_apply(t, &ses_op_affine, SES_IN(x, gain, bias), NULL);
}
