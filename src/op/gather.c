/* y[i] = x[rows[i]], in any order and with repetition; SES_IGNORE_INDEX: a row of zeros. */
#include "op.h"

static bool infer(ses_node *n, ses_err *e)
{
    if (!ses_check_input(n, 0, "x", e) || !ses_check_ints(n, 1, "rows", e)) return false;
    if (!ses_check_range(n, 1, ses_rows(n->in[0]), true, "row", e)) return false;
    return ses_node_out(n, SES_DIM(ses_count(n->in[1]), ses_cols(n->in[0])), e);
}

static void forward(const ses_node *n)
{
    n->k->gather(n->exec, n->out->f, (const ses_real *const[]){ n->in[0]->f },
                 (const int32_t *const[]){ n->in[1]->i }, 1, ses_rows(n->out), ses_cols(n->out));
}

static void backward(const ses_node *n)
{
    ses_dst dx = ses_grad_zeroed(n, 0);
    if (dx.data)
        n->k->scatter_add(n->exec, dx, n->out->grad, n->in[1]->i, ses_rows(n->out), ses_cols(n->out),
                          SES_IGNORE_INDEX);
}

static const int32_t rows[] = { 2, 0, 2 }, holes[] = { SES_IGNORE_INDEX, 1, SES_IGNORE_INDEX, 0 };
static const ses_case cases[] = {
    { .dim = { { 3, 7 }, { 3 } }, .ints = { [1] = rows } },
    { .dim = { { 5, 33 }, { 2 } }, .ints = { [1] = rows }, .scale = 1e4 },
    { .dim = { { 3, 1 }, { 1 } }, .ints = { [1] = rows } },
    { .dim = { { 2, 18 }, { 4 } }, .ints = { [1] = holes } },
};
const ses_op ses_op_gather = {
    .name = "gather",
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_gather(ses_tape *t, ses_tensor *x, ses_tensor *indices)
{
    return ses_apply(t, &ses_op_gather, SES_IN(x, indices), NULL);
}
