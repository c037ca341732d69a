/* Rotary position embedding (Su et al. 2021): rotates pairs of columns by an angle proportional to the
 * position. x [T, C]: the first o.cols columns are heads of size dim, the others (values) are copied.
 * positions: ints [T]. */
#include "op.h"

typedef struct attr {
    ses_rotary_options o;
} attr;

static int64_t pairs_of(const ses_rotary_options *o) { return o->pairs ? o->pairs : o->dim / 2; }

static bool infer(ses_node *n, ses_err *e)
{
    const ses_rotary_options *o = &((const attr *)n->attr)->o;
    if (!ses_check_input(n, 0, "x", e) || !ses_check_ints(n, 1, "positions", e)) return false;
    if (o->dim < 2 || (!o->pairs && o->dim % 2) || 2 * o->pairs > o->dim || o->cols % o->dim ||
        o->cols > ses_cols(n->in[0]))
        return ses_fail(e, SES_EARG, "%lld rotary columns are not heads of even size %lld",
                        (long long)o->cols, (long long)o->dim);
    if (pairs_of(o) > SES_ROTARY_MAX_PAIRS)
        return ses_fail(e, SES_EUNSUPPORTED, "rotary positions of heads of more than %d columns",
                        2 * SES_ROTARY_MAX_PAIRS);
    if (ses_count(n->in[1]) != ses_rows(n->in[0]))
        return ses_fail(e, SES_EARG, "%lld positions for %lld tokens", (long long)ses_count(n->in[1]),
                        (long long)ses_rows(n->in[0]));
    if (!o->inplace) return ses_node_out(n, n->in[0]->dim, e);
    n->out = ses_tensor_wrap(n->tape, n->in[0]->data, n->dtype, n->in[0]->dim, e);
    return n->out != NULL;
}

/* Rows from .. to - 1 with the frequencies of a text of `length` tokens. */
static void run_rows(const ses_node *n, ses_dst y, const ses_real *x, double sign, int64_t from, int64_t to,
                     int64_t length)
{
    const ses_rotary_options *o = &((const attr *)n->attr)->o;
    double rate[SES_ROTARY_MAX_PAIRS];
    int64_t cols = ses_cols(n->out);
    ses_rotary_spec spec = {
        o->cols, o->dim, pairs_of(o), o->adjacent, rate, ses_rope_factor(&o->rope), sign
    };
    ses_rope_rates(&o->rope, spec.pairs, length, rate);
    n->k->rotary(n->exec, ses_dst_at(n, y, from * cols), ses_elem_at(n, x, from * cols), n->in[1]->i + from,
                 to - from, cols, &spec);
}

static void run(const ses_node *n, ses_dst y, const ses_real *x, double sign)
{
    const ses_rotary_options *o = &((const attr *)n->attr)->o;
    if (o->rope.type != SES_ROPE_DYNAMIC || !o->cu_seqlens) {
        run_rows(n, y, x, sign, 0, ses_rows(n->out), 0);
        return;
    }
    for (int64_t s = 0; s < o->seqs; s++)
        run_rows(n, y, x, sign, o->cu_seqlens[s], o->cu_seqlens[s + 1],
                 o->cu_seqlens[s + 1] - o->cu_seqlens[s]);
}

static void forward(const ses_node *n) { run(n, (ses_dst){ n->out->f, false }, n->in[0]->f, 1); }

static void backward(const ses_node *n) /* the inverse rotation */
{
    ses_real *dy = n->out->grad;
    ses_dst dx = { ses_grad_donate(n, 0) ? dy : NULL, false };
    if (!dx.data) dx = ses_grad(n, 0);
    if (dx.data) run(n, dx, dy, -1);
}

static const int32_t near[] = { 0, 1, 2, 300, 7 }, far[] = { 37, 38, 47, 48, 31 }, ends[] = { 0, 1, 5 };
#define ROPE(...) .rope = { __VA_ARGS__ }
#define THETA(x) ROPE(.theta = x)
static const ses_case cases[] = {
    { .dim = { { 5, 18 }, { 5 } }, .ints = { [1] = near }, .attr = &(const attr){ { 12, 6, THETA(10000) } } },
    { .dim = { { 5, 32 }, { 5 } },
      .ints = { [1] = near },
      .attr = &(const attr){ { 32, 32, THETA(160000) } } },
    { .dim = { { 2, 2 }, { 2 } },
      .ints = { [1] = near },
      .attr = &(const attr){ { 2, 2, THETA(10000) } },
      .scale = 1e4 },
    { .dim = { { 5, 192 }, { 5 } },
      .ints = { [1] = near },
      .attr = &(const attr){ { 128, 64, THETA(10000) } } },
    { .dim = { { 5, 300 }, { 5 } },
      .ints = { [1] = far },
      .attr = &(const attr){ { 300, 300, THETA(10000) } } },
    /* a part of each head; adjacent columns */
    { .dim = { { 5, 19 }, { 5 } },
      .ints = { [1] = near },
      .attr = &(const attr){ { 14, 7, .pairs = 2, THETA(1000) } } },
    { .dim = { { 5, 18 }, { 5 } },
      .ints = { [1] = far },
      .attr = &(const attr){ { 12, 6, .adjacent = true, THETA(10000) } } },
    { .dim = { { 5, 48 }, { 5 } },
      .ints = { [1] = near },
      .attr = &(const attr){ { 48, 24,
                               ROPE(.type = SES_ROPE_YARN, .theta = 1000, .factor = 4, .original = 16) } } },
    { .dim = { { 5, 16 }, { 5 } },
      .ints = { [1] = near },
      .attr =
          &(const attr){ { 16, 8, ROPE(.type = SES_ROPE_DYNAMIC, .theta = 100, .factor = 2, .original = 2),
                           .cu_seqlens = ends, .seqs = 2 } } },
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
    ses_rotary_options o = { .cols = rotary_cols, .dim = dim, THETA(theta) };
    return ses_rotary_scaled(t, x, positions, &o);
}

ses_tensor *ses_rotary_scaled(ses_tape *t, ses_tensor *x, ses_tensor *positions, const ses_rotary_options *o)
{
    return ses_apply(t, &ses_op_rotary, SES_IN(x, positions), &(attr){ *o });
}
