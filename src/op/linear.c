/* y = act(x w' + b): x [T, K], w [N, K] as checkpoints store it, b [N] or none. */
#include "op.h"

#include "tensor/pack.h"

typedef struct attr {
    ses_act act;
} attr;

static bool infer(ses_node *n, ses_err *e)
{
    const ses_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2];
    const attr *a = n->attr;
    if (!ses_want_input(n, 0, "x", e) || !ses_want_input(n, 1, "weight", e)) return false;
    if (ses_rank(w) != 2 || w->dim[1] != ses_cols(x))
        return ses_fail(e, SES_EARG, "weight must be [N, %lld]", (long long)ses_cols(x));
    if (b && ses_count(b) != w->dim[0])
        return ses_fail(e, SES_EARG, "bias must have %lld entries", (long long)w->dim[0]);
    if (!ses_node_out(n, SES_DIM(ses_rows(x), w->dim[0]), e)) return false;
    bool keep_pre = a->act != SES_ACT_NONE && ses_node_keeps(n);
    return !keep_pre || ses_node_save(n, 0, ses_count(n->out), e);
}

static void forward(const ses_node *n)
{
    const ses_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2];
    ses_gemm g = ses_gemm_nt(n->out->f, x->f, w->f, ses_rows(x), w->dim[0], w->dim[1]);
    g.packed = ses_packed(w, n->k, n->exec);
    g.bias = b ? b->f : NULL;
    g.act = ((const attr *)n->attr)->act;
    g.pre = n->saved[0];
    n->k->gemm(n->exec, &g);
}

static void backward(const ses_node *n)
{
    const ses_tensor *x = n->in[0], *w = n->in[1];
    const attr *a = n->attr;
    int64_t M = ses_rows(x), N = w->dim[0], K = w->dim[1];
    ses_real *dz = n->out->grad; /* done with dy: its buffer takes the gradient of x w' + b */
    if (a->act != SES_ACT_NONE)
        n->k->act_bwd(n->exec, (ses_sink){ dz, false }, dz, n->saved[0], M * N, a->act);

    ses_sink dx = ses_grad(n, 0), dw = ses_grad(n, 1);
    ses_gemm gx = ses_gemm_nn(dx.data, dz, w->f, M, K, N), gw = ses_gemm_tn(dw.data, dz, x->f, N, K, M);
    gx.add = dx.add;
    gw.add = dw.add;
    if (dx.data) n->k->gemm(n->exec, &gx);
    if (dw.data) n->k->gemm(n->exec, &gw);
    ses_real *db = ses_grad_zeroed(n, 2);
    if (db) n->k->col_sum(n->exec, db, dz, M, N);
}

static const ses_case cases[] = {
    { .dim = { { 5, 7 }, { 9, 7 }, { 9 } }, .attr = &(const attr){ SES_ACT_NONE } },
    { .dim = { { 5, 7 }, { 9, 7 } }, .attr = &(const attr){ SES_ACT_NONE } }, /* no bias */
    { .dim = { { 2, 3, 16 }, { 50, 16 }, { 50 } }, .attr = &(const attr){ SES_ACT_GELU } },
    { .dim = { { 17, 33 }, { 49, 33 }, { 49 } }, .attr = &(const attr){ SES_ACT_TANH } },
    { .dim = { { 1, 5 }, { 1, 5 }, { 1 } }, .attr = &(const attr){ SES_ACT_SILU } }, /* one row, one column */
    { .dim = { { 3, 1 }, { 4, 1 }, { 4 } }, .attr = &(const attr){ SES_ACT_GELU_TANH } },
    { .dim = { { 3, 900 }, { 7, 900 }, { 7 } },
      .attr = &(const attr){ SES_ACT_SIGMOID } }, /* several passes of K */
    { .dim = { { 4, 8 }, { 6, 8 }, { 6 } }, .attr = &(const attr){ SES_ACT_NONE }, .scale = 1e4 },
};
const ses_op ses_op_linear = {
    .name = "linear",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_linear(ses_tape *t, ses_tensor *x, ses_tensor *w, ses_tensor *bias, ses_act act)
{
    return ses_apply(t, &ses_op_linear, SES_IN(x, w, bias), &(attr){ act });
}
