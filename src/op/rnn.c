/* Recurrent layer over each sequence, forward or backward in time; see the kernel rnn for the formulas. All
 * sequences advance together, sorted by length, so that the unfinished ones come first. */
#include "gemm_weight.h"

#include "tensor/device_impl.h"

#include <string.h>

enum { X, W, BIAS, CU_SEQLENS, PROJ, H0, C0 };

typedef struct attr {
    ses_rnn_options o;
    const int32_t *host_cu_seqlens;
} attr;

static int64_t gates(const ses_node *n) { return ((const attr *)n->attr)->o.type == SES_RNN_LSTM ? 4 : 3; }
static const ses_rnn_options *options(const ses_node *n) { return &((const attr *)n->attr)->o; }

/* Units of the layer. */
static int64_t units(const ses_node *n) { return ses_cols(n->in[X]) / gates(n); }
/* Columns of the output without the cell states. */
static int64_t outputs(const ses_node *n) { return n->in[PROJ] ? ses_rows(n->in[PROJ]) : units(n); }
static int64_t sequences(const ses_node *n) { return ses_count(n->in[CU_SEQLENS]) - 1; }
static const ses_real *optional(const ses_tensor *x) { return x ? x->f : NULL; }

/* Cumulative lengths on the host; waits for the device if the caller did not keep them. NULL: failed. */
static const int32_t *host_cu_seqlens(const ses_node *n)
{
    const int32_t *cu = ((const attr *)n->attr)->host_cu_seqlens;
    return cu ? cu : ses_node_ints(n, CU_SEQLENS);
}

static bool check_shape(const ses_tensor *x, int64_t rows, int64_t cols, const char *what, ses_err *e)
{
    if (!x || (ses_rows(x) == rows && ses_cols(x) == cols)) return true;
    return ses_fail(e, SES_EARG, "%s is [%lld, %lld], expected [%lld, %lld]", what, (long long)ses_rows(x),
                    (long long)ses_cols(x), (long long)rows, (long long)cols);
}

static bool check_inputs(const ses_node *n, ses_err *e)
{
    static const char *const names[] = { "x", "weight", "bias", "cu_seqlens", "proj", "h0", "c0" };
    const ses_rnn_options *o = options(n);
    for (int i = X; i <= C0; i++)
        if (i == CU_SEQLENS ? !ses_check_ints(n, i, names[i], e)
                            : (i <= W || n->in[i]) && !ses_check_input(n, i, names[i], e))
            return false;
    int64_t H = units(n), P = outputs(n), G = gates(n) * H, seqs = sequences(n);
    if (ses_cols(n->in[X]) != G || (n->in[BIAS] && ses_count(n->in[BIAS]) != G))
        return ses_fail(e, SES_EARG, "x and bias must have %lld gates of the same size", (long long)gates(n));
    if (o->type != SES_RNN_LSTM && (n->in[PROJ] || n->in[C0] || o->cells || o->cell_clip > 0))
        return ses_fail(e, SES_EARG, "only an LSTM has cell states and a projection");
    if (o->cell_clip < 0 || o->proj_clip < 0 || (o->proj_clip > 0 && !n->in[PROJ]))
        return ses_fail(e, SES_EARG, "limits must be positive, and that of the projection needs one");
    return check_shape(n->in[W], G, P, "weight", e) && check_shape(n->in[PROJ], P, H, "proj", e) &&
           check_shape(n->in[H0], seqs, P, "h0", e) && check_shape(n->in[C0], seqs, H, "c0", e);
}

static bool infer(ses_node *n, ses_err *e)
{
    if (!check_inputs(n, e)) return false;
    const int32_t *cu = host_cu_seqlens(n);
    if (!cu) return false;
    int64_t T = ses_rows(n->in[X]), H = units(n), P = outputs(n), last = sequences(n);
    for (int64_t s = 0; s < last; s++)
        if (cu[s] > cu[s + 1] || cu[0] || cu[last] != T)
            return ses_fail(e, SES_EARG, "cu_seqlens must rise from 0 to %lld", (long long)T);
    return ses_node_out(n, SES_DIM(T, options(n)->cells ? P + H : P), e) &&
           (!ses_node_needs_backward(n) || ses_node_save_elems(n, 0, T * gates(n) * H, e)) &&
           ses_node_save(n, 1, T * H, e) && (!n->in[PROJ] || ses_node_save_elems(n, 2, T * H, e));
}

/* Sets the schedule of c: sequences by length, the longest first. A counting sort: stable, so that the order
 * is the same on every machine. */
static bool set_schedule(ses_recurrence *c, const ses_node *n)
{
    const int32_t *cu = host_cu_seqlens(n);
    for (int64_t s = 0; cu && s < c->seqs; s++)
        if (cu[s + 1] - cu[s] > c->steps) c->steps = cu[s + 1] - cu[s];
    int32_t *all = ses_tape_host_alloc(n->tape, (size_t)(c->steps + 2 * c->seqs) + 1, sizeof *all);
    int32_t *from = ses_tape_host_alloc(n->tape, (size_t)c->steps + 2, sizeof *from);
    if (!cu || !all || !from) return false;
    int32_t *active = all, *order = all + c->steps, *first = order + c->seqs;
    for (int64_t s = 0; s < c->seqs; s++) from[c->steps - (cu[s + 1] - cu[s]) + 1]++;
    for (int64_t i = 0; i <= c->steps; i++) from[i + 1] += from[i];
    for (int64_t t = 0; t < c->steps; t++) active[t] = from[c->steps - t];
    for (int64_t s = 0; s < c->seqs; s++) order[from[c->steps - (cu[s + 1] - cu[s])]++] = (int32_t)s;
    for (int64_t i = 0; i < c->seqs; i++)
        first[i] = options(n)->reverse ? cu[order[i] + 1] - 1 : cu[order[i]];
    c->active = active, c->order = order, c->first = first;
    if (ses_tape_device(n->tape)->is_host) return true;
    ses_tensor *copy = ses_tape_ints(n->tape, all, c->steps + 2 * c->seqs);
    c->device_schedule = copy ? copy->i : NULL;
    return copy != NULL;
}

/* Packs B of a product once for all steps; NULL: used unpacked. w: the weight that is B', or NULL. */
static const void *pack(const ses_node *n, ses_gemm g, const ses_tensor *w)
{
    ses_packed_weight p = w ? ses_pack_get(w, SES_OUT_IN, n->k, n->exec) : (ses_packed_weight){ 0 };
    if (p.data && p.dtype == SES_REAL) return p.data;
    int64_t size = g.b ? n->k->gemm_pack_size(g.n, g.k) : 0;
    ses_real *packed = size ? ses_scratch(n, size) : NULL;
    if (packed) n->k->gemm_pack(n->exec, packed, SES_REAL, g.b, g.b_row, g.b_col, g.n, g.k);
    return packed;
}

static bool begin(ses_recurrence *c, const ses_node *n)
{
    const ses_rnn_options *o = options(n);
    *c = (ses_recurrence){ .type = o->type,
                           .seqs = sequences(n),
                           .tokens = ses_rows(n->in[X]),
                           .size = units(n),
                           .out = outputs(n),
                           .cell_clip = o->cell_clip,
                           .proj_clip = o->proj_clip,
                           .stride = o->reverse ? -1 : 1,
                           .x = n->in[X]->f,
                           .w = n->in[W]->f,
                           .bias = optional(n->in[BIAS]),
                           .proj = optional(n->in[PROJ]),
                           .h0 = optional(n->in[H0]),
                           .c0 = optional(n->in[C0]),
                           .y = n->out->f,
                           .y_row = ses_cols(n->out),
                           .gate = n->saved[0],
                           .cell = n->saved[1],
                           .hidden = n->saved[2] };
    int64_t work = n->k->rnn_work_size(c);
    c->work = work ? ses_scratch(n, work) : NULL;
    return set_schedule(c, n) && (c->work || !work);
}

static void forward(const ses_node *n)
{
    ses_recurrence c;
    if (!begin(&c, n)) return;
    c.packed_w = pack(n, ses_gemm_nt(NULL, NULL, c.w, c.seqs, gates(n) * c.size, c.out), n->in[W]);
    c.packed_proj = pack(n, ses_gemm_nt(NULL, NULL, c.proj, c.seqs, c.out, c.size), n->in[PROJ]);
    n->k->rnn(n->exec, &c);
}

/* [T, out]: the state before each row, from earlier rows or h0. */
static ses_real *states_before(const ses_node *n, const ses_recurrence *c)
{
    int32_t *row = ses_tape_host_alloc(n->tape, 2 * (size_t)c->tokens, sizeof *row);
    ses_real *y = c->y_row > c->out ? ses_scratch_elems(n, c->tokens * c->out) : c->y,
             *previous = ses_scratch_elems(n, c->tokens * c->out);
    if (!row || !y || !previous) return NULL;
    int32_t *initial = row + c->tokens;
    for (int64_t t = 0; t < c->steps; t++)
        for (int64_t i = 0; i < c->active[t]; i++) {
            int64_t at = c->first[i] + c->stride * t;
            row[at] = t ? (int32_t)(at - c->stride) : SES_IGNORE_INDEX;
            initial[at] = t ? SES_IGNORE_INDEX : c->order[i];
        }
    ses_tensor *rows = ses_tape_ints(n->tape, row, 2 * c->tokens);
    if (!rows) return NULL;
    if (y != c->y)
        n->k->copy_cols(n->exec, (ses_dst){ .data = y }, c->out, c->y, c->y_row, c->tokens, c->out);
    n->k->gather(n->exec, previous, (const ses_real *const[]){ y, c->h0 },
                 (const int32_t *const[]){ rows->i, rows->i + c->tokens }, c->h0 ? 2 : 1, c->tokens, c->out);
    return previous;
}

/* dw += dh' h', dbias += sum of dh, dproj += dprojected' hidden. */
static void weight_grads(const ses_node *n, const ses_recurrence *c, const ses_rnn_grad *g)
{
    int64_t G = gates(n) * c->size;
    ses_dst db = n->in[BIAS] ? ses_grad_zeroed(n, BIAS) : (ses_dst){ 0 }, dw = ses_grad(n, W);
    if (db.data) n->k->col_sum(n->exec, db, g->dh, c->tokens, G, G);
    const ses_real *previous = dw.data ? states_before(n, c) : NULL;
    if (previous) {
        ses_gemm p = ses_gemm_tn(dw.data, g->dh, previous, G, c->out, c->tokens);
        p.accumulate = dw.accumulate, p.is_f32 = dw.is_f32;
        ses_gemm_packing(n, &p);
    }
    ses_dst dproj = n->in[PROJ] ? ses_grad(n, PROJ) : (ses_dst){ 0 };
    if (dproj.data) {
        ses_gemm p = ses_gemm_tn(dproj.data, g->dprojected, c->hidden, c->out, c->size, c->tokens);
        p.accumulate = dproj.accumulate, p.is_f32 = dproj.is_f32;
        ses_gemm_packing(n, &p);
    }
}

static void backward(const ses_node *n)
{
    ses_recurrence c;
    if (!begin(&c, n)) return;
    int64_t G = gates(n) * c.size;
    bool lstm = options(n)->type == SES_RNN_LSTM;
    ses_dst dx = ses_grad(n, X);
    bool direct = dx.data && !dx.accumulate && (!dx.is_f32 || n->dtype == SES_REAL);
    ses_rnn_grad g = { .dy = n->out->grad, .dx = direct ? dx.data : ses_scratch_elems(n, c.tokens * G) };
    g.dh = lstm ? g.dx : ses_scratch_elems(n, c.tokens * G);
    if (c.proj) g.dprojected = ses_scratch_elems(n, c.tokens * c.out);
    if (!g.dx || !g.dh || (c.proj && !g.dprojected)) return;
    if (c.h0) g.dh0 = ses_grad(n, H0);
    if (c.c0) g.dc0 = ses_grad(n, C0);
    c.packed_w = pack(n, ses_gemm_nn(NULL, NULL, c.w, c.seqs, c.out, G), NULL);
    c.packed_proj = pack(n, ses_gemm_nn(NULL, NULL, c.proj, c.seqs, c.size, c.out), NULL);
    n->k->rnn_bwd(n->exec, &c, &g);
    if (dx.data && !direct) n->k->scale(n->exec, dx, g.dx, 1, c.tokens * G);
    weight_grads(n, &c, &g);
}

static const int32_t cu[] = { 0, 3, 4, 9 }, none[] = { 0, 0, 5, 5, 9 };
#define LSTM(...)                                 \
    &(const attr)                                 \
    {                                             \
        .o = {.type = SES_RNN_LSTM, __VA_ARGS__ } \
    }
#define GRU(...)                                 \
    &(const attr)                                \
    {                                            \
        .o = {.type = SES_RNN_GRU, __VA_ARGS__ } \
    }
static const ses_case cases[] = {
    { .dim = { { 9, 20 }, { 20, 5 }, { 20 }, { 4 } }, .ints = { [3] = cu }, .attr = LSTM() },
    { .dim = { { 9, 68 }, { 68, 17 }, { 68 }, { 4 } },
      .ints = { [3] = cu },
      .attr = LSTM(.reverse = true),
      .tol = 3e-5 },
    { .dim = { { 9, 4 }, { 4, 1 }, { 0 }, { 5 } }, .ints = { [3] = none }, .attr = LSTM() },
    { .dim = { { 9, 15 }, { 15, 5 }, { 15 }, { 4 } }, .ints = { [3] = cu }, .attr = GRU() },
    { .dim = { { 9, 51 }, { 51, 17 }, { 51 }, { 4 } },
      .ints = { [3] = cu },
      .attr = GRU(.reverse = true),
      .tol = 3e-5 },
    { .dim = { { 9, 3 }, { 3, 1 }, { 3 }, { 5 } }, .ints = { [3] = none }, .attr = GRU(.reverse = true) },
    { .dim = { { 9, 20 }, { 20, 5 }, { 20 }, { 4 } },
      .ints = { [3] = cu },
      .attr = LSTM(.reverse = true),
      .scale = 1e4 },
    /* initial states, cell states as outputs */
    { .dim = { { 9, 20 }, { 20, 5 }, { 20 }, { 4 }, { 0 }, { 3, 5 }, { 3, 5 } },
      .ints = { [3] = cu },
      .attr = LSTM(.cells = true) },
    { .dim = { { 9, 15 }, { 15, 5 }, { 0 }, { 5 }, { 0 }, { 4, 5 } }, .ints = { [3] = none }, .attr = GRU() },
    /* projected and clipped, as in ELMo */
    { .dim = { { 9, 68 }, { 68, 3 }, { 68 }, { 4 }, { 3, 17 }, { 3, 3 }, { 3, 17 } },
      .ints = { [3] = cu },
      .attr = LSTM(.reverse = true, .cells = true, .cell_clip = 0.75, .proj_clip = 0.875),
      .tol = 3e-5 },
    { .dim = { { 9, 20 }, { 20, 18 }, { 20 }, { 5 }, { 18, 5 } },
      .ints = { [3] = none },
      .attr = LSTM(),
      .tol = 3e-5 },
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

ses_tensor *ses_rnn(ses_tape *t, const ses_rnn_inputs *in, const ses_rnn_options *o)
{
    return ses_apply(t, &ses_op_rnn, SES_IN(in->x, in->w, in->bias, in->cu_seqlens, in->proj, in->h0, in->c0),
                     &(attr){ *o, in->host_cu_seqlens });
}
