/* y = mean over labeled rows of x[r][label[r]] - mean(x[r]). x [R, N]. Label smoothing adds eps y to a cross
 * entropy: (1 - eps) nll + eps mean(nll of each class) = nll + eps y. */
#include "op.h"

/* saved 0: y, 1 / count (the output is a view of y). */
static bool infer(ses_node *n, ses_err *e)
{
    const ses_tensor *x = n->in[0];
    if (!ses_check_input(n, 0, "x", e) || !ses_check_ints(n, 1, "labels", e)) return false;
    if (ses_count(n->in[1]) != ses_rows(x))
        return ses_fail(e, SES_EARG, "%lld labels for %lld rows", (long long)ses_count(n->in[1]),
                        (long long)ses_rows(x));
    if (!ses_check_range(n, 1, ses_cols(x), true, "label", e) || !ses_node_save(n, 0, 2, e)) return false;
    n->out = ses_tensor_wrap(n->tape, n->saved[0], SES_REAL, SES_DIM(1), e);
    return n->out != NULL;
}

static void forward(const ses_node *n)
{
    const ses_tensor *x = n->in[0];
    n->k->label_smoothing(n->exec, n->saved[0], x->f, n->in[1]->i, ses_rows(x), ses_cols(x));
}

static void backward(const ses_node *n)
{
    const ses_tensor *x = n->in[0];
    n->k->label_smoothing_bwd(n->exec, ses_grad(n, 0), n->out->grad, n->saved[0], n->in[1]->i, ses_rows(x),
                              ses_cols(x));
}

static const int32_t labels[] = { 2, SES_IGNORE_INDEX, 0, 6 },
                     none[] = { SES_IGNORE_INDEX, SES_IGNORE_INDEX }, zero[] = { 0, 0 };
static const ses_case cases[] = {
    { .dim = { { 4, 7 }, { 4 } }, .ints = { [1] = labels } },
    { .dim = { { 4, 33 }, { 4 } }, .ints = { [1] = labels }, .scale = 30 },
    { .dim = { { 2, 5 }, { 2 } }, .ints = { [1] = none } }, /* no label: 0, not NaN */
    { .dim = { { 2, 1 }, { 2 } }, .ints = { [1] = zero }, .scale = 1e4 },
};
const ses_op ses_op_label_smoothing = {
    .name = "label_smoothing",
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_label_smoothing(ses_tape *t, ses_tensor *x, ses_tensor *label)
{
    return ses_apply(t, &ses_op_label_smoothing, SES_IN(x, label), NULL);
}
