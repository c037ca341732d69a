/* loss = mean over sequences of the negative log likelihood of their labels in a linear-chain CRF: see
 * ses_crf_chain. Inputs: x [T, L], trans [L, L], start [L], end [L], labels [T], cu_seqlens [B + 1]. */
#include "op.h"

#include "tensor/device_impl.h"

enum { MAX_LABELS = 4096 };

static bool check_shapes(const ses_node *n, ses_err *e)
{
    const ses_tensor *x = n->in[0], *cu = n->in[5];
    int64_t L = ses_cols(x), T = ses_rows(x), last = ses_count(cu) - 1;
    if (L > MAX_LABELS)
        return ses_fail(e, SES_EUNSUPPORTED, "%lld labels; a CRF has at most %d", (long long)L, MAX_LABELS);
    if (ses_count(n->in[1]) != L * L || ses_count(n->in[2]) != L || ses_count(n->in[3]) != L)
        return ses_fail(e, SES_EARG, "transitions must be [%lld, %lld], start and end [%lld]", (long long)L,
                        (long long)L, (long long)L);
    if (ses_count(n->in[4]) != T)
        return ses_fail(e, SES_EARG, "%lld labels for %lld rows", (long long)ses_count(n->in[4]),
                        (long long)T);
    for (int64_t s = 0; s < last && ses_tape_device(n->tape)->is_host; s++)
        if (cu->i[s] > cu->i[s + 1] || cu->i[0] || cu->i[last] != T)
            return ses_fail(e, SES_EARG, "cu_seqlens must rise from 0 to %lld", (long long)T);
    return ses_check_range(n, 4, L, true, "label", e);
}

/* saved 0: loss, 1 / count, loss of each sequence (the output is a view of the loss); 1: alpha. */
static bool infer(ses_node *n, ses_err *e)
{
    static const char *const name[] = { "x", "transitions", "start", "end" };
    for (int i = 0; i < 4; i++)
        if (!ses_check_input(n, i, name[i], e)) return false;
    if (!ses_check_ints(n, 4, "labels", e) || !ses_check_ints(n, 5, "cu_seqlens", e)) return false;
    if (!check_shapes(n, e) || !ses_node_save(n, 0, 2 + ses_count(n->in[5]), e) ||
        !ses_node_save(n, 1, ses_count(n->in[0]), e))
        return false;
    n->out = ses_tensor_wrap(n->tape, n->saved[0], SES_REAL, SES_DIM(1), e);
    return n->out != NULL;
}

static ses_crf_chain crf_of(const ses_node *n)
{
    return (ses_crf_chain){ .seqs = ses_count(n->in[5]) - 1,
                            .labels = ses_cols(n->in[0]),
                            .cu_seqlens = n->in[5]->i,
                            .label = n->in[4]->i,
                            .x = n->in[0]->f,
                            .trans = ses_input_f32(n, 1),
                            .start = ses_input_f32(n, 2),
                            .end = ses_input_f32(n, 3),
                            .alpha = n->saved[1],
                            .loss = n->saved[0] };
}

static void forward(const ses_node *n)
{
    ses_crf_chain c = crf_of(n);
    n->k->crf(n->exec, &c);
}

static void backward(const ses_node *n)
{
    ses_crf_chain c = crf_of(n);
    int64_t reals = (int64_t)(sizeof(double) / sizeof(ses_real)) * ses_crf_work(c.labels);
    ses_crf_grad g = { .dloss = n->out->grad, .work = (double *)(void *)ses_scratch(n, reals) };
    if (!g.work) return;
    g.dx = ses_grad(n, 0), g.dtrans = ses_grad(n, 1), g.dstart = ses_grad(n, 2), g.dend = ses_grad(n, 3);
    n->k->crf_bwd(n->exec, &c, &g);
}

static const int32_t cu[] = { 0, 3, 4, 9 }, empty[] = { 0, 0, 5, 5, 9 },
                     labels[] = { 0, 2, 1, 2, 1, 1, 0, 2, 1 },
                     some[] = { 0, -100, 1, -100, -100, 1, 0, 2, -100 }, zeros[9], none[] = { -100, -100 },
                     one[] = { 0, 2 };
static const ses_case cases[] = {
    { .dim = { { 9, 3 }, { 3, 3 }, { 3 }, { 3 }, { 9 }, { 4 } }, .ints = { [4] = labels, [5] = cu } },
    { .dim = { { 9, 17 }, { 17, 17 }, { 17 }, { 17 }, { 9 }, { 4 } }, .ints = { [4] = some, [5] = cu } },
    { .dim = { { 9, 5 }, { 5, 5 }, { 5 }, { 5 }, { 9 }, { 5 } },
      .ints = { [4] = labels, [5] = empty },
      .scale = 20,
      .tol = 5e-5 },
    { .dim = { { 9, 1 }, { 1, 1 }, { 1 }, { 1 }, { 9 }, { 4 } }, .ints = { [4] = zeros, [5] = cu } },
    { .dim = { { 2, 3 }, { 3, 3 }, { 3 }, { 3 }, { 2 }, { 2 } }, .ints = { [4] = none, [5] = one } },
    { .dim = { { 9, 3 }, { 3, 3 }, { 3 }, { 3 }, { 9 }, { 4 } },
      .ints = { [4] = labels, [5] = cu },
      .scale = 1e4,
      .tol = 5e-5 },
};
const ses_op ses_op_crf = {
    .name = "crf",
    .f32_inputs = 1u << 1 | 1u << 2 | 1u << 3,
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_crf(ses_tape *t, ses_tensor *x, ses_tensor *trans, ses_tensor *start, ses_tensor *end,
                    ses_tensor *label, ses_tensor *offsets)
{
    return ses_apply(t, &ses_op_crf, SES_IN(x, trans, start, end, label, offsets), NULL);
}
