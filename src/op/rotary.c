/* Rotary position embedding (Su et al. 2021): rotates pairs of columns by an angle proportional to the
 * position. x [T, C]: the first rotary_cols columns are heads of size dim, the others (values) are copied.
 * positions: ints [T]. */
#include "op.h"

typedef struct attr {
    int64_t rotary_cols, dim;
    double theta;
    bool inplace; /* the caller gives x up: the result overwrites it */
} attr;

static bool infer(ses_node *n, ses_err *e)
{
    const attr *a = n->attr;
    if (!ses_check_input(n, 0, "x", e) || !ses_check_ints(n, 1, "positions", e)) return false;
    if (a->dim < 2 || a->dim % 2 || a->rotary_cols % a->dim || a->rotary_cols > ses_cols(n->in[0]))
        return ses_fail(e, SES_EARG, "%lld rotary columns are not heads of even size %lld",
                        (long long)a->rotary_cols, (long long)a->dim);
    if (ses_count(n->in[1]) != ses_rows(n->in[0]))
        return ses_fail(e, SES_EARG, "%lld positions for %lld tokens", (long long)ses_count(n->in[1]),
                        (long long)ses_rows(n->in[0]));
    if (!a->inplace) return ses_node_out(n, n->in[0]->dim, e);
    n->out = ses_tensor_wrap(n->tape, n->in[0]->data, n->dtype, n->in[0]->dim, e);
    return n->out != NULL;
}

static void run(const ses_node *n, ses_dst y, const ses_real *x, double sign)
{
    const attr *a = n->attr;
    n->k->rotary(n->exec, y, x, n->in[1]->i, ses_rows(n->out), ses_cols(n->out), a->rotary_cols, a->dim,
                 a->theta, sign);
}

static void forward(const ses_node *n) { run(n, (ses_dst){ n->out->f, false }, n->in[0]->f, 1); }

static void backward(const ses_node *n) /* the inverse rotation */
{
    ses_real *dy = n->out->grad;
    ses_dst dx = { ses_grad_donate(n, 0) ? dy : NULL, false };
    if (!dx.data) dx = ses_grad(n, 0);
    if (dx.data) run(n, dx, dy, -1);
}

static const int32_t near[] = { 0, 1, 2, 300, 7 }, far[] = { 37, 38, 47, 48, 31 };
static const ses_case cases[] = {
    { .dim = { { 5, 18 }, { 5 } }, .ints = { [1] = near }, .attr = &(const attr){ 12, 6, 10000 } },
    { .dim = { { 5, 32 }, { 5 } }, .ints = { [1] = near }, .attr = &(const attr){ 32, 32, 160000 } },
    { .dim = { { 2, 2 }, { 2 } },
      .ints = { [1] = near },
      .attr = &(const attr){ 2, 2, 10000 },
      .scale = 1e4 },
    { .dim = { { 5, 192 }, { 5 } }, .ints = { [1] = near }, .attr = &(const attr){ 128, 64, 10000 } },
    { .dim = { { 5, 300 }, { 5 } }, .ints = { [1] = far }, .attr = &(const attr){ 300, 300, 10000 } },
};
const ses_op ses_op_rotary = {
    .name = "rotary",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_rotary(ses_tape *t, ses_tensor *x, ses_tensor *positions, int64_t rotary_cols, int64_t dim,
                       double theta)
{
    return ses_apply(t, &ses_op_rotary, SES_IN(x, positions), &(attr){ rotary_cols, dim, theta, false });
}

ses_tensor *ses_rotary_inplace(ses_tape *t, ses_tensor *x, ses_tensor *positions, int64_t rotary_cols,
                               int64_t dim, double theta)
{
    return ses_apply(t, &ses_op_rotary, SES_IN(x, positions), &(attr){ rotary_cols, dim, theta, true });
}
