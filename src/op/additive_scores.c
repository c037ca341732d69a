/* Scores of additive attention (Bahdanau et al. 2015): y[s][i][j] = v . tanh(q_i + k_j) for the queries and
 * keys of each sequence. Backward computes the tanh again: it would be [pairs, C]. */
#include "op.h"

enum { Q, K, V, CU_Q, CU_K };

/* Offsets cu must rise from 0 to at most `rows`; `all`: to exactly that. */
static bool check_offsets(const int32_t *cu, int64_t seqs, int64_t rows, bool all, const char *what,
                          ses_err *e)
{
    bool rise = cu[0] == 0;
    for (int64_t s = 0; s < seqs; s++) rise &= cu[s] <= cu[s + 1];
    if (rise && (all ? cu[seqs] == rows : cu[seqs] <= rows)) return true;
    return ses_fail(e, SES_EARG, "offsets of %s must rise from 0 to %lld", what, (long long)rows);
}

static bool infer(ses_node *n, ses_err *e)
{
    ses_tensor *const *in = n->in;
    if (!ses_check_input(n, Q, "q", e) || !ses_check_input(n, K, "k", e) || !ses_check_input(n, V, "v", e) ||
        !ses_check_ints(n, CU_Q, "cu_seqlens_q", e) || !ses_check_ints(n, CU_K, "cu_seqlens_k", e))
        return false;
    if (ses_cols(in[Q]) != ses_cols(in[K]) || ses_count(in[V]) != ses_cols(in[Q]))
        return ses_fail(e, SES_EARG, "q, k and v have %lld, %lld and %lld columns, expected the same number",
                        (long long)ses_cols(in[Q]), (long long)ses_cols(in[K]), (long long)ses_count(in[V]));
    if (ses_count(in[CU_Q]) != ses_count(in[CU_K]))
        return ses_fail(e, SES_EARG, "offsets of queries and keys must have the same length");
    const int32_t *q = ses_node_ints(n, CU_Q), *k = ses_node_ints(n, CU_K);
    int64_t seqs = ses_count(in[CU_Q]) - 1, pairs = 0;
    if (!q || !k) return ses_fail(e, SES_ENOMEM, "out of memory");
    if (!check_offsets(q, seqs, ses_rows(in[Q]), true, "queries", e) ||
        !check_offsets(k, seqs, ses_rows(in[K]), false, "keys", e))
        return false;
    for (int64_t s = 0; s < seqs; s++) pairs += (int64_t)(q[s + 1] - q[s]) * (k[s + 1] - k[s]);
    return ses_node_out(n, SES_DIM(pairs), e);
}

static ses_additive arguments(const ses_node *n)
{
    return (ses_additive){ .seqs = ses_count(n->in[CU_Q]) - 1,
                           .cols = ses_cols(n->in[Q]),
                           .queries = ses_rows(n->in[Q]),
                           .keys = ses_rows(n->in[K]),
                           .cu_seqlens_q = n->in[CU_Q]->i,
                           .cu_seqlens_k = n->in[CU_K]->i,
                           .q = n->in[Q]->f,
                           .k = n->in[K]->f,
                           .v = ses_input_f32(n, V) };
}

static void forward(const ses_node *n)
{
    ses_additive a = arguments(n);
    n->k->additive(n->exec, &a, n->out->f);
}

static void backward(const ses_node *n)
{
    ses_additive a = arguments(n);
    ses_dst dq = ses_grad_zeroed(n, Q), dk = ses_grad_zeroed(n, K);
    n->k->additive_bwd(n->exec, &a, n->out->grad, dq, dk, ses_grad_vector(n, V));
}

static const int32_t three[] = { 0, 3, 4, 9 }, other[] = { 0, 2, 7, 11 }, steps[] = { 0, 1, 2 },
                     ends[] = { 0, 6, 9 };
static const ses_case cases[] = {
    { .dim = { { 9, 7 }, { 11, 7 }, { 7 }, { 4 }, { 4 } }, .ints = { [CU_Q] = three, [CU_K] = other } },
    { .dim = { { 9, 1 }, { 9, 1 }, { 1 }, { 4 }, { 4 } }, .ints = { [CU_Q] = three, [CU_K] = three } },
    { .dim = { { 9, 37 }, { 11, 37 }, { 37 }, { 4 }, { 4 } },
      .ints = { [CU_Q] = three, [CU_K] = other },
      .scale = 1e4,
      .tol = 2e-5,
      .constant = 1u << Q | 1u << K }, /* tanh is 1 or -1, and has no slope */
    /* one step of a decoder: keys of finished sequences follow */
    { .dim = { { 2, 33 }, { 14, 33 }, { 33 }, { 3 }, { 3 } }, .ints = { [CU_Q] = steps, [CU_K] = ends } },
};
const ses_op ses_op_additive_scores = {
    .name = "additive_scores",
    .f32_inputs = 1u << V,
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_additive_scores(ses_tape *t, ses_tensor *q, ses_tensor *k, ses_tensor *v,
                                ses_tensor *cu_seqlens_q, ses_tensor *cu_seqlens_k)
{
    return ses_apply(t, &ses_op_additive_scores, SES_IN(q, k, v, cu_seqlens_q, cu_seqlens_k), NULL);
}
