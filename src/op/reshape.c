/* The same elements with other axes; forward copies nothing. */
#include "op.h"

#include <string.h>

typedef struct attr {
    int64_t dim[SES_MAX_DIM];
} attr;

static bool infer(ses_node *n, ses_err *e)
{
    const attr *a = n->attr;
    if (!ses_check_input(n, 0, "x", e)) return false;
    n->out = ses_tensor_wrap(n->tape, n->in[0]->data, n->dtype, a->dim, e);
    if (!n->out) return false;
    if (ses_count(n->out) == ses_count(n->in[0])) return true;
    return ses_fail(e, SES_EARG, "%lld elements cannot be reshaped to %lld", (long long)ses_count(n->in[0]),
                    (long long)ses_count(n->out));
}

static void forward(const ses_node *n) { (void)n; }

static void backward(const ses_node *n)
{
    if (ses_grad_donate(n, 0)) return;
    ses_dst dx = ses_grad(n, 0);
    if (dx.data) n->k->scale(n->exec, dx, n->out->grad, 1, ses_count(n->out));
}

static const ses_case cases[] = {
    { .dim = { { 3, 4 } }, .attr = &(const attr){ { 2, 6 } } },
    { .dim = { { 12, 1 } }, .attr = &(const attr){ { 3, 2, 2 } } },
};
const ses_op ses_op_reshape = {
    .name = "reshape",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_reshape(ses_tape *t, ses_tensor *x, const int64_t dim[SES_MAX_DIM])
{
    attr a;
    memcpy(a.dim, dim, sizeof a.dim);
    return ses_apply(t, &ses_op_reshape, SES_IN(x), &a);
}
