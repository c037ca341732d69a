/* Relations of tokens (MiniLM, Wang et al. 2020, 2021): mean over sequences, heads h and tokens i of
 * KL(softmax_j(yq_i . yk_j / sqrt(dy)) || softmax_j(xq_i . xk_j / sqrt(dx))) over the tokens j of the
 * sequence, with dx and dy columns per head. The teacher's y gets no gradient. Scores are computed sequence
 * by sequence, again in the backward pass, so that memory does not grow with the batch. */
#include "op.h"

#include <math.h>

enum { XQ, XK, YQ, YK, INPUTS };
enum { LOSS, STAT };

typedef struct attr {
    const int32_t *cu_seqlens; /* on the host; must live until the end of the step */
    int64_t seqs, heads;
} attr;

static const ses_tensor *keys_of(const ses_node *n, int queries)
{
    return n->in[queries + 1] ? n->in[queries + 1] : n->in[queries];
}

static bool check_side(const ses_node *n, int at, const char *what, ses_err *e)
{
    const attr *a = n->attr;
    const ses_tensor *q = n->in[at], *k = keys_of(n, at);
    if (!ses_check_input(n, at, what, e)) return false;
    if (a->heads < 1 || ses_cols(q) % a->heads)
        return ses_fail(e, SES_EARG, "%s has %lld columns, which %lld heads do not divide", what,
                        (long long)ses_cols(q), (long long)a->heads);
    if (ses_rows(q) != a->cu_seqlens[a->seqs] || !ses_same_shape(q, k))
        return ses_fail(e, SES_EARG, "%s has %lld rows of queries and %lld of keys, expected %lld tokens",
                        what, (long long)ses_rows(q), (long long)ses_rows(k),
                        (long long)a->cu_seqlens[a->seqs]);
    return true;
}

static bool infer(ses_node *n, ses_err *e)
{
    const attr *a = n->attr;
    if (!check_side(n, XQ, "the student", e) || !check_side(n, YQ, "the teacher", e)) return false;
    if (!ses_node_save(n, LOSS, 1, e) || !ses_node_save(n, STAT, 3 * a->heads * ses_rows(n->in[XQ]), e))
        return false;
    n->out = ses_tensor_wrap(n->tape, n->saved[LOSS], SES_REAL, SES_DIM(1), e);
    return n->out != NULL;
}

/* One sequence: its first row and length, scores [heads][len][len] of both models in f32. */
typedef struct sequence {
    int64_t from, len;
    ses_real *x, *y;
} sequence;

static int64_t longest(const attr *a)
{
    int64_t max = 0;
    for (int64_t s = 0; s < a->seqs; s++) {
        int64_t len = a->cu_seqlens[s + 1] - a->cu_seqlens[s];
        if (len > max) max = len;
    }
    return max;
}

/* Memory for the scores of every sequence; false: the tape has failed. */
static bool reserve(const ses_node *n, sequence *s)
{
    const attr *a = n->attr;
    int64_t len = longest(a), size = a->heads * len * len;
    s->x = ses_scratch(n, size);
    s->y = ses_scratch(n, size);
    return s->x && s->y;
}

/* to[h] = q k' of head h */
static void score(const ses_node *n, int at, const sequence *s, ses_real *to)
{
    const attr *a = n->attr;
    int64_t width = ses_cols(n->in[at]), dim = width / a->heads;
    for (int64_t h = 0; h < a->heads; h++) {
        ses_gemm g = { .m = s->len, .n = s->len, .k = dim, .ldc = s->len, .is_f32 = true };
        g.c = to + h * s->len * s->len;
        g.a = ses_elem_at(n, n->in[at]->f, s->from * width + h * dim), g.a_row = width, g.a_col = 1;
        g.b = ses_elem_at(n, keys_of(n, at)->f, s->from * width + h * dim), g.b_row = 1, g.b_col = width;
        n->k->gemm(n->exec, &g);
    }
}

static double scale_of(const ses_node *n, int at)
{
    return 1 / sqrt((double)ses_cols(n->in[at]) / (double)((const attr *)n->attr)->heads);
}

static void forward(const ses_node *n)
{
    const attr *a = n->attr;
    sequence s;
    if (!reserve(n, &s)) return;
    for (int64_t i = 0; i < a->seqs; i++) {
        s.from = a->cu_seqlens[i], s.len = a->cu_seqlens[i + 1] - s.from;
        score(n, XQ, &s, s.x);
        score(n, YQ, &s, s.y);
        n->k->relation(n->exec, n->saved[STAT] + 3 * a->heads * s.from, s.x, s.y, a->heads * s.len, s.len,
                       scale_of(n, XQ), scale_of(n, YQ));
    }
    n->k->relation_mean(n->exec, n->saved[LOSS], n->saved[STAT], a->heads * ses_rows(n->in[XQ]));
}

/* Adds g k (or g' q, for keys) of each head to the gradient of a sequence. g: gradient of the scores. */
static void add_product(const ses_node *n, ses_dst to, const sequence *s, const ses_real *g, bool is_key)
{
    const attr *a = n->attr;
    int64_t width = ses_cols(n->in[XQ]), dim = width / a->heads;
    const ses_tensor *other = is_key ? n->in[XQ] : keys_of(n, XQ);
    if (!to.data) return;
    for (int64_t h = 0; h < a->heads; h++) {
        int64_t at = s->from * width + h * dim;
        ses_gemm p = { .m = s->len, .n = dim, .k = s->len, .ldc = width, .accumulate = true };
        p.c = ses_dst_at(n, to, at).data, p.is_f32 = to.is_f32;
        p.a = ses_elem_at(n, g, h * s->len * s->len), p.a_row = is_key ? 1 : s->len,
        p.a_col = is_key ? s->len : 1;
        p.b = ses_elem_at(n, other->f, at), p.b_row = width, p.b_col = 1;
        n->k->gemm(n->exec, &p);
    }
}

static void backward(const ses_node *n)
{
    const attr *a = n->attr;
    sequence s;
    int64_t len = longest(a);
    ses_dst dq = ses_grad_zeroed(n, XQ), dk = n->in[XK] ? ses_grad_zeroed(n, XK) : dq;
    ses_real *g = ses_scratch_elems(n, a->heads * len * len);
    if (!g || !reserve(n, &s)) return;
    for (int64_t i = 0; i < a->seqs; i++) {
        s.from = a->cu_seqlens[i], s.len = a->cu_seqlens[i + 1] - s.from;
        score(n, XQ, &s, s.x);
        score(n, YQ, &s, s.y);
        n->k->relation_bwd(n->exec, g, n->out->grad, n->saved[STAT] + 3 * a->heads * s.from, s.x, s.y,
                           a->heads * s.len, s.len, scale_of(n, XQ), scale_of(n, YQ),
                           scale_of(n, XQ) / (double)(a->heads * ses_rows(n->in[XQ])));
        add_product(n, dq, &s, g, false);
        add_product(n, dk, &s, g, true);
    }
}

static const int32_t three[] = { 0, 3, 4, 9 }, one[] = { 0, 33 };
enum { TEACHER = 1u << YQ | 1u << YK };
static const ses_case cases[] = {
    { .dim = { { 9, 10 }, { 0 }, { 9, 14 } },
      .attr = &(const attr){ .cu_seqlens = three, .seqs = 3, .heads = 2 },
      .constant = TEACHER },
    { .dim = { { 9, 10 }, { 9, 10 }, { 9, 6 }, { 9, 6 } },
      .attr = &(const attr){ .cu_seqlens = three, .seqs = 3, .heads = 2 },
      .constant = TEACHER },
    { .dim = { { 33, 34 }, { 0 }, { 33, 34 } },
      .attr = &(const attr){ .cu_seqlens = one, .seqs = 1, .heads = 2 },
      .constant = TEACHER },
    { .dim = { { 9, 3 }, { 0 }, { 9, 6 }, { 9, 6 } },
      .attr = &(const attr){ .cu_seqlens = three, .seqs = 3, .heads = 3 },
      .constant = TEACHER },
    { .dim = { { 9, 8 }, { 0 }, { 9, 8 } },
      .attr = &(const attr){ .cu_seqlens = three, .seqs = 3, .heads = 2 },
      .scale = 3,
      .constant = TEACHER },
};
const ses_op ses_op_relation_loss = {
    .name = "relation_loss",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_relation_loss(ses_tape *t, ses_tensor *xq, ses_tensor *xk, ses_tensor *yq, ses_tensor *yk,
                              const int32_t *cu_seqlens, int64_t seqs, int64_t heads)
{
    return ses_apply(t, &ses_op_relation_loss, SES_IN(xq, xk, yq, yk), &(attr){ cu_seqlens, seqs, heads });
}
