/* y = a + w[i] x: one term of a sum with learned weights. a NULL: 0. */
#include "op.h"

#include "tensor/device_impl.h"

typedef struct attr {
    int64_t index;
} attr;

static bool infer(ses_node *n, ses_err *e)
{
    const ses_tensor *a = n->in[0], *x = n->in[1], *w = n->in[2];
    const attr *k = n->attr;
    if (!ses_check_input(n, 1, "x", e) || !ses_check_input(n, 2, "weights", e)) return false;
    if (a && ses_count(a) != ses_count(x)) return ses_fail(e, SES_EARG, "a and x must have the same size");
    if (k->index < 0 || k->index >= ses_count(w))
        return ses_fail(e, SES_EARG, "weight index %lld, expected below %lld", (long long)k->index,
                        (long long)ses_count(w));
    return ses_node_out(n, x->dim, e);
}

/* y = w[i] x. On a GPU the weight is in its memory: it is the weight of a row. */
static void scale(const ses_node *n, ses_dst y, const ses_real *x)
{
    const ses_real *w = ses_input_f32(n, 2) + ((const attr *)n->attr)->index;
    int64_t count = ses_count(n->in[1]);
    if (ses_tape_device(n->tape)->is_host)
        n->k->scale(n->exec, y, x, *w, count);
    else
        n->k->scale_rows(n->exec, y, x, w, 1, count);
}

static void forward(const ses_node *n)
{
    const ses_tensor *a = n->in[0], *x = n->in[1];
    scale(n, (ses_dst){ n->out->f, false }, x->f);
    if (a) n->k->add(n->exec, n->out->f, n->out->f, a->f, ses_count(x));
}

static void backward(const ses_node *n)
{
    const ses_tensor *x = n->in[1];
    int64_t count = ses_count(x);
    ses_dst da = n->in[0] ? ses_grad(n, 0) : (ses_dst){ 0 }, dx = ses_grad(n, 1);
    ses_real *dw = ses_grad_vector(n, 2);
    if (da.data) n->k->scale(n->exec, da, n->out->grad, 1, count);
    if (dx.data) scale(n, dx, n->out->grad);
    if (dw) {
        ses_gemm g = ses_gemm_nt(dw + ((const attr *)n->attr)->index, n->out->grad, x->f, 1, 1, count);
        g.accumulate = g.is_f32 = true;
        n->k->gemm(n->exec, &g);
    }
}

static const ses_case cases[] = {
    { .dim = { { 4, 7 }, { 4, 7 }, { 3 } }, .attr = &(const attr){ 1 } },
    { .dim = { { 0 }, { 5, 33 }, { 4 } }, .attr = &(const attr){ 3 } }, /* a is NULL */
    { .dim = { { 3, 1 }, { 3, 1 }, { 1 } }, .attr = &(const attr){ 0 }, .scale = 1e4 },
};
const ses_op ses_op_add_weighted = {
    .name = "add_weighted",
    .f32_inputs = 1u << 2,
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_add_weighted(ses_tape *t, ses_tensor *a, ses_tensor *x, ses_tensor *w, int64_t index)
{
    return ses_apply(t, &ses_op_add_weighted, SES_IN(a, x, w), &(attr){ index });
}
