/* y = x above z: the rows of x, then the rows of z. */
#include "op.h"

static bool infer(ses_node *n, ses_err *e)
{
    if (!ses_check_input(n, 0, "x", e) || !ses_check_input(n, 1, "z", e)) return false;
    if (ses_cols(n->in[0]) != ses_cols(n->in[1]))
        return ses_fail(e, SES_EARG, "x has %lld columns, z has %lld", (long long)ses_cols(n->in[0]),
                        (long long)ses_cols(n->in[1]));
    return ses_node_out(n, SES_DIM(ses_rows(n->in[0]) + ses_rows(n->in[1]), ses_cols(n->in[0])), e);
}

static void forward(const ses_node *n)
{
    int64_t cols = ses_cols(n->out), at = 0;
    for (int i = 0; i < 2; i++) {
        n->k->copy_cols(n->exec, (ses_dst){ ses_elem_at(n, n->out->f, at), false }, cols, n->in[i]->f, cols,
                        ses_rows(n->in[i]), cols);
        at += ses_count(n->in[i]);
    }
}

static void backward(const ses_node *n)
{
    int64_t cols = ses_cols(n->out), at = 0;
    for (int i = 0; i < 2; i++) {
        ses_dst d = ses_grad(n, i);
        if (d.data)
            n->k->copy_cols(n->exec, d, cols, ses_elem_at(n, n->out->grad, at), cols, ses_rows(n->in[i]),
                            cols);
        at += ses_count(n->in[i]);
    }
}

static const ses_case cases[] = {
    { .dim = { { 3, 7 }, { 2, 7 } } },
    { .dim = { { 4, 33 }, { 1, 33 } }, .scale = 1e4 },
    { .dim = { { 1, 1 }, { 5, 1 } } },
};
const ses_op ses_op_append_rows = {
    .name = "append_rows",
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_append_rows(ses_tape *t, ses_tensor *x, ses_tensor *z)
{
    return ses_apply(t, &ses_op_append_rows, SES_IN(x, z), NULL);
}
