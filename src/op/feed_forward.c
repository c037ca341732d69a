/* y = act(x u' + a) d' + b: x [T, K], u [F, K], d [N, F] (or [K, F], [F, N]), a [F] and b [N] or NULL. Saves
 * only the pre-activation [T, F]; backward overwrites it by the recomputed activation. */
#include "gemm_weight.h"

enum { X, UP, UP_BIAS, DOWN, DOWN_BIAS };

typedef struct attr {
    ses_act act;
    ses_weight_layout layout;
} attr;

typedef struct sizes {
    int64_t T, K, F, N;
} sizes;

static sizes sizes_of(const ses_node *n)
{
    ses_weight_layout layout = ((const attr *)n->attr)->layout;
    return (sizes){ ses_rows(n->in[X]), ses_cols(n->in[X]), ses_weight_out(n->in[UP], layout),
                    ses_weight_out(n->in[DOWN], layout) };
}

static bool shapes_match(const ses_tensor *w, ses_weight_layout layout, int64_t inputs,
                         const ses_tensor *bias)
{
    return ses_rank(w) == 2 && ses_weight_in(w, layout) == inputs &&
           (!bias || ses_count(bias) == ses_weight_out(w, layout));
}

static bool infer(ses_node *n, ses_err *e)
{
    ses_weight_layout layout = ((const attr *)n->attr)->layout;
    if (!ses_check_input(n, X, "x", e) || !ses_check_input(n, UP, "up weight", e) ||
        !ses_check_input(n, DOWN, "down weight", e))
        return false;
    sizes z = sizes_of(n);
    if (!shapes_match(n->in[UP], layout, z.K, n->in[UP_BIAS]) ||
        !shapes_match(n->in[DOWN], layout, z.F, n->in[DOWN_BIAS]))
        return ses_fail(e, SES_EARG,
                        "weights must have %lld and %lld inputs, and biases one entry per output",
                        (long long)z.K, (long long)z.F);
    return ses_node_out(n, SES_DIM(z.T, z.N), e) &&
           (!ses_node_needs_backward(n) || ses_node_save_elems(n, 0, z.T * z.F, e));
}

static void forward(const ses_node *n)
{
    const attr *a = n->attr;
    sizes z = sizes_of(n);
    ses_real *h = ses_scratch_elems(n, z.T * z.F);
    if (!h) return;
    ses_gemm up = ses_gemm_for_weight(h, n->in[X]->f, n->in[UP], a->layout, z.T, z.F, z.K);
    ses_gemm down = ses_gemm_for_weight(n->out->f, h, n->in[DOWN], a->layout, z.T, z.N, z.F);
    up.bias = n->in[UP_BIAS] ? n->in[UP_BIAS]->f : NULL;
    up.act = a->act;
    up.pre_act = n->saved[0];
    down.bias = n->in[DOWN_BIAS] ? n->in[DOWN_BIAS]->f : NULL;
    ses_gemm_weight(n, &up, n->in[X], n->in[UP], a->layout, NULL);
    ses_gemm_weight(n, &down, NULL, n->in[DOWN], a->layout, NULL);
}

/* dh becomes the gradient of the pre-activation; pre becomes its activation. */
static void act_backward(const ses_node *n, ses_real *dh, ses_real *pre, sizes z)
{
    ses_act act = ((const attr *)n->attr)->act;
    ses_dst dz = { .data = dh }, sum = ses_grad_zeroed(n, UP_BIAS);
    if (sum.data) {
        n->k->act_bwd_sum(n->exec, dz, sum, pre, dh, pre, z.T, z.F, act);
    } else {
        n->k->act_bwd(n->exec, dz, dh, pre, z.T * z.F, act);
        n->k->act(n->exec, pre, pre, z.T * z.F, act);
    }
}

static void backward(const ses_node *n)
{
    const attr *a = n->attr;
    sizes z = sizes_of(n);
    const ses_real *dy = n->out->grad;
    ses_real *pre = n->saved[0], *dh = ses_scratch_elems(n, z.T * z.F);
    const ses_dst none = { .data = NULL };
    if (!dh) return;
    ses_dst db = ses_grad_zeroed(n, DOWN_BIAS);
    if (db.data) n->k->col_sum(n->exec, db, dy, z.T, z.N, z.N);
    ses_gemm_weight_bwd(n, (ses_dst){ .data = dh }, none, dy, NULL, n->in[DOWN], a->layout, z.T, z.N, z.F);
    act_backward(n, dh, pre, z);
    ses_gemm_weight_bwd(n, none, ses_grad(n, DOWN), dy, pre, n->in[DOWN], a->layout, z.T, z.N, z.F);
    ses_dst dx = ses_grad(n, X), dw = ses_grad(n, UP);
    ses_gemm_weight_bwd(n, dx, dw, dh, n->in[X]->f, n->in[UP], a->layout, z.T, z.F, z.K);
}

static const ses_case cases[] = {
    { .dim = { { 5, 7 }, { 9, 7 }, { 9 }, { 6, 9 }, { 6 } },
      .attr = &(const attr){ SES_ACT_GELU, SES_OUT_IN } },
    { .dim = { { 5, 7 }, { 9, 7 }, { 0 }, { 6, 9 } },
      .attr = &(const attr){ SES_ACT_GELU_TANH, SES_OUT_IN } },
    { .dim = { { 2, 3, 16 }, { 16, 48 }, { 48 }, { 48, 16 }, { 16 } },
      .attr = &(const attr){ SES_ACT_GELU, SES_IN_OUT } },
    { .dim = { { 1, 1 }, { 1, 1 }, { 1 }, { 1, 1 }, { 1 } },
      .attr = &(const attr){ SES_ACT_SILU, SES_OUT_IN } },
    { .dim = { { 33, 40 }, { 72, 40 }, { 72 }, { 8, 72 }, { 8 } },
      .attr = &(const attr){ SES_ACT_TANH, SES_OUT_IN } },
    { .dim = { { 4, 8 }, { 6, 8 }, { 6 }, { 8, 6 }, { 8 } },
      .attr = &(const attr){ SES_ACT_NONE, SES_OUT_IN },
      .scale = 30 },
};
const ses_op ses_op_feed_forward = {
    .name = "feed_forward",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_feed_forward(ses_tape *t, ses_tensor *x, ses_tensor *up, ses_tensor *up_bias,
                             ses_tensor *down, ses_tensor *down_bias, ses_act act, ses_weight_layout layout)
{
    return ses_apply(t, &ses_op_feed_forward, SES_IN(x, up, up_bias, down, down_bias),
                     &(attr){ act, layout });
}
