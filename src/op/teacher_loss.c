/* Distillation loss: mean over rows of the distance of x [R, N] to the teacher's output y, which gets no
 * gradient. Kinds: T^2 KL(softmax(y / T) || softmax(x / T)), 1 - cos(x, y), or mean squared error. */
#include "op.h"

typedef struct attr {
    ses_teacher_loss_kind kind;
    double temperature;
} attr;

enum { LOSS, STAT };

static bool infer(ses_node *n, ses_err *e)
{
    const ses_tensor *x = n->in[0];
    if (!ses_check_input(n, 0, "x", e) || !ses_check_input(n, 1, "y", e)) return false;
    if (!ses_same_shape(x, n->in[1])) return ses_fail(e, SES_EARG, "x and y must have the same shape");
    if (!ses_node_save(n, LOSS, 1, e) || !ses_node_save(n, STAT, 3 * ses_rows(x), e)) return false;
    n->out = ses_tensor_wrap(n->tape, n->saved[LOSS], SES_REAL, SES_DIM(1), e);
    return n->out != NULL;
}

static void forward(const ses_node *n)
{
    const attr *a = n->attr;
    const ses_tensor *x = n->in[0];
    n->k->teacher_loss(n->exec, n->saved[LOSS], n->saved[STAT], x->f, n->in[1]->f, ses_rows(x), ses_cols(x),
                       a->kind, a->temperature);
}

static void backward(const ses_node *n)
{
    const attr *a = n->attr;
    const ses_tensor *x = n->in[0];
    n->k->teacher_loss_bwd(n->exec, ses_grad(n, 0), n->out->grad, n->saved[STAT], x->f, n->in[1]->f,
                           ses_rows(x), ses_cols(x), a->kind, a->temperature);
}

static const attr soft = { SES_TEACHER_KL, 2 }, plain = { SES_TEACHER_KL, 1 },
                  cosine = { SES_TEACHER_COSINE, 1 }, square = { SES_TEACHER_MSE, 1 };
static const ses_case cases[] = {
    { .dim = { { 3, 7 }, { 3, 7 } }, .attr = &soft, .constant = 2 },
    { .dim = { { 4, 33 }, { 4, 33 } }, .attr = &plain, .constant = 2, .scale = 10 },
    { .dim = { { 2, 1 }, { 2, 1 } }, .attr = &soft, .constant = 2 }, /* one class: 0 */
    { .dim = { { 3, 7 }, { 3, 7 } }, .attr = &cosine, .constant = 2 },
    { .dim = { { 5, 40 }, { 5, 40 } }, .attr = &cosine, .constant = 2, .scale = 100 },
    { .dim = { { 3, 7 }, { 3, 7 } }, .attr = &square, .constant = 2 },
    { .dim = { { 5, 33 }, { 5, 33 } }, .attr = &square, .constant = 2, .scale = 1e4 },
};
const ses_op ses_op_teacher_loss = {
    .name = "teacher_loss",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_teacher_loss(ses_tape *t, ses_tensor *x, ses_tensor *y, ses_teacher_loss_kind kind,
                             double temperature)
{
    return ses_apply(t, &ses_op_teacher_loss, SES_IN(x, y), &(attr){ kind, temperature });
}
