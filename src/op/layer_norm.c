/* y = (s - mean) / sqrt(var + eps) * gain + bias over the last axis, with s = dropout(x) + residual. */
#include "op.h"

typedef struct attr {
    double eps;
    ses_dropout_spec dropout; /* rate 0: none */
    bool inplace;             /* the caller gives x up: s overwrites it */
} attr;

static const ses_dropout_spec *dropout_of(const ses_node *n)
{
    const attr *a = n->attr;
    return a->dropout.rate > 0 ? &a->dropout : NULL;
}

static bool infer(ses_node *n, ses_err *e)
{
    const ses_tensor *x = n->in[0], *residual = n->in[1], *gain = n->in[2], *bias = n->in[3];
    if (!ses_check_input(n, 0, "x", e) || !ses_check_input(n, 2, "gain", e)) return false;
    if (residual && !ses_same_shape(x, residual))
        return ses_fail(e, SES_EARG, "the residual must have the shape of x");
    if (ses_count(gain) != ses_cols(x) || !ses_same_shape(gain, bias))
        return ses_fail(e, SES_EARG, "gain and bias must have %lld entries", (long long)ses_cols(x));
    if (dropout_of(n) && dropout_of(n)->rate >= 1)
        return ses_fail(e, SES_EARG, "dropout rate %g, expected at least 0 and below 1", dropout_of(n)->rate);
    if (!ses_node_out(n, x->dim, e)) return false;
    bool needs_backward = ses_node_needs_backward(n), sums = (needs_backward && residual) || dropout_of(n);
    const attr *a = n->attr;
    if (sums && a->inplace) n->saved[1] = x->f;
    return (!needs_backward || ses_node_save(n, 0, 2 * ses_rows(x), e)) &&
           (!sums || n->saved[1] || ses_node_save_elems(n, 1, ses_count(x), e));
}

static void forward(const ses_node *n)
{
    const attr *a = n->attr;
    const ses_tensor *x = n->in[0], *residual = n->in[1];
    n->k->norm(n->exec, n->out->f, n->saved[1], n->saved[0], x->f, residual ? residual->f : NULL,
               ses_input_f32(n, 2), ses_input_f32(n, 3), ses_rows(x), ses_cols(x), a->eps, dropout_of(n));
}

static void backward(const ses_node *n)
{
    const ses_tensor *x = n->in[0];
    ses_dst dx = ses_grad(n, 0), dres = ses_grad(n, 1);
    ses_real *dgain = ses_grad_vector(n, 2), *dbias = ses_grad_vector(n, 3);
    n->k->norm_bwd(n->exec, dx, dres, dgain, dbias, n->out->grad, n->saved[1] ? n->saved[1] : x->f,
                   n->saved[0], ses_input_f32(n, 2), ses_rows(x), ses_cols(x), dropout_of(n));
}

static const ses_case cases[] = {
    { .dim = { { 4, 7 }, { 0 }, { 7 }, { 7 } }, .attr = &(const attr){ 1e-5 } }, /* no residual */
    { .dim = { { 2, 3, 16 }, { 2, 3, 16 }, { 16 }, { 16 } },
      .attr = &(const attr){ 1e-12 } }, /* BERT's epsilon */
    { .dim = { { 65, 33 }, { 65, 33 }, { 33 }, { 33 } }, .attr = &(const attr){ 1e-12 } },
    { .dim = { { 3, 1 }, { 3, 1 }, { 1 }, { 1 } }, .attr = &(const attr){ 1e-5 } },
    { .dim = { { 2, 770 }, { 2, 770 }, { 770 }, { 770 } }, .attr = &(const attr){ 1e-12 }, .scale = 1e4 },
    { .dim = { { 37, 45 }, { 37, 45 }, { 45 }, { 45 } },
      .attr = &(const attr){ 1e-12, { 0.3, { 1, 2, 3 } } } },
    { .dim = { { 9, 520 }, { 9, 520 }, { 520 }, { 520 } },
      .attr = &(const attr){ 1e-12, { 0.1, { 4, 5, 6 } } } },
    { .dim = { { 21, 24 }, { 0 }, { 24 }, { 24 } }, .attr = &(const attr){ 1e-5, { 0.5, { 1, 1, 1 } } } },
};
const ses_op ses_op_layer_norm = {
    .name = "layer_norm",
    .f32_inputs = 1 << 2 | 1 << 3,
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_layer_norm(ses_tape *t, ses_tensor *x, ses_tensor *residual, ses_tensor *gain,
                           ses_tensor *bias, double eps)
{
    return ses_apply(t, &ses_op_layer_norm, SES_IN(x, residual, gain, bias), &(attr){ .eps = eps });
}

ses_tensor *ses_layer_norm_dropout(ses_tape *t, ses_tensor *x, double rate, ses_tensor *residual,
                                   ses_tensor *gain, ses_tensor *bias, double eps)
{
    attr a = { eps, { rate, ses_tape_rng_key(t) }, true }; /* consumes a site even if nothing is drawn */
    if (!ses_tape_training(t)) a.dropout.rate = 0;
    return ses_apply(t, &ses_op_layer_norm, SES_IN(x, residual, gain, bias), &a);
}
