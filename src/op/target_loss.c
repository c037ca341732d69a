/* Mean over all elements of a loss between x and a target without gradient: squared error (target NULL:
 * zeros), or binary cross entropy max(x, 0) - x t + log(1 + exp(-|x|)). */
#include "op.h"

typedef struct attr {
    ses_loss kind;
} attr;

static bool infer(ses_node *n, ses_err *e)
{
    bool zeros = !n->in[1] && ((const attr *)n->attr)->kind == SES_LOSS_MSE;
    if (!ses_check_input(n, 0, "x", e) || (!zeros && !ses_check_input(n, 1, "target", e))) return false;
    if (!zeros && ses_count(n->in[0]) != ses_count(n->in[1]))
        return ses_fail(e, SES_EARG, "%lld targets for %lld outputs", (long long)ses_count(n->in[1]),
                        (long long)ses_count(n->in[0]));
    n->out =
        ses_node_save(n, 0, 1, e) ? ses_tensor_wrap(n->tape, n->saved[0], SES_REAL, SES_DIM(1), e) : NULL;
    return n->out != NULL;
}

static void forward(const ses_node *n)
{
    bool binary = ((const attr *)n->attr)->kind == SES_LOSS_BCE;
    (binary ? n->k->bce : n->k->mse)(n->exec, n->out->f, n->in[0]->f, ses_input_f32(n, 1),
                                     ses_count(n->in[0]));
}

static void backward(const ses_node *n)
{
    bool binary = ((const attr *)n->attr)->kind == SES_LOSS_BCE;
    (binary ? n->k->bce_bwd : n->k->mse_bwd)(n->exec, ses_grad(n, 0), n->out->grad, n->in[0]->f,
                                             ses_input_f32(n, 1), ses_count(n->in[0]));
}

static const attr square = { SES_LOSS_MSE }, binary = { SES_LOSS_BCE };
static const ses_case cases[] = {
    { .dim = { { 3, 7 }, { 3, 7 } }, .attr = &square, .constant = 2 },
    { .dim = { { 1 }, { 1 } }, .attr = &square, .constant = 2 },
    { .dim = { { 5, 33 }, { 5, 33 } }, .attr = &square, .constant = 2, .scale = 1e4 },
    { .dim = { { 3, 7 } }, .attr = &square }, /* zeros */
    { .dim = { { 9, 999 } }, .attr = &square },
    { .dim = { { 3, 7 }, { 3, 7 } }, .attr = &binary, .constant = 2 },
    { .dim = { { 1 }, { 1 } }, .attr = &binary, .constant = 2 },
    { .dim = { { 5, 33 }, { 5, 33 } }, .attr = &binary, .constant = 2, .scale = 1e4 },
};
const ses_op ses_op_target_loss = {
    .name = "target_loss",
    .f32_inputs = 1 << 1,
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_target_loss(ses_tape *t, ses_tensor *x, ses_tensor *target, ses_loss kind)
{
    return ses_apply(t, &ses_op_target_loss, SES_IN(x, target), &(attr){ kind });
}
