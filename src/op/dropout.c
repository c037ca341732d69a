/* Each element is 0 with probability p, else divided by 1 - p. The random number is a function of the step,
 * the call within the step and the element, so that backward draws it again and nothing is stored. */
#include "op.h"

typedef struct attr {
    double p;
    ses_rng_key key;
} attr;

static bool infer(ses_node *n, ses_err *e)
{
    const attr *a = n->attr;
    if (!(a->p >= 0 && a->p < 1))
        return ses_fail(e, SES_EARG, "rate %g, expected at least 0 and below 1", a->p);
    return ses_check_input(n, 0, "x", e) && ses_node_out(n, n->in[0]->dim, e);
}

static void forward(const ses_node *n)
{
    const attr *a = n->attr;
    n->k->dropout(n->exec, (ses_dst){ n->out->f, false }, n->in[0]->f, ses_count(n->out), a->p, a->key);
}

static void backward(const ses_node *n)
{
    const attr *a = n->attr;
    ses_dst dx = ses_grad(n, 0);
    if (dx.data) n->k->dropout(n->exec, dx, n->out->grad, ses_count(n->out), a->p, a->key);
}

static const ses_case cases[] = {
    { .dim = { { 5, 33 } }, .attr = &(const attr){ 0.1, { 1, 2, 3 } } },
    { .dim = { { 1 } }, .attr = &(const attr){ 0.5, { 1, 2, 3 } } },
    { .dim = { { 100 } }, .attr = &(const attr){ 0.9, { 1, 2, 4 } }, .scale = 1e4 },
};
const ses_op ses_op_dropout = {
    .name = "dropout",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_dropout(ses_tape *t, ses_tensor *x, double p)
{
    /* consumes a site even if nothing is drawn: later sites keep their numbers */
    attr a = { p, ses_tape_rng_key(t) };
    if (p == 0 || !ses_tape_training(t)) return x;
    return ses_apply(t, &ses_op_dropout, SES_IN(x), &a);
}
