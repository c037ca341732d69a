/* Attention scores before the softmax, for losses that compare them: y[s][h][i][j] = scale q_i . k_j over the
 * columns of head h, sequence after sequence. */
#include "op.h"

#include <math.h>

enum { Q, K };

typedef struct attr {
    const int32_t *cu_seqlens; /* on the host; must live until the end of the step */
    int64_t seqs, heads;
    double scale; /* 0: 1 / sqrt(head size) */
    ses_qkv_layout layout;
} attr;

/* Queries or keys: offset of the first head, distance between rows, distance between heads. */
typedef struct side {
    int64_t first, row, head;
} side;

static int64_t head_size(const ses_node *n)
{
    const attr *a = n->attr;
    return ses_cols(n->in[Q]) / (a->layout == SES_QKV_SEPARATE ? a->heads : 3 * a->heads);
}

static side side_of(const ses_node *n, bool key)
{
    const attr *a = n->attr;
    int64_t dim = head_size(n), part = a->layout == SES_QKV_FUSED ? a->heads * dim : dim;
    if (a->layout == SES_QKV_SEPARATE || n->in[K]) {
        bool wide = !key && a->layout != SES_QKV_SEPARATE;
        return (side){ 0, (wide ? 3 : 1) * a->heads * dim,
                       wide && a->layout == SES_QKV_INTERLEAVED ? 3 * dim : dim };
    }
    return (side){ key ? part : 0, 3 * a->heads * dim, a->layout == SES_QKV_FUSED ? dim : 3 * dim };
}

static double scale_of(const ses_node *n)
{
    const attr *a = n->attr;
    return a->scale ? a->scale : 1 / sqrt((double)head_size(n));
}

static bool infer(ses_node *n, ses_err *e)
{
    const attr *a = n->attr;
    int64_t pairs = 0, parts = a->layout == SES_QKV_SEPARATE ? a->heads : 3 * a->heads;
    if (!ses_check_input(n, Q, "q", e) || (a->layout == SES_QKV_SEPARATE && !ses_check_input(n, K, "k", e)))
        return false;
    if (a->heads < 1 || ses_cols(n->in[Q]) % parts || a->cu_seqlens[a->seqs] != ses_rows(n->in[Q]))
        return ses_fail(e, SES_EARG,
                        "q is [%lld, %lld], expected %lld rows (tokens) and a multiple of %lld heads",
                        (long long)ses_rows(n->in[Q]), (long long)ses_cols(n->in[Q]),
                        (long long)a->cu_seqlens[a->seqs], (long long)a->heads);
    if (n->in[K] &&
        (ses_cols(n->in[K]) != a->heads * head_size(n) || ses_rows(n->in[K]) != a->cu_seqlens[a->seqs]))
        return ses_fail(e, SES_EARG, "shapes of q and k do not match");
    for (int64_t s = 0; s < a->seqs; s++)
        pairs +=
            (int64_t)(a->cu_seqlens[s + 1] - a->cu_seqlens[s]) * (a->cu_seqlens[s + 1] - a->cu_seqlens[s]);
    return ses_node_out(n, SES_DIM(pairs * a->heads), e);
}

/* One GEMM for each sequence and head: scores, or the gradient of queries or keys. */
typedef enum { SCORES, TO_QUERY, TO_KEY } step;

static void products(const ses_node *n, step what, ses_dst to, ses_real *scores)
{
    const attr *a = n->attr;
    side q = side_of(n, false), k = side_of(n, true);
    const ses_real *qx = ses_elem_at(n, n->in[Q]->f, q.first), *kx = n->in[K] ? n->in[K]->f : n->in[Q]->f;
    int64_t dim = head_size(n);
    kx = ses_elem_at(n, kx, k.first);
    for (int64_t s = 0; s < a->seqs; s++)
        for (int64_t h = 0, from = a->cu_seqlens[s], len = a->cu_seqlens[s + 1] - from; h < a->heads;
             h++, scores = ses_elem_at(n, scores, len * len)) {
            ses_gemm g = { .m = len };
            if (what == SCORES) {
                g.c = scores, g.ldc = len, g.n = len, g.k = dim;
                g.a = ses_elem_at(n, qx, from * q.row + h * q.head), g.a_row = q.row, g.a_col = 1;
                g.b = ses_elem_at(n, kx, from * k.row + h * k.head), g.b_row = 1, g.b_col = k.row;
            } else {
                bool query = what == TO_QUERY;
                side mine = query ? q : k, other = query ? k : q;
                g.c = ses_dst_at(n, to, mine.first + from * mine.row + h * mine.head).data, g.ldc = mine.row;
                g.n = dim, g.is_f32 = to.is_f32, g.k = len;
                g.a = scores, g.a_row = query ? len : 1, g.a_col = query ? 1 : len;
                g.b = ses_elem_at(n, query ? kx : qx, from * other.row + h * other.head), g.b_row = other.row,
                g.b_col = 1;
                g.accumulate = true;
            }
            n->k->gemm(n->exec, &g);
        }
}

static void forward(const ses_node *n)
{
    products(n, SCORES, (ses_dst){ .data = NULL }, n->out->f);
    n->k->scale(n->exec, (ses_dst){ n->out->f, false }, n->out->f, (ses_real)scale_of(n), ses_count(n->out));
}

static void backward(const ses_node *n)
{
    ses_real *scaled = ses_scratch(n, ses_count(n->out));
    ses_dst dq = ses_grad_zeroed(n, Q), dk = n->in[K] ? ses_grad_zeroed(n, K) : dq;
    if (!scaled) return;
    n->k->scale(n->exec, (ses_dst){ scaled, false }, n->out->grad, (ses_real)scale_of(n), ses_count(n->out));
    if (dq.data) products(n, TO_QUERY, dq, scaled);
    if (dk.data) products(n, TO_KEY, dk, scaled);
}

static const int32_t three[] = { 0, 3, 4, 9 }, one[] = { 0, 33 };
static const ses_case cases[] = {
    { .dim = { { 9, 10 }, { 9, 10 } }, .attr = &(const attr){ .cu_seqlens = three, .seqs = 3, .heads = 2 } },
    { .dim = { { 33, 34 }, { 33, 34 } },
      .attr = &(const attr){ .cu_seqlens = one, .seqs = 1, .heads = 2, .scale = 0.3 } },
    { .dim = { { 9, 3 }, { 9, 3 } }, .attr = &(const attr){ .cu_seqlens = three, .seqs = 3, .heads = 3 } },
    { .dim = { { 9, 30 }, { 0 } },
      .attr = &(const attr){ .cu_seqlens = three, .seqs = 3, .heads = 2, .layout = SES_QKV_FUSED } },
    { .dim = { { 9, 30 }, { 0 } },
      .attr = &(const attr){ .cu_seqlens = three, .seqs = 3, .heads = 2, .layout = SES_QKV_INTERLEAVED } },
    { .dim = { { 9, 8 }, { 9, 8 } },
      .attr = &(const attr){ .cu_seqlens = three, .seqs = 3, .heads = 2 },
      .scale = 1e4 },
};
const ses_op ses_op_attention_scores = {
    .name = "attention_scores",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_attention_scores(ses_tape *t, ses_tensor *q, ses_tensor *k, const int32_t *cu_seqlens,
                                 int64_t seqs, const ses_attention_options *o)
{
    attr a = {
        .cu_seqlens = cu_seqlens, .seqs = seqs, .heads = o->heads, .scale = o->scale, .layout = o->layout
    };
    return ses_apply(t, &ses_op_attention_scores, SES_IN(q, k), &a);
}
