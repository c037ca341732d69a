/* One row per sequence: its first token, the mean, or the maximum of each column. x [T, C], y [B, C]. */
#include "op.h"

typedef struct attr {
    ses_pool_kind kind;
} attr;

static bool infer(ses_node *n, ses_err *e)
{
    const attr *a = n->attr;
    if (!ses_check_input(n, 0, "x", e) || !ses_check_ints(n, 1, "cu_seqlens", e)) return false;
    if (!ses_node_out(n, SES_DIM(ses_count(n->in[1]) - 1, ses_cols(n->in[0])), e)) return false;
    return a->kind != SES_POOL_MAX || ses_node_save(n, 0, ses_count(n->out), e); /* argmax, int32 */
}

static void forward(const ses_node *n)
{
    const attr *a = n->attr;
    n->k->pool(n->exec, n->out->f, (int32_t *)(void *)n->saved[0], n->in[0]->f, n->in[1]->i, ses_rows(n->out),
               ses_cols(n->out), a->kind);
}

static void backward(const ses_node *n)
{
    const attr *a = n->attr;
    ses_dst dx = ses_grad_zeroed(n, 0);
    if (dx.data)
        n->k->pool_bwd(n->exec, dx, n->out->grad, (const int32_t *)(const void *)n->saved[0], n->in[1]->i,
                       ses_rows(n->out), ses_cols(n->out), a->kind);
}

static const int32_t case_cu_seqlens[] = { 0, 3, 4, 9 };
static const ses_case cases[] = {
    { .dim = { { 9, 7 }, { 4 } },
      .ints = { [1] = case_cu_seqlens },
      .attr = &(const attr){ SES_POOL_FIRST } },
    { .dim = { { 9, 33 }, { 4 } },
      .ints = { [1] = case_cu_seqlens },
      .attr = &(const attr){ SES_POOL_MEAN } },
    { .dim = { { 9, 1 }, { 4 } },
      .ints = { [1] = case_cu_seqlens },
      .attr = &(const attr){ SES_POOL_MEAN },
      .scale = 1e4 },
    { .dim = { { 9, 33 }, { 4 } }, .ints = { [1] = case_cu_seqlens }, .attr = &(const attr){ SES_POOL_MAX } },
    { .dim = { { 9, 1 }, { 4 } }, .ints = { [1] = case_cu_seqlens }, .attr = &(const attr){ SES_POOL_MAX } },
};
const ses_op ses_op_pool_rows = {
    .name = "pool_rows",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_pool_rows(ses_tape *t, ses_tensor *x, ses_tensor *cu_seqlens, ses_pool_kind kind)
{
    return ses_apply(t, &ses_op_pool_rows, SES_IN(x, cu_seqlens), &(attr){ kind });
}
