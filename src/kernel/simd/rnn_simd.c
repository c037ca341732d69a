/* Vectorized recurrent layers, see ses_recurrence for the formulas. All sequences that run at a time step
 * advance together: one product with the recurrent weights, then the gates. If the weights fit the cache of
 * each core, a thread takes its part of the sequences to their ends; otherwise threads share each step. */
#include "kernel/simd/vec/vec_loop.h"
#include "kernel/simd/vec/vecmath.h"

#include <string.h>

/* One time step for n sequences; rows of h, state, hidden and their gradients are in the order of the
 * schedule. Of several parts, the i-th row is sequence part + parts i. */
typedef struct step {
    ses_exec *x;
    const ses_recurrence *c;
    const ses_rnn_grad *g;
    int64_t part, parts, seqs; /* seqs: of this part */
    int64_t t, n;
    float *h;      /* [n][G]: state times the recurrent weights; backward: gradient of the pre-activations */
    float *state;  /* [n][out]: output of the last step; backward: its gradient */
    float *hidden; /* [n][size]: output before the projection; backward: its gradient */
    float *dcell;  /* [n][size] */
    float *dproject; /* [n][out]: gradient of the projection's output */
} step;

static int64_t gates(const ses_recurrence *c) { return c->type == SES_RNN_LSTM ? 4 : 3; }
static int64_t sequence_of(const step *s, int64_t i) { return s->part + s->parts * i; }
static int64_t row_of(const step *s, int64_t i)
{
    return s->c->first[sequence_of(s, i)] + s->c->stride * s->t;
}
/* The sequences of a part among the first n. */
static int64_t share(const step *s, int64_t n) { return (n - s->part + s->parts - 1) / s->parts; }

/* Rows of the step before; NULL: zeros. */
static const float *cell_before(const step *s, int64_t i)
{
    const ses_recurrence *c = s->c;
    if (s->t) return c->cell + (row_of(s, i) - c->stride) * c->size;
    return c->c0 ? c->c0 + c->order[sequence_of(s, i)] * c->size : NULL;
}

static const float *state_before(const step *s, int64_t i)
{
    const ses_recurrence *c = s->c;
    if (s->t) return c->y + (row_of(s, i) - c->stride) * c->y_row;
    return c->h0 ? c->h0 + c->order[sequence_of(s, i)] * c->out : NULL;
}

VF_INLINE vf get_or_zero(const float *p, int64_t j, int64_t left)
{
    return p ? vf_get(p + j, left) : vf_zero();
}
/* The operand order keeps a NaN in x. */
VF_INLINE vf clip(vf x, float limit) { return vf_min(vf_set1(limit), vf_max(vf_set1(-limit), x)); }
/* Gradient d of a clipped value x. */
VF_INLINE vf through_clip(vf d, vf x, float limit)
{
    return vf_select(vf_lt(vf_abs(x), vf_set1(limit)), d, vf_zero());
}

/* Derivatives of sigmoid and tanh, from their values. */
VF_INLINE vf sigmoid_slope(vf y) { return vf_sub(y, vf_mul(y, y)); }
VF_INLINE vf tanh_slope(vf y) { return vf_sub(vf_set1(1), vf_mul(y, y)); }

/* Pre-activation of gate columns j .. : x + h + bias. */
VF_INLINE vf preact(const step *s, const float *x, const float *h, int64_t j, int64_t left)
{
    return vf_add(vf_add(vf_get(x + j, left), vf_get(h + j, left)), get_or_zero(s->c->bias, j, left));
}

static void lstm_row(const step *s, int64_t i)
{
    const ses_recurrence *c = s->c;
    int64_t H = c->size, row = row_of(s, i);
    const float *x = c->x + row * 4 * H, *h = s->h + i * 4 * H, *before = cell_before(s, i);
    float *gate = c->gate ? c->gate + row * 4 * H : NULL, *y = c->y + row * c->y_row,
          *hidden = c->proj ? c->hidden + row * H : y, *copy = (c->proj ? s->hidden : s->state) + i * H;
    for (int64_t j = 0; j < H; j += VF_LANES) {
        int64_t left = H - j;
        vf in = vf_sigmoid(preact(s, x, h, j, left)), f = vf_sigmoid(preact(s, x, h, H + j, left)),
           g = vf_tanh(preact(s, x, h, 2 * H + j, left)), o = vf_sigmoid(preact(s, x, h, 3 * H + j, left));
        vf cell = vf_fma(f, get_or_zero(before, j, left), vf_mul(in, g));
        if (c->cell_clip > 0) cell = clip(cell, (float)c->cell_clip);
        vf value = vf_mul(o, vf_tanh(cell));
        if (gate) {
            vf_put(gate + j, in, left), vf_put(gate + H + j, f, left);
            vf_put(gate + 2 * H + j, g, left), vf_put(gate + 3 * H + j, o, left);
        }
        vf_put(c->cell + row * H + j, cell, left);
        if (c->y_row > c->out) vf_put(y + c->out + j, cell, left);
        vf_put(hidden + j, value, left), vf_put(copy + j, value, left);
    }
}

static void gru_row(const step *s, int64_t i)
{
    const ses_recurrence *c = s->c;
    int64_t H = c->size, row = row_of(s, i);
    const float *x = c->x + row * 3 * H, *h = s->h + i * 3 * H, *before = state_before(s, i);
    float *gate = c->gate ? c->gate + row * 3 * H : NULL;
    for (int64_t j = 0; j < H; j += VF_LANES) {
        int64_t left = H - j, last = 2 * H + j;
        vf r = vf_sigmoid(preact(s, x, h, j, left)), z = vf_sigmoid(preact(s, x, h, H + j, left)),
           cell = vf_add(vf_get(h + last, left), get_or_zero(c->bias, last, left)),
           n = vf_tanh(vf_fma(r, cell, vf_get(x + last, left))),
           y = vf_fma(z, vf_sub(get_or_zero(before, j, left), n), n);
        if (gate) vf_put(gate + j, r, left), vf_put(gate + H + j, z, left), vf_put(gate + last, n, left);
        vf_put(c->cell + row * H + j, cell, left);
        vf_put(c->y + row * c->y_row + j, y, left), vf_put(s->state + i * H + j, y, left);
    }
}

static int64_t rows_per_chunk(const step *s) { return ses_chunk_rows(gates(s->c) * s->c->size); }

static void rows_forward(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const step *s = ctx;
    ses_range r = ses_chunk(s->n, rows_per_chunk(s), chunk);
    for (int64_t i = r.begin; i < r.end; i++) s->c->type == SES_RNN_LSTM ? lstm_row(s, i) : gru_row(s, i);
}

/* The projected outputs: clipped, to y. */
static void project_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const step *s = ctx;
    const ses_recurrence *c = s->c;
    ses_range r = ses_chunk(s->n, rows_per_chunk(s), chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        float *y = c->y + row_of(s, i) * c->y_row, *state = s->state + i * c->out;
        for (int64_t j = 0; j < c->out; j += VF_LANES) {
            vf v = vf_get(state + j, c->out - j);
            if (c->proj_clip > 0) v = clip(v, (float)c->proj_clip);
            vf_put(y + j, v, c->out - j), vf_put(state + j, v, c->out - j);
        }
    }
}

/* h | state | hidden | dcell | dproject, for all sequences. */
int64_t VF_NAME(ses_k_rnn_work_size)(const ses_recurrence *c)
{
    return c->seqs * (gates(c) * c->size + 2 * c->out + 2 * c->size);
}

/* The part's step, with its rows of the work memory. */
static step begin(ses_exec *x, const ses_recurrence *c, const ses_rnn_grad *g, int64_t part, int64_t parts)
{
    step s = { .x = x, .c = c, .g = g, .part = part, .parts = parts, .seqs = c->seqs / parts };
    int64_t rest = c->seqs % parts, before = part * s.seqs + (part < rest ? part : rest);
    s.seqs += part < rest;
    s.h = c->work + before * (gates(c) * c->size + 2 * c->out + 2 * c->size);
    s.state = s.h + s.seqs * gates(c) * c->size;
    s.hidden = s.state + s.seqs * c->out;
    s.dcell = s.hidden + s.seqs * c->size;
    s.dproject = s.dcell + s.seqs * c->size;
    return s;
}

static ses_gemm product(ses_gemm g, const void *packed)
{
    g.packed = packed;
    return g;
}

static void run_forward(step s)
{
    const ses_recurrence *c = s.c;
    int64_t G = gates(c) * c->size;
    ses_gemm recur = product(ses_gemm_nt(s.h, s.state, c->w, s.seqs, G, c->out), c->packed_w),
             project =
                 product(ses_gemm_nt(s.state, s.hidden, c->proj, s.seqs, c->out, c->size), c->packed_proj);
    if (!c->h0) memset(s.h, 0, (size_t)(s.seqs * G) * sizeof *s.h);
    for (int64_t i = 0; c->h0 && i < s.seqs; i++)
        memcpy(s.state + i * c->out, c->h0 + c->order[sequence_of(&s, i)] * c->out,
               (size_t)c->out * sizeof *s.state);
    for (; s.t < c->steps && share(&s, c->active[s.t]) > 0; s.t++) {
        s.n = recur.m = project.m = share(&s, c->active[s.t]);
        if (s.t || c->h0) VF_NAME(ses_k_gemm)(s.x, &recur);
        int64_t chunks = ses_chunks(s.n, rows_per_chunk(&s));
        ses_parallel_for(s.x->pool, chunks, rows_forward, &s);
        if (!c->proj) continue;
        VF_NAME(ses_k_gemm)(s.x, &project);
        ses_parallel_for(s.x->pool, chunks, project_rows, &s);
    }
}

/* ---- backward ---- */

/* Adds dy to the state's gradient; the result is the gradient of the hidden vector or of its projection. */
static void output_row(const step *s, int64_t i)
{
    const ses_recurrence *c = s->c;
    int64_t row = row_of(s, i), P = c->out;
    const float *y = c->y + row * c->y_row, *dy = s->g->dy + row * c->y_row;
    float *state = s->state + i * P, *to = (c->proj ? s->dproject : s->hidden) + i * P;
    for (int64_t j = 0; j < P; j += VF_LANES) {
        int64_t left = P - j;
        vf d = vf_add(vf_get(dy + j, left), vf_get(state + j, left));
        if (c->proj_clip > 0) d = through_clip(d, vf_get(y + j, left), (float)c->proj_clip);
        vf_put(to + j, d, left), vf_put(state + j, vf_zero(), left);
        if (c->proj) vf_put(s->g->dprojected + row * P + j, d, left);
    }
}

static void lstm_row_bwd(const step *s, int64_t i)
{
    const ses_recurrence *c = s->c;
    int64_t H = c->size, row = row_of(s, i);
    const float *gate = c->gate + row * 4 * H, *before = cell_before(s, i), *dy = s->g->dy + row * c->y_row;
    float *dx = s->g->dx + row * 4 * H, *dh = s->h + i * 4 * H, *dcell = s->dcell + i * H;
    for (int64_t j = 0; j < H; j += VF_LANES) {
        int64_t left = H - j;
        vf in = vf_get(gate + j, left), f = vf_get(gate + H + j, left), g = vf_get(gate + 2 * H + j, left),
           o = vf_get(gate + 3 * H + j, left), cell = vf_get(c->cell + row * H + j, left), th = vf_tanh(cell),
           dy_hidden = vf_get(s->hidden + i * H + j, left),
           dc = vf_fma(vf_mul(dy_hidden, o), tanh_slope(th), vf_get(dcell + j, left));
        if (c->y_row > c->out) dc = vf_add(dc, vf_get(dy + c->out + j, left));
        if (c->cell_clip > 0) dc = through_clip(dc, cell, (float)c->cell_clip);
        vf d[4] = { vf_mul(vf_mul(dc, g), sigmoid_slope(in)),
                    vf_mul(vf_mul(dc, get_or_zero(before, j, left)), sigmoid_slope(f)),
                    vf_mul(vf_mul(dc, in), tanh_slope(g)), vf_mul(vf_mul(dy_hidden, th), sigmoid_slope(o)) };
        vf_put(dcell + j, vf_mul(dc, f), left);
        for (int64_t k = 0; k < 4; k++)
            vf_put(dx + k * H + j, d[k], left), vf_put(dh + k * H + j, d[k], left);
    }
}

static void gru_row_bwd(const step *s, int64_t i)
{
    const ses_recurrence *c = s->c;
    int64_t H = c->size, row = row_of(s, i);
    const float *gate = c->gate + row * 3 * H, *before = state_before(s, i);
    float *dx = s->g->dx + row * 3 * H, *all = s->g->dh + row * 3 * H, *dh = s->h + i * 3 * H;
    for (int64_t j = 0; j < H; j += VF_LANES) {
        int64_t left = H - j;
        vf r = vf_get(gate + j, left), z = vf_get(gate + H + j, left), n = vf_get(gate + 2 * H + j, left),
           dy = vf_get(s->hidden + i * H + j, left),
           dn = vf_mul(vf_mul(dy, vf_sub(vf_set1(1), z)), tanh_slope(n));
        vf d[3] = { vf_mul(vf_mul(dn, vf_get(c->cell + row * H + j, left)), sigmoid_slope(r)),
                    vf_mul(vf_mul(dy, vf_sub(get_or_zero(before, j, left), n)), sigmoid_slope(z)), dn };
        vf_put(s->state + i * H + j, vf_mul(dy, z), left);
        for (int64_t k = 0; k < 3; k++) {
            vf of_h = k < 2 ? d[k] : vf_mul(dn, r);
            vf_put(dx + k * H + j, d[k], left), vf_put(all + k * H + j, of_h, left);
            vf_put(dh + k * H + j, of_h, left);
        }
    }
}

static void outputs_backward(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const step *s = ctx;
    ses_range r = ses_chunk(s->n, rows_per_chunk(s), chunk);
    for (int64_t i = r.begin; i < r.end; i++) output_row(s, i);
}

static void rows_backward(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const step *s = ctx;
    ses_range r = ses_chunk(s->n, rows_per_chunk(s), chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        if (!s->c->proj) output_row(s, i);
        s->c->type == SES_RNN_LSTM ? lstm_row_bwd(s, i) : gru_row_bwd(s, i);
    }
}

static void add_to(ses_dst to, int64_t at, const float *from, int64_t n)
{
    for (int64_t j = 0; to.data && j < n; j += VF_LANES)
        vf_put_dst(to, at + j, vf_get(from + j, n - j), n - j);
}

static void run_backward(step s)
{
    const ses_recurrence *c = s.c;
    const ses_rnn_grad *g = s.g;
    int64_t G = gates(c) * c->size;
    ses_gemm recur = product(ses_gemm_nn(s.state, s.h, c->w, s.seqs, c->out, G), c->packed_w),
             project =
                 product(ses_gemm_nn(s.hidden, s.dproject, c->proj, s.seqs, c->size, c->out), c->packed_proj);
    recur.accumulate = true; /* added to the gradient that bypasses the gates */
    memset(s.state, 0, (size_t)(s.seqs * c->out) * sizeof *s.state);
    memset(s.dcell, 0, (size_t)(s.seqs * c->size) * sizeof *s.dcell);
    for (s.t = c->steps - 1; s.t >= 0; s.t--) {
        s.n = recur.m = project.m = share(&s, c->active[s.t]);
        if (s.n <= 0) continue;
        int64_t chunks = ses_chunks(s.n, rows_per_chunk(&s));
        if (c->proj) {
            ses_parallel_for(s.x->pool, chunks, outputs_backward, &s);
            VF_NAME(ses_k_gemm)(s.x, &project);
        }
        ses_parallel_for(s.x->pool, chunks, rows_backward, &s);
        if (s.t || g->dh0.data) VF_NAME(ses_k_gemm)(s.x, &recur);
    }
    for (int64_t i = 0; i < s.seqs; i++) {
        int64_t to = c->order[sequence_of(&s, i)];
        add_to(g->dh0, to * c->out, s.state + i * c->out, c->out);
        add_to(g->dc0, to * c->size, s.dcell + i * c->size, c->size);
    }
}

/* ---- threads ---- */

typedef struct job {
    const ses_recurrence *c;
    const ses_rnn_grad *g;
    int64_t parts;
} job;

static void run_part(void *ctx, int64_t part, void *scratch)
{
    (void)scratch;
    const job *b = ctx;
    ses_exec alone = { .pool = NULL };
    step s = begin(&alone, b->c, b->g, part, b->parts);
    b->g ? run_backward(s) : run_forward(s);
}

/* Bits do not depend on the number of parts. */
static void run_parts(ses_exec *x, const ses_recurrence *c, const ses_rnn_grad *g)
{
    enum { ROWS = 8, CACHED = 3 << 18 }; /* rows of a product that are worth a part; weights */
    int64_t weights = c->out * (gates(c) + (c->proj ? 1 : 0)) * c->size, enough = (c->seqs + ROWS - 1) / ROWS,
            threads = ses_thread_pool_size(x->pool), parts = threads < enough ? threads : enough;
    bool packed = c->packed_w && (c->packed_proj || !c->proj);
    if (parts > 1 && packed && weights <= CACHED) {
        ses_parallel_for(x->pool, parts, run_part, &(job){ c, g, parts });
        return;
    }
    step s = begin(x, c, g, 0, 1);
    g ? run_backward(s) : run_forward(s);
}

void VF_NAME(ses_k_rnn)(ses_exec *x, const ses_recurrence *c) { run_parts(x, c, NULL); }

void VF_NAME(ses_k_rnn_bwd)(ses_exec *x, const ses_recurrence *c, const ses_rnn_grad *g)
{
    run_parts(x, c, g);
}
