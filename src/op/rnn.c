/* Recurrent layer over each sequence, forward or backward in time: y [T, H] from x [T, G] (input times its
 * weights, plus bias) and the recurrent w [G, H], bias [G]. G: 4 H for an LSTM, 3 H for a GRU, gates in
 * PyTorch's order. All sequences advance together, sorted by length, so that the unfinished ones come
 * first. */
#include "op.h"

#include "tensor/device_impl.h"

#include <stdlib.h>
#include <string.h>

typedef struct attr {
    ses_rnn_type type;
    bool reverse;
} attr;

static int64_t gates(const ses_node *n) { return ((const attr *)n->attr)->type == SES_RNN_LSTM ? 4 : 3; }

static bool infer(ses_node *n, ses_err *e)
{
    const ses_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2], *cu = n->in[3];
    if (!ses_check_input(n, 0, "x", e) || !ses_check_input(n, 1, "weight", e) ||
        !ses_check_input(n, 2, "bias", e) || !ses_check_ints(n, 3, "cu_seqlens", e))
        return false;
    int64_t G = ses_cols(x), H = ses_cols(w), T = ses_rows(x);
    if (G != gates(n) * H || ses_rows(w) != G || ses_count(b) != G)
        return ses_fail(e, SES_EARG, "x, weight and bias must have %lld gates of %lld units",
                        (long long)gates(n), (long long)H);
    if (!ses_tape_device(n->tape)->is_host)
        return ses_fail(e, SES_EUNSUPPORTED, "recurrent layers run on the CPU only");
    int64_t last = ses_count(cu) - 1;
    for (int64_t s = 0; s < last; s++)
        if (cu->i[s] > cu->i[s + 1] || cu->i[0] || cu->i[last] != T)
            return ses_fail(e, SES_EARG, "cu_seqlens must rise from 0 to %lld", (long long)T);
    return ses_node_out(n, SES_DIM(T, H), e) && ses_node_save(n, 0, T * G, e) &&
           ses_node_save(n, 1, T * H, e);
}

/* Rows of the sequences at one time step. */
typedef struct schedule {
    int32_t *order;          /* [seqs]: longest first */
    int32_t *row, *prev_row; /* [seqs] */
    int64_t seqs, steps;
    const int32_t *cu;
    bool reverse;
} schedule;

static int64_t length(const schedule *c, int64_t s) { return c->cu[s + 1] - c->cu[s]; }

/* Counting sort: stable, so that the order is the same on every machine. */
static bool schedule_begin(schedule *c, const ses_node *n)
{
    const ses_tensor *cu = n->in[3];
    *c = (schedule){ .seqs = ses_count(cu) - 1, .cu = cu->i, .reverse = ((const attr *)n->attr)->reverse };
    int32_t *space = ses_tape_host_alloc(n->tape, 3 * (size_t)c->seqs + 1, sizeof *space);
    if (!space) return false;
    c->order = space, c->row = space + c->seqs, c->prev_row = space + 2 * c->seqs;
    for (int64_t s = 0; s < c->seqs; s++)
        if (length(c, s) > c->steps) c->steps = length(c, s);
    int32_t *from = ses_tape_host_alloc(n->tape, (size_t)c->steps + 2, sizeof *from);
    if (!from) return false;
    for (int64_t s = 0; s < c->seqs; s++) from[c->steps - length(c, s) + 1]++;
    for (int64_t i = 0; i <= c->steps; i++) from[i + 1] += from[i];
    for (int64_t s = 0; s < c->seqs; s++) c->order[from[c->steps - length(c, s)]++] = (int32_t)s;
    return true;
}

/* Rows of step t; returns the number of sequences longer than t. */
static int64_t schedule_at(schedule *c, int64_t t)
{
    int64_t n = 0;
    for (; n < c->seqs && length(c, c->order[n]) > t; n++) {
        int32_t s = c->order[n];
        c->row[n] = c->reverse ? c->cu[s + 1] - 1 - (int32_t)t : c->cu[s] + (int32_t)t;
        c->prev_row[n] = !t ? -1 : c->reverse ? c->row[n] + 1 : c->row[n] - 1;
    }
    return n;
}

static ses_rnn_step step_of(const ses_node *n, const schedule *c, int64_t count)
{
    return (ses_rnn_step){ .n = count,
                           .size = ses_cols(n->in[1]),
                           .row = c->row,
                           .prev_row = c->prev_row,
                           .x = n->in[0]->f,
                           .bias = n->in[2]->f,
                           .gate = n->saved[0],
                           .cell = n->saved[1],
                           .y = n->out->f };
}

/* Packs the weights once for all steps; NULL: use them unpacked. */
static ses_real *pack(const ses_node *n, const ses_gemm *g)
{
    int64_t size = n->k->gemm_pack_size(g->n, g->k);
    ses_real *packed = size ? ses_scratch(n, size) : NULL;
    if (packed) n->k->gemm_pack(n->exec, packed, SES_REAL, g->b, g->b_row, g->b_col, g->n, g->k);
    return packed;
}

static void forward(const ses_node *n)
{
    schedule c;
    int64_t H = ses_cols(n->in[1]), G = gates(n) * H;
    bool lstm = ((const attr *)n->attr)->type == SES_RNN_LSTM;
    if (!schedule_begin(&c, n)) return;
    ses_real *h = ses_scratch(n, c.seqs * G), *state = ses_scratch(n, c.seqs * H);
    if (!h || !state) return;
    ses_gemm g = ses_gemm_nt(h, state, n->in[1]->f, c.seqs, G, H);
    g.packed = pack(n, &g), g.packed_dtype = SES_REAL;
    memset(h, 0, (size_t)(c.seqs * G) * sizeof *h);
    for (int64_t t = 0; t < c.steps; t++) {
        ses_rnn_step s = step_of(n, &c, schedule_at(&c, t));
        s.h = h, s.state = state;
        g.m = s.n;
        if (t) n->k->gemm(n->exec, &g);
        (lstm ? n->k->lstm : n->k->gru)(n->exec, &s);
    }
}

/* dw += dh' y', where y' is the output of the previous time step. */
static void weight_grads(const ses_node *n, schedule *c, const ses_real *dh)
{
    int64_t T = ses_rows(n->out), H = ses_cols(n->out), G = gates(n) * H;
    ses_dst dw = ses_grad(n, 1);
    ses_dst db = ses_grad_zeroed(n, 2);
    ses_real *previous = dw.data ? ses_scratch(n, T * H) : NULL;
    if (db.data) n->k->col_sum(n->exec, db, dh, T, G, G);
    if (!previous) return;
    memset(previous, 0, (size_t)(T * H) * sizeof *previous);
    for (int64_t t = 1; t < c->steps; t++)
        for (int64_t i = 0, rows = schedule_at(c, t); i < rows; i++)
            memcpy(previous + c->row[i] * H, n->out->f + c->prev_row[i] * H, (size_t)H * sizeof *previous);
    ses_gemm g = ses_gemm_tn(dw.data, dh, previous, G, H, T);
    g.accumulate = dw.accumulate;
    n->k->gemm(n->exec, &g);
}

static void backward(const ses_node *n)
{
    schedule c;
    int64_t T = ses_rows(n->out), H = ses_cols(n->out), G = gates(n) * H;
    bool lstm = ((const attr *)n->attr)->type == SES_RNN_LSTM;
    if (!schedule_begin(&c, n)) return;
    ses_real *d = ses_scratch(n, c.seqs * G), *carry = ses_scratch(n, 2 * c.seqs * H),
             *all = ses_scratch(n, 2 * T * G);
    if (!d || !carry || !all) return;
    memset(carry, 0, (size_t)(2 * c.seqs * H) * sizeof *carry);
    ses_rnn_grad grad = { n->out->grad, carry, carry + c.seqs * H, all, all + T * G, d };
    ses_gemm g = ses_gemm_nn(carry, d, n->in[1]->f, c.seqs, H, G);
    g.packed = pack(n, &g), g.packed_dtype = SES_REAL;
    g.accumulate = true; /* added to the gradient through the gates */
    for (int64_t t = c.steps - 1; t >= 0; t--) {
        ses_rnn_step s = step_of(n, &c, schedule_at(&c, t));
        (lstm ? n->k->lstm_bwd : n->k->gru_bwd)(n->exec, &s, &grad);
        g.m = s.n;
        if (t) n->k->gemm(n->exec, &g);
    }
    ses_dst dx = ses_grad(n, 0);
    if (dx.data) n->k->scale(n->exec, dx, grad.dx, 1, T * G);
    weight_grads(n, &c, grad.dh);
}

static const int32_t cu[] = { 0, 3, 4, 9 }, none[] = { 0, 0, 5, 5, 9 };
static const ses_case cases[] = {
    { .dim = { { 9, 20 }, { 20, 5 }, { 20 }, { 4 } },
      .ints = { [3] = cu },
      .attr = &(const attr){ SES_RNN_LSTM, false } },
    { .dim = { { 9, 68 }, { 68, 17 }, { 68 }, { 4 } },
      .ints = { [3] = cu },
      .attr = &(const attr){ SES_RNN_LSTM, true },
      .tol = 3e-5 },
    { .dim = { { 9, 4 }, { 4, 1 }, { 4 }, { 5 } },
      .ints = { [3] = none },
      .attr = &(const attr){ SES_RNN_LSTM, false } },
    { .dim = { { 9, 15 }, { 15, 5 }, { 15 }, { 4 } },
      .ints = { [3] = cu },
      .attr = &(const attr){ SES_RNN_GRU, false } },
    { .dim = { { 9, 51 }, { 51, 17 }, { 51 }, { 4 } },
      .ints = { [3] = cu },
      .attr = &(const attr){ SES_RNN_GRU, true },
      .tol = 3e-5 },
    { .dim = { { 9, 3 }, { 3, 1 }, { 3 }, { 5 } },
      .ints = { [3] = none },
      .attr = &(const attr){ SES_RNN_GRU, true } },
    { .dim = { { 9, 20 }, { 20, 5 }, { 20 }, { 4 } },
      .ints = { [3] = cu },
      .attr = &(const attr){ SES_RNN_LSTM, true },
      .scale = 1e4 },
};
const ses_op ses_op_rnn = {
    .name = "rnn",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_rnn(ses_tape *t, ses_tensor *x, ses_tensor *w, ses_tensor *bias, ses_tensor *offsets,
                    ses_rnn_type type, bool reverse)
{
    return ses_apply(t, &ses_op_rnn, SES_IN(x, w, bias, offsets), &(attr){ type, reverse });
}
