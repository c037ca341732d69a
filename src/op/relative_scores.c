/* Scores by relative position or segment, for ses_attention's bias: up to two terms, y[s][h][i][j] = scale
 * (x0 . r0[row(i, j)] + x1 . r1[row(i, j)]) + mask[s][i][j], where x is the query or the key of the head; see
 * ses_relative. */
#include "op.h"

#include "tensor/device_impl.h"

#include <math.h>

enum { X0, R0, X1, R1, MASK, CU_Q, CU_K, Q_POS, DIST_TO_ROW, LABEL, INPUTS };

typedef struct term {
    ses_relative_side side;
    ses_relative_rows rows;
    ses_qkv_layout layout;
} term;

typedef struct attr {
    ses_relative_options o;
    term term[2];
} attr;

static const attr *attr_of(const ses_node *n) { return n->attr; }
static const int32_t *ints(const ses_tensor *x) { return x ? x->i : NULL; }

/* First column of queries or keys in a row of x. */
static int64_t column(const term *m, int64_t heads, int64_t dim)
{
    if (m->layout == SES_QKV_SEPARATE || m->side == SES_BY_QUERY) return 0;
    return m->layout == SES_QKV_FUSED ? heads * dim : dim;
}

static ses_relative arguments(const ses_node *n, int i)
{
    const ses_relative_options *o = &attr_of(n)->o;
    const term *m = &attr_of(n)->term[i];
    ses_tensor *const *in = n->in;
    const ses_tensor *x = in[i ? X1 : X0], *r = in[i ? R1 : R0];
    ses_relative a = { .seqs = ses_count(in[CU_Q]) - 1, .heads = o->heads, .max_seqlen_k = o->max_seqlen_k };
    a.dim = ses_cols(r) / o->heads;
    a.cu_seqlens_q = in[CU_Q]->i, a.cu_seqlens_k = in[CU_K]->i, a.q_pos = ints(in[Q_POS]);
    if (m->rows == SES_ROWS_BY_DISTANCE) a.dist_to_row = in[DIST_TO_ROW]->i;
    a.label = ints(in[LABEL]);
    a.reversed_from = o->reversed_from ? o->reversed_from : a.seqs;
    a.x = ses_elem_at(n, x->f, column(m, o->heads, a.dim)), a.x_row = ses_cols(x);
    a.x_head = m->layout == SES_QKV_INTERLEAVED ? 3 * a.dim : a.dim;
    a.x_is_key = m->side == SES_BY_KEY;
    a.r = r->f, a.rows = ses_rows(r);
    a.mask = i == 0 ? ses_input_f32(n, MASK) : NULL;
    a.scale = (ses_real)(o->scale ? o->scale : 1 / sqrt((double)a.dim));
    return a;
}

/* Offsets must rise from 0 to n; checked on the host only. */
static bool check_offsets(const ses_node *n, int i, int64_t tokens, const char *what, ses_err *e)
{
    const int32_t *cu = n->in[i]->i;
    int64_t seqs = ses_count(n->in[i]) - 1;
    bool rise = true;
    if (!ses_tape_device(n->tape)->is_host) return true;
    for (int64_t s = 0; s < seqs; s++) rise &= cu[s] <= cu[s + 1];
    if (rise && cu[0] == 0 && (tokens < 0 || cu[seqs] == tokens)) return true;
    return ses_fail(e, SES_EARG, "offsets of %s must rise from 0 to %lld", what, (long long)tokens);
}

/* o.pairs must be the sum over sequences of queries times keys. */
static bool check_pairs(const ses_node *n, ses_err *e)
{
    const int32_t *q = n->in[CU_Q]->i, *k = n->in[CU_K]->i;
    int64_t total = 0, max_len = 0;
    if (!ses_tape_device(n->tape)->is_host) return true;
    for (int64_t s = 0; s + 1 < ses_count(n->in[CU_Q]); s++) {
        int64_t len = k[s + 1] - k[s];
        total += (q[s + 1] - q[s]) * len;
        if (len > max_len) max_len = len;
        for (int32_t i = q[s]; n->in[Q_POS] && i < q[s + 1]; i++)
            if (n->in[Q_POS]->i[i] < 0 || n->in[Q_POS]->i[i] >= len)
                return ses_fail(e, SES_EARG, "query %d has position %d, expected below %lld", (int)i,
                                (int)n->in[Q_POS]->i[i], (long long)len);
    }
    if (total == attr_of(n)->o.pairs && max_len <= attr_of(n)->o.max_seqlen_k) return true;
    return ses_fail(e, SES_EARG,
                    "%lld query-key pairs in sequences of up to %lld keys, expected %lld and %lld",
                    (long long)total, (long long)max_len, (long long)attr_of(n)->o.pairs,
                    (long long)attr_of(n)->o.max_seqlen_k);
}

static bool check_term(const ses_node *n, int i, ses_err *e)
{
    const term *m = &attr_of(n)->term[i];
    const ses_tensor *x = n->in[i ? X1 : X0], *r = n->in[i ? R1 : R0];
    int64_t parts = m->layout == SES_QKV_SEPARATE ? 1 : 3, heads = attr_of(n)->o.heads;
    if (ses_cols(x) != parts * ses_cols(r) || heads < 1 || ses_cols(r) % heads)
        return ses_fail(e, SES_EARG, "x has %lld columns, r has %lld: they do not match for %lld heads",
                        (long long)ses_cols(x), (long long)ses_cols(r), (long long)heads);
    if (!check_offsets(n, m->side == SES_BY_KEY ? CU_K : CU_Q, ses_rows(x),
                       m->side == SES_BY_KEY ? "keys" : "queries", e))
        return false;
    if (m->rows == SES_ROWS_BY_DISTANCE)
        return ses_check_ints(n, DIST_TO_ROW, "dist_to_row", e) &&
               ses_check_range(n, DIST_TO_ROW, ses_rows(r), false, "row", e);
    if (ses_rows(r) != 2)
        return ses_fail(e, SES_EARG, "a table of labels must have 2 rows, not %lld", (long long)ses_rows(r));
    return ses_check_ints(n, LABEL, "label", e) &&
           check_offsets(n, CU_K, ses_count(n->in[LABEL]), "labels", e);
}

static bool check_shapes(const ses_node *n, ses_err *e)
{
    ses_tensor *const *in = n->in;
    int64_t distances = 2 * attr_of(n)->o.max_seqlen_k - 1;
    if (ses_count(in[CU_Q]) != ses_count(in[CU_K]))
        return ses_fail(e, SES_EARG, "offsets of queries and keys must have the same length");
    if (in[DIST_TO_ROW] && ses_count(in[DIST_TO_ROW]) != distances)
        return ses_fail(e, SES_EARG, "dist_to_row must have %lld entries", (long long)distances);
    if (in[MASK] && ses_count(in[MASK]) != attr_of(n)->o.pairs)
        return ses_fail(e, SES_EARG, "the mask must have %lld elements", (long long)attr_of(n)->o.pairs);
    return check_offsets(n, CU_Q, in[Q_POS] ? ses_count(in[Q_POS]) : -1, "queries", e) &&
           check_offsets(n, CU_K, -1, "keys", e) && check_pairs(n, e) && check_term(n, 0, e) &&
           (!in[X1] || check_term(n, 1, e));
}

/* Attention in bf16 on a GPU computes the scores itself, so they need no memory. The backward pass reads
 * them. */
static bool as_terms(const ses_node *n)
{
    return attr_of(n)->o.for_attention && n->dtype == SES_BF16 && !ses_tape_device(n->tape)->is_host &&
           !ses_node_needs_backward(n);
}

static bool infer(ses_node *n, ses_err *e)
{
    if (!ses_check_input(n, X0, "x", e) || !ses_check_input(n, R0, "r", e) ||
        (n->in[X1] && !ses_check_input(n, R1, "the second r", e)) ||
        !ses_check_ints(n, CU_Q, "cu_seqlens_q", e) || !ses_check_ints(n, CU_K, "cu_seqlens_k", e) ||
        !check_shapes(n, e))
        return false;
    const int64_t *dim = SES_DIM(attr_of(n)->o.pairs * attr_of(n)->o.heads);
    if (!as_terms(n)) return ses_node_out(n, dim, e);
    n->out = ses_tensor_wrap(n->tape, NULL, n->dtype, dim, e);
    if (n->out) n->out->terms = ses_tape_host_alloc(n->tape, 1, sizeof *n->out->terms);
    return n->out && n->out->terms;
}

static void set_terms(const ses_node *n, ses_score_terms *to)
{
    to->pairs = attr_of(n)->o.pairs;
    for (int i = 0; i < 2 && n->in[i ? X1 : X0]; i++) to->term[to->n++] = arguments(n, i);
}

static void forward(const ses_node *n)
{
    if (n->out->terms) {
        set_terms(n, (ses_score_terms *)n->out->terms);
        return;
    }
    for (int i = 0; i < 2 && n->in[i ? X1 : X0]; i++) {
        ses_relative a = arguments(n, i);
        n->k->relative(n->exec, &a, (ses_dst){ n->out->f, i > 0 });
    }
}

static void backward(const ses_node *n)
{
    for (int i = 0; i < 2 && n->in[i ? X1 : X0]; i++) {
        const term *m = &attr_of(n)->term[i];
        int x = i ? X1 : X0, r = i ? R1 : R0;
        ses_relative a = arguments(n, i);
        /* the parts of x that are not read have a zero gradient */
        ses_dst dx = m->layout == SES_QKV_SEPARATE ? ses_grad(n, x) : ses_grad_zeroed(n, x);
        dx = ses_dst_at(n, dx, column(m, a.heads, a.dim));
        n->k->relative_bwd(n->exec, &a, n->out->grad, dx, ses_grad(n, r));
    }
}

static const int32_t three[] = { 0, 3, 4, 9 }, more[] = { 0, 5, 7, 12 }, few[] = { 0, 2, 2, 3 };
static const int32_t two[] = { 0, 18, 34 };
static const int32_t positions[] = { 2, 0, 4 }, labels[] = { 0, 0, 1, 3, 0, 0, 0, 1, 1, 2, 5, 5 };
static const int32_t near[] = { 0, 0, 1, 2, 3, 4, 5, 6, 6 }; /* distances up to 4 */
static const int32_t far[] = { 9, 9, 9, 9, 8, 8, 8, 8, 8, 8, 7, 7, 7, 6, 6, 5, 4, 3,
                               3, 3, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
#define DISTANCE(...)                                     \
    {                                                     \
        .rows = SES_ROWS_BY_DISTANCE, .side = __VA_ARGS__ \
    }
static const ses_case cases[] = {
    { .dim = { { 9, 8 }, { 7, 8 }, { 0 }, { 0 }, { 0 }, { 4 }, { 4 }, { 0 }, { 9 } },
      .ints = { [CU_Q] = three, [CU_K] = three, [DIST_TO_ROW] = near },
      .attr = &(const attr){ .o = { .heads = 2, .max_seqlen_k = 5, .pairs = 35 },
                             .term = { DISTANCE(SES_BY_QUERY) } } },
    { .dim = { { 34, 57 }, { 10, 57 }, { 34, 57 }, { 10, 57 }, { 0 }, { 3 }, { 3 }, { 0 }, { 35 } },
      .ints = { [CU_Q] = two, [CU_K] = two, [DIST_TO_ROW] = far }, /* both terms, odd width */
      .attr = &(const attr){ .o = { .heads = 3, .max_seqlen_k = 18, .pairs = 580, .scale = 0.3 },
                             .term = { DISTANCE(SES_BY_QUERY), DISTANCE(SES_BY_KEY) } } },
    { .dim = { { 9, 18 }, { 7, 6 }, { 9, 18 }, { 7, 6 }, { 0 }, { 4 }, { 4 }, { 0 }, { 9 } },
      .ints = { [CU_Q] = three, [CU_K] = three, [DIST_TO_ROW] = near }, /* q, k and v interleaved by head */
      .attr = &(const attr){ .o = { .heads = 2, .max_seqlen_k = 5, .pairs = 35 },
                             .term = { DISTANCE(SES_BY_QUERY, .layout = SES_QKV_INTERLEAVED),
                                       DISTANCE(SES_BY_KEY, .layout = SES_QKV_INTERLEAVED) } } },
    { .dim = { { 9, 6 }, { 7, 2 }, { 9, 6 }, { 7, 2 }, { 0 }, { 4 }, { 4 }, { 0 }, { 9 } },
      .ints = { [CU_Q] = three, [CU_K] = three, [DIST_TO_ROW] = near }, /* fused, head size 1 */
      .scale = 1e4,
      .attr = &(const attr){ .o = { .heads = 2, .max_seqlen_k = 5, .pairs = 35 },
                             .term = { DISTANCE(SES_BY_KEY, .layout = SES_QKV_FUSED),
                                       DISTANCE(SES_BY_QUERY, .layout = SES_QKV_FUSED) } } },
    { .dim = { { 9, 8 }, { 7, 8 }, { 9, 8 }, { 2, 8 }, { 42 }, { 4 }, { 4 }, { 0 }, { 9 }, { 12 } },
      .ints = { [CU_Q] = three,
                [CU_K] = more,
                [DIST_TO_ROW] = near,
                [LABEL] = labels }, /* keys before the first query */
      .constant = 1u << MASK,
      .attr = &(const attr){ .o = { .heads = 2, .max_seqlen_k = 5, .pairs = 42 },
                             .term = { DISTANCE(SES_BY_QUERY), { .rows = SES_ROWS_BY_LABEL } } } },
    { .dim = { { 3, 8 }, { 7, 8 }, { 3, 8 }, { 2, 8 }, { 0 }, { 4 }, { 4 }, { 3 }, { 9 }, { 12 } },
      .ints = { [CU_Q] = few,
                [CU_K] = more,
                [Q_POS] = positions,
                [DIST_TO_ROW] = near,
                [LABEL] = labels }, /* queries at given positions */
      .attr = &(const attr){ .o = { .heads = 2, .max_seqlen_k = 5, .pairs = 15, .reversed_from = 2 },
                             .term = { DISTANCE(SES_BY_QUERY), { .rows = SES_ROWS_BY_LABEL } } } },
};
const ses_op ses_op_relative_scores = {
    .name = "relative_scores",
    .f32_inputs = 1 << MASK,
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_relative_scores(ses_tape *t, const ses_relative_inputs *in, const ses_relative_options *o)
{
    const ses_relative_term *m = in->term;
    attr a = { .o = *o };
    for (int i = 0; i < 2; i++) a.term[i] = (term){ m[i].side, m[i].rows, m[i].layout };
    ses_tensor *const list[INPUTS] = { m[0].x,          m[0].r,           m[1].x,           m[1].r,
                                       in->mask,        in->cu_seqlens_q, in->cu_seqlens_k, in->q_pos,
                                       in->dist_to_row, in->label };
    return ses_apply(t, &ses_op_relative_scores, list, INPUTS, &a);
}
