/* y = x[:, from .. from + count - 1]: a range of columns; the inverse of concat. */
#include "op.h"

typedef struct attr {
    int64_t from, count;
} attr;

static bool infer(ses_node *n, ses_err *e)
{
    const attr *a = n->attr;
    if (!ses_check_input(n, 0, "x", e)) return false;
    if (a->from < 0 || a->count < 1 || a->from > ses_cols(n->in[0]) - a->count)
        return ses_fail(e, SES_EARG, "columns %lld to %lld, but x has %lld", (long long)a->from,
                        (long long)(a->from + a->count - 1), (long long)ses_cols(n->in[0]));
    return ses_node_out(n, SES_DIM(ses_rows(n->in[0]), a->count), e);
}

static void forward(const ses_node *n)
{
    const attr *a = n->attr;
    n->k->copy_cols(n->exec, (ses_dst){ n->out->f, false }, a->count, ses_elem_at(n, n->in[0]->f, a->from),
                    ses_cols(n->in[0]), ses_rows(n->out), a->count);
}

static void backward(const ses_node *n)
{
    const attr *a = n->attr;
    ses_dst dx = ses_grad_zeroed(n, 0);
    if (dx.data)
        n->k->copy_cols(n->exec, ses_dst_at(n, dx, a->from), ses_cols(n->in[0]), n->out->grad, a->count,
                        ses_rows(n->out), a->count);
}

static const ses_case cases[] = {
    { .dim = { { 3, 7 } }, .attr = &(const attr){ 2, 3 } },
    { .dim = { { 4, 50 } }, .attr = &(const attr){ 17, 33 }, .scale = 1e4 },
    { .dim = { { 5, 3 } }, .attr = &(const attr){ 0, 1 } },
    { .dim = { { 2, 3, 4 } }, .attr = &(const attr){ 0, 4 } },
};
const ses_op ses_op_columns = {
    .name = "columns",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_columns(ses_tape *t, ses_tensor *x, int64_t from, int64_t count)
{
    return ses_apply(t, &ses_op_columns, SES_IN(x), &(attr){ from, count });
}
