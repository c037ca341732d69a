/* softmax(scale q k') v within each sequence and head; q, k, v [tokens, heads * D], see ses_attn. */
#include "op.h"

#include <math.h>

typedef struct attr {
    ses_attention_options o;
    bool want_probs;
    ses_key key;
} attr;

static int64_t head_size(const ses_node *n) { return ses_cols(n->in[0]) / ((const attr *)n->attr)->o.heads; }

static ses_attn arguments(const ses_node *n)
{
    const attr *a = n->attr;
    const ses_tensor *q = n->in[0], *k = n->in[1], *v = n->in[2];
    int64_t D = head_size(n), C = ses_cols(q);
    return (ses_attn){
        .seqs = ses_count(n->in[3]) - 1,
        .heads = a->o.heads,
        .dim = D,
        .max_q = a->o.max_q,
        .max_k = a->o.max_k,
        .cu_q = n->in[3]->i,
        .cu_k = n->in[4]->i,
        .q = q->f,
        .k = k->f,
        .v = v->f,
        .q_row = C,
        .k_row = C,
        .v_row = C,
        .out = n->out->f,
        .out_row = C,
        .lse = n->saved[0],
        .probs = n->aux ? n->aux->f : NULL,
        .scale = (ses_real)(a->o.scale ? a->o.scale : 1 / sqrt((double)D)),
        .causal = a->o.causal,
        .drop = a->o.drop,
        .key = a->key,
    };
}

/* The probabilities' size needs the lengths, which on the host are at hand. */
static int64_t probs_count(const ses_node *n)
{
    const int32_t *cq = n->in[3]->i, *ck = n->in[4]->i;
    int64_t total = 0;
    for (int64_t s = 0; s + 1 < ses_count(n->in[3]); s++)
        total += (int64_t)(cq[s + 1] - cq[s]) * (ck[s + 1] - ck[s]);
    return total * ((const attr *)n->attr)->o.heads;
}

static bool infer(ses_node *n, ses_err *e)
{
    const ses_tensor *q = n->in[0], *k = n->in[1];
    const attr *a = n->attr;
    if (!ses_want_input(n, 0, "q", e) || !ses_want_input(n, 1, "k", e) || !ses_want_input(n, 2, "v", e) ||
        !ses_want_ints(n, 3, "cu_q", e) || !ses_want_ints(n, 4, "cu_k", e))
        return false;
    if (a->o.heads < 1 || ses_cols(q) % a->o.heads)
        return ses_fail(e, SES_EARG, "%lld columns cannot be split among %lld heads", (long long)ses_cols(q),
                        (long long)a->o.heads);
    if (ses_cols(k) != ses_cols(q) || !ses_same_shape(k, n->in[2]) ||
        ses_count(n->in[3]) != ses_count(n->in[4]))
        return ses_fail(e, SES_EARG, "q, k, v and the offsets do not fit each other");
    if (!ses_node_out(n, q->dim, e)) return false;
    if (a->want_probs) {
        int64_t count = probs_count(n);
        ses_real *p = count > 0 && ses_node_save(n, 1, count, e) ? n->saved[1] : NULL;
        n->aux = p ? ses_tensor_over(n->tape, p, SES_REAL, SES_DIM(count), e) : NULL;
        if (!n->aux) return false;
    }
    return !ses_node_keeps(n) || ses_node_save(n, 0, a->o.heads * ses_rows(q), e);
}

static void forward(const ses_node *n)
{
    ses_attn a = arguments(n);
    n->k->attention(n->exec, &a);
}

static void backward(const ses_node *n)
{
    ses_attn a = arguments(n);
    ses_real *delta = ses_scratch(n, a.heads * ses_rows(n->in[0]));
    if (!delta) return;
    ses_sink dq = ses_grad(n, 0), dk = ses_grad(n, 1), dv = ses_grad(n, 2);
    n->k->attention_bwd(n->exec, &a, &(ses_attn_grad){ n->out->grad, dq, dk, dv, delta });
}

static const int32_t three[] = { 0, 3, 4, 9 }, other[] = { 0, 2, 7, 11 }, one[] = { 0, 70 };
static const ses_case cases[] = {
    { .dim = { { 9, 8 }, { 9, 8 }, { 9, 8 }, { 4 }, { 4 } },
      .ints = { [3] = three, [4] = three },
      .attr = &(const attr){ .o = { .heads = 2, .max_q = 5, .max_k = 5 } } },
    { .dim = { { 9, 15 }, { 11, 15 }, { 11, 15 }, { 4 }, { 4 } },
      .ints = { [3] = three, [4] = other }, /* cross */
      .attr = &(const attr){ .o = { .heads = 3, .max_q = 5, .max_k = 5 }, .want_probs = true } },
    { .dim = { { 70, 34 }, { 70, 34 }, { 70, 34 }, { 2 }, { 2 } },
      .ints = { [3] = one, [4] = one },
      .attr = &(const attr){ .o = { .heads = 2, .max_q = 70, .max_k = 70, .causal = true } } },
    { .dim = { { 9, 3 }, { 9, 3 }, { 9, 3 }, { 4 }, { 4 } },
      .ints = { [3] = three, [4] = three }, /* D = 1 */
      .attr =
          &(const attr){ .o = { .heads = 3, .max_q = 5, .max_k = 5, .scale = 0.7 }, .want_probs = true } },
    { .dim = { { 70, 32 }, { 70, 32 }, { 70, 32 }, { 2 }, { 2 } },
      .ints = { [3] = one, [4] = one },
      .attr =
          &(const attr){ .o = { .heads = 2, .max_q = 70, .max_k = 70, .drop = 0.3 }, .key = { 7, 1, 2 } } },
    { .dim = { { 9, 8 }, { 9, 8 }, { 9, 8 }, { 4 }, { 4 } },
      .ints = { [3] = three, [4] = three },
      .scale = 1e4,
      .attr = &(const attr){ .o = { .heads = 2, .max_q = 5, .max_k = 5, .scale = 1e-8 } } },
};
const ses_op ses_op_attention = {
    .name = "attention",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_attention(ses_tape *t, ses_tensor *q, ses_tensor *k, ses_tensor *v, ses_tensor *cu_q,
                          ses_tensor *cu_k, const ses_attention_options *o, ses_tensor **probs)
{
    attr a = { .o = *o, .want_probs = probs != NULL, .key = ses_tape_key(t) };
    if (!ses_tape_training(t)) a.o.drop = 0;
    ses_node *n = ses_run(t, &ses_op_attention, SES_IN(q, k, v, cu_q, cu_k), &a);
    if (probs) *probs = n ? n->aux : NULL;
    return n ? n->out : NULL;
}
