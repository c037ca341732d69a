/* Cross entropy over the positions of a sequence (start and end of an answer). Column c of x [T, J] scores
 * each token; the loss of sequence s compares label[s, c] with the tokens of s. Mean over sequences for each
 * column, then over columns. */
#include "op.h"

/* saved 0: loss, then the weight of each column (the output is a view of the loss); 1: log-sum-exp [B, J]. */
static bool infer(ses_node *n, ses_err *e)
{
    if (!ses_check_input(n, 0, "x", e) || !ses_check_ints(n, 1, "cu_seqlens", e) ||
        !ses_check_ints(n, 2, "labels", e))
        return false;
    int64_t seqs = ses_count(n->in[1]) - 1, cols = ses_cols(n->in[0]);
    if (ses_count(n->in[2]) != seqs * cols)
        return ses_fail(e, SES_EARG, "%lld labels for %lld sequences and %lld columns",
                        (long long)ses_count(n->in[2]), (long long)seqs, (long long)cols);
    if (!ses_node_save(n, 0, 1 + cols, e) || !ses_node_save(n, 1, seqs * cols, e)) return false;
    n->out = ses_tensor_wrap(n->tape, n->saved[0], SES_REAL, SES_DIM(1), e);
    return n->out != NULL;
}

static void forward(const ses_node *n)
{
    n->k->xent_span(n->exec, n->saved[0], n->saved[1], n->in[0]->f, n->in[1]->i, n->in[2]->i,
                    ses_count(n->in[1]) - 1, ses_cols(n->in[0]));
}

static void backward(const ses_node *n)
{
    n->k->xent_span_bwd(n->exec, ses_grad(n, 0), n->out->grad, n->saved[0], n->saved[1], n->in[0]->f,
                        n->in[1]->i, n->in[2]->i, ses_count(n->in[1]) - 1, ses_cols(n->in[0]));
}

static const int32_t cu_seqlens[] = { 0, 3, 4, 9 }, spans[] = { 0, 2, 0, 0, 1, 4 },
                     some[] = { 1, SES_IGNORE_INDEX, 3 };
static const ses_case cases[] = {
    { .dim = { { 9, 2 }, { 4 }, { 6 } }, .ints = { [1] = cu_seqlens, [2] = spans } },
    { .dim = { { 9, 1 }, { 4 }, { 3 } }, .ints = { [1] = cu_seqlens, [2] = some }, .scale = 30 },
};
const ses_op ses_op_span_cross_entropy = {
    .name = "span_cross_entropy",
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_span_cross_entropy(ses_tape *t, ses_tensor *x, ses_tensor *offsets, ses_tensor *label)
{
    return ses_apply(t, &ses_op_span_cross_entropy, SES_IN(x, offsets, label), NULL);
}
