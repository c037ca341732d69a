/* y = act(x w' + b): x [T, K], w [N, K] (or [K, N]), b [N] or NULL. The second axis of w may be several
 * axes. */
#include "gemm_weight.h"
#include "tensor/device_impl.h"

typedef struct attr {
    ses_act act;
    ses_weight_layout layout;
    bool i8_out; /* quantize the output to int8 if there are enough rows */
    bool gated;  /* the output is act(a) b with x w' + b = a | b; only with int8 output */
} attr;

static int64_t width(const ses_node *n) /* N */
{
    return ses_weight_out(n->in[1], ((const attr *)n->attr)->layout);
}

static bool infer(ses_node *n, ses_err *e)
{
    const ses_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2];
    const attr *a = n->attr;
    bool x_is_i8 = x && x->i8_rows && ses_pack_dtype(w) == SES_I8;
    if ((!x_is_i8 && !ses_check_input(n, 0, "x", e)) || !ses_check_input(n, 1, "weight", e)) return false;
    if (ses_rank(w) < 2 || ses_weight_in(w, a->layout) != ses_cols(x))
        return ses_fail(e, SES_EARG, "weight must have %lld inputs", (long long)ses_cols(x));
    if (!w->data && x->requires_grad && ses_node_needs_backward(n))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "the weight is stored quantized: open the model without packing for gradients");
    if (b && ses_count(b) != width(n))
        return ses_fail(e, SES_EARG, "bias must have %lld entries", (long long)width(n));
    if (a->i8_out && ses_has_enough_rows(n->exec, ses_rows(x), width(n)))
        return ses_node_out_i8(n, SES_DIM(ses_rows(x), width(n) / (a->gated ? 2 : 1)), e);
    if (!ses_node_out(n, SES_DIM(ses_rows(x), width(n)), e)) return false;
    bool keep_pre = a->act != SES_ACT_NONE && ses_node_needs_backward(n);
    return !keep_pre || ses_node_save_elems(n, 0, ses_count(n->out), e);
}

static void forward(const ses_node *n)
{
    const ses_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2];
    const attr *a = n->attr;
    int64_t M = ses_rows(x), N = width(n), K = ses_cols(x);
    ses_gemm g = ses_gemm_for_weight(n->out->f, x->f, w, a->layout, M, N, K);
    g.bias = b ? b->f : NULL;
    g.act = a->gated ? SES_ACT_NONE : a->act;
    g.pre_act = n->saved[0];
    const ses_i8_rows *to = n->out->i8_rows;
    ses_gemm_weight(n, &g, x, w, a->layout,
                    to ? &(ses_gemm_epilogue){ .gated = a->gated, .gate = a->act, .i8_out = *to } : NULL);
}

static void backward(const ses_node *n)
{
    const ses_tensor *x = n->in[0], *w = n->in[1];
    const attr *a = n->attr;
    int64_t M = ses_rows(x), N = width(n), K = ses_cols(x);
    ses_real *dz = n->out->grad; /* overwrites dy by the gradient of x w' + b */
    ses_dst db = ses_grad_zeroed(n, 2);
    if (a->act != SES_ACT_NONE && db.data)
        n->k->act_bwd_sum(n->exec, (ses_dst){ dz, false }, db, NULL, dz, n->saved[0], M, N, a->act);
    else if (a->act != SES_ACT_NONE)
        n->k->act_bwd(n->exec, (ses_dst){ dz, false }, dz, n->saved[0], M * N, a->act);
    else if (db.data)
        n->k->col_sum(n->exec, db, dz, M, N, N);

    ses_dst dx = ses_grad(n, 0), dw = ses_grad(n, 1);
    ses_gemm_weight_bwd(n, dx, dw, dz, x->f, w, a->layout, M, N, K);
}

static const ses_case cases[] = {
    { .dim = { { 5, 7 }, { 9, 7 }, { 9 } }, .attr = &(const attr){ SES_ACT_NONE, SES_OUT_IN } },
    { .dim = { { 5, 7 }, { 9, 7 } }, .attr = &(const attr){ SES_ACT_NONE, SES_OUT_IN } }, /* no bias */
    { .dim = { { 2, 3, 16 }, { 50, 16 }, { 50 } }, .attr = &(const attr){ SES_ACT_GELU, SES_OUT_IN } },
    { .dim = { { 17, 33 }, { 49, 33 }, { 49 } }, .attr = &(const attr){ SES_ACT_TANH, SES_OUT_IN } },
    { .dim = { { 1, 5 }, { 1, 5 }, { 1 } },
      .attr = &(const attr){ SES_ACT_SILU, SES_OUT_IN } }, /* one row, one column */
    { .dim = { { 3, 1 }, { 4, 1 }, { 4 } }, .attr = &(const attr){ SES_ACT_GELU_TANH, SES_OUT_IN } },
    { .dim = { { 3, 900 }, { 7, 900 }, { 7 } },
      .tol = 3e-5,                                            /* slopes are exponentials of sums around 30 */
      .attr = &(const attr){ SES_ACT_SIGMOID, SES_OUT_IN } }, /* K is split into several blocks */
    { .dim = { { 4, 8 }, { 6, 8 }, { 6 } }, .attr = &(const attr){ SES_ACT_NONE, SES_OUT_IN }, .scale = 1e4 },
    { .dim = { { 5, 7 }, { 7, 50 }, { 50 } }, .attr = &(const attr){ SES_ACT_GELU, SES_IN_OUT } },
    { .dim = { { 5, 7 }, { 7, 3, 6 }, { 3, 6 } }, .attr = &(const attr){ SES_ACT_NONE, SES_IN_OUT } },
    { .dim = { { 5, 6 }, { 7, 3, 2 } }, .attr = &(const attr){ SES_ACT_NONE, SES_OUT_IN } },
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

ses_tensor *ses_linear(ses_tape *t, ses_tensor *x, ses_tensor *w, ses_tensor *bias, ses_act act,
                       ses_weight_layout layout)
{
    ses_round_operands(t, &x, &w, layout);
    return ses_apply(t, &ses_op_linear, SES_IN(x, w, bias), &(attr){ act, layout });
}

ses_tensor *ses_linear_i8_out(ses_tape *t, ses_tensor *x, ses_tensor *w, ses_tensor *bias, ses_act act,
                              ses_weight_layout layout)
{
    return ses_apply(t, &ses_op_linear, SES_IN(x, w, bias),
                     &(attr){ act, layout, ses_output_may_be_i8(t, w) });
}

ses_tensor *ses_linear_gated(ses_tape *t, ses_tensor *x, ses_tensor *w, ses_tensor *bias, ses_act act,
                             ses_weight_layout layout)
{
    bool i8_out = x && ses_output_may_be_i8(t, w) &&
                  ses_has_enough_rows(&ses_tape_device(t)->exec, ses_rows(x), ses_weight_out(w, layout));
    if (!i8_out) return ses_glu(t, ses_linear(t, x, w, bias, SES_ACT_NONE, layout), act);
    return ses_apply(t, &ses_op_linear, SES_IN(x, w, bias), &(attr){ act, layout, true, true });
}
