/* y = [x0 | x1 | ...]: concatenates columns. All inputs have the same number of rows. */
#include "op.h"

static bool infer(ses_node *n, ses_err *e)
{
    int64_t cols = 0;
    for (int i = 0; i < n->n_in; i++) {
        if (!ses_check_input(n, i, "x", e)) return false;
        if (ses_rows(n->in[i]) != ses_rows(n->in[0]))
            return ses_fail(e, SES_EARG, "input %d has %lld rows, input 1 has %lld", i + 1,
                            (long long)ses_rows(n->in[i]), (long long)ses_rows(n->in[0]));
        cols += ses_cols(n->in[i]);
    }
    return ses_node_out(n, SES_DIM(ses_rows(n->in[0]), cols), e);
}

static void forward(const ses_node *n)
{
    int64_t rows = ses_rows(n->out), width = ses_cols(n->out), at = 0;
    for (int i = 0; i < n->n_in; i++) {
        int64_t cols = ses_cols(n->in[i]);
        n->k->copy_cols(n->exec, (ses_dst){ ses_elem_at(n, n->out->f, at), false }, width, n->in[i]->f, cols,
                        rows, cols);
        at += cols;
    }
}

static void backward(const ses_node *n)
{
    int64_t rows = ses_rows(n->out), width = ses_cols(n->out), at = 0;
    for (int i = 0; i < n->n_in; i++) {
        int64_t cols = ses_cols(n->in[i]);
        ses_dst d = ses_grad(n, i);
        if (d.data) n->k->copy_cols(n->exec, d, cols, ses_elem_at(n, n->out->grad, at), width, rows, cols);
        at += cols;
    }
}

static const ses_case cases[] = {
    { .dim = { { 3, 7 }, { 3, 2 }, { 3, 1 } } },
    { .dim = { { 4, 33 }, { 4, 16 } }, .scale = 1e4 },
    { .dim = { { 1, 1 } } },
};
const ses_op ses_op_concat = {
    .name = "concat",
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_concat(ses_tape *t, int n, ses_tensor *const x[])
{
    if (n >= 1 && n <= SES_MAX_IN) return ses_apply(t, &ses_op_concat, x, n, NULL);
    if (n > SES_MAX_IN) {
        ses_tensor *half[] = { ses_concat(t, n / 2, x), ses_concat(t, n - n / 2, x + n / 2) };
        return ses_apply(t, &ses_op_concat, half, 2, NULL);
    }
    ses_tape_fail(t, SES_EARG, "concat: %d inputs, expected at least 1", n);
    return NULL;
}
