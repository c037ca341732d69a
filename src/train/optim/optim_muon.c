/* Muon (Jordan et al. 2024): the weights of dense layers inside a stack move by their orthogonalized
 * momentum, all other parameters (embeddings, heads, norms, biases) by AdamW with the same learning rate.
 *     m = momentum m + (1 - momentum) g,   u = momentum m + (1 - momentum) g (Nesterov),   x = u / |u|
 *     five times (Newton-Schulz):  s = x x',   x = a x + (b s + c s s) x
 *     w -= lr decay w + lr f x
 * f is 0.2 sqrt(max(rows, cols)), which gives x the root mean square of AdamW's updates (Liu et al. 2025), or
 * sqrt(max(1, outputs / inputs)) (muon_original). Projections stored as one matrix (q, k, v; gate and value)
 * are separate matrices, unless muon_whole is set. Matrices of one shape are computed together. */
#include "optim_kind.h"

#include <math.h>

enum {
    STEPS = 5,
    MATRICES = 128,       /* per batch */
    BATCH_SIZE = 1 << 23, /* elements of a batch, unless one matrix is larger */
    BUFFERS = 4           /* buffers of BATCH_SIZE elements: x, the next x, s, b s + c s s */
};
static const double coef_a = 3.4445, coef_b = -4.7750, coef_c = 2.0315, min_norm = 1e-7;

/* The equal projections of a weight. */
typedef struct shape {
    int64_t rows, cols, parts;
} shape;

/* Reads the name: ask for the shape first. */
static bool is_hidden(const ses_param *p)
{
    return p->dense && !p->embedding && ses_rank(p->tensor) == 2 && ses_param_in_layer(p);
}

static shape shape_of(const ses_optim_options *o, const ses_param *p)
{
    shape s = { p->tensor->dim[0], p->tensor->dim[1], p->parts > 1 && !o->muon_whole ? p->parts : 1 };
    if (p->layout == SES_OUT_IN)
        s.rows /= s.parts;
    else
        s.cols /= s.parts;
    return s;
}

static int64_t scratch_size(int64_t largest, int64_t all)
{
    int64_t batch = all < BATCH_SIZE ? all : BATCH_SIZE;
    return BUFFERS * (largest > batch ? largest : batch);
}

static void state_layout(const ses_optim_options *o, const ses_param *p, const ses_tensor *w,
                         ses_optim_buffer b[SES_OPTIM_BUFFERS])
{
    if (is_hidden(p))
        b[0] = (ses_optim_buffer){ "momentum", ses_count(w) };
    else
        ses_adam_state_layout(o, p, w, b);
}

/* ---- matrices of one shape ---- */

typedef struct batch {
    ses_device *dev;
    ses_muon o;
    ses_real *buffer[BUFFERS];
    int64_t capacity, n; /* matrices */
    ses_muon_matrix part[MATRICES];
} batch;

/* C = alpha A B + beta D for each matrix. */
static void multiply(const batch *b, ses_gemm g, int64_t a_step, int64_t b_step, double alpha, double beta,
                     const ses_real *d)
{
    ses_gemm_batch all = { .g = g,
                           .count = b->n,
                           .a_step = a_step,
                           .b_step = b_step,
                           .c_step = g.m * g.n,
                           .d = d,
                           .alpha = alpha,
                           .beta = beta };
    b->dev->k.gemm_batch(&b->dev->exec, &all);
}

/* One step of Newton-Schulz from x to y, with the smaller of the two products as s. */
static void iterate(const batch *b, ses_real *y, const ses_real *x)
{
    int64_t rows = b->o.rows, cols = b->o.cols, size = rows * cols, n = rows < cols ? rows : cols;
    ses_real *s = b->buffer[2], *p = b->buffer[3];
    ses_gemm square = rows <= cols ? ses_gemm_nt(s, x, x, n, n, cols) : ses_gemm_tn(s, x, x, n, n, rows);
    multiply(b, square, size, size, 1, 0, NULL);
    multiply(b, ses_gemm_nn(p, s, s, n, n, n), n * n, n * n, coef_c, coef_b, s);
    if (rows <= cols)
        multiply(b, ses_gemm_nn(y, p, x, rows, cols, n), n * n, size, 1, coef_a, x);
    else
        multiply(b, ses_gemm_nn(y, x, p, rows, cols, n), size, n * n, 1, coef_a, x);
}

static void run(batch *b)
{
    const ses_kernels *k = &b->dev->k;
    ses_real *x = b->buffer[0], *y = b->buffer[1];
    if (!b->n) return;
    k->muon_momentum(&b->dev->exec, x, b->part, b->n, &b->o);
    for (int i = 0; i < STEPS; i++) {
        iterate(b, y, x);
        ses_real *next = x;
        x = y, y = next;
    }
    k->muon_update(&b->dev->exec, b->part, x, b->n, &b->o);
    b->n = 0;
}

static batch batch_of(const ses_optim_call *c, shape s)
{
    int64_t size = c->scratch_len / BUFFERS;
    batch b = { .dev = c->dev,
                .o = { .rows = s.rows,
                       .cols = s.cols,
                       .momentum = c->opt->momentum,
                       .eps = min_norm,
                       .scale = c->scale,
                       .nesterov = c->opt->nesterov },
                .capacity = size / (s.rows * s.cols) };
    if (b.capacity > MATRICES) b.capacity = MATRICES;
    for (int i = 0; i < BUFFERS; i++) b.buffer[i] = c->scratch + i * size;
    return b;
}

/* Adds the projections of one parameter, and runs full batches. */
static void add(batch *b, const ses_optim_call *c)
{
    shape s = shape_of(c->opt, c->param);
    bool out_in = c->param->layout == SES_OUT_IN;
    double outputs = (double)(out_in ? s.rows : s.cols), inputs = (double)(out_in ? s.cols : s.rows);
    double factor =
        c->opt->muon_original ? sqrt(fmax(1, outputs / inputs)) : 0.2 * sqrt(fmax(outputs, inputs));
    double lr = c->lr * (c->opt->muon_ratio > 0 ? c->opt->muon_ratio : 1);
    for (int64_t i = 0; i < s.parts; i++) {
        int64_t at = i * s.cols * (out_in ? s.rows : 1);
        b->part[b->n++] = (ses_muon_matrix){
            .w = ses_master_data(c->w) + at,
            .g = c->w->grad + at,
            .m = c->state[0] + at,
            .w_bf16 = c->w->master ? (char *)c->w->data + (size_t)at * ses_dtype_size(c->w->dtype) : NULL,
            .ld = c->w->dim[1],
            .keep = 1 - lr * c->decay,
            .rate = lr * factor
        };
        if (b->n == b->capacity) run(b);
    }
}

static bool same_shape(const ses_optim_call *a, const ses_optim_call *b)
{
    shape x = shape_of(a->opt, a->param), y = shape_of(b->opt, b->param);
    return x.rows == y.rows && x.cols == y.cols;
}

/* The parameters of the shape of c[first], which no earlier one has. */
static void step_shape(const ses_optim_call *c, size_t first, size_t n)
{
    batch b = batch_of(&c[first], shape_of(c[first].opt, c[first].param));
    for (size_t i = first; i < n; i++)
        if (same_shape(&c[first], &c[i]) && is_hidden(c[i].param)) add(&b, &c[i]);
    run(&b);
}

static void step_all(const ses_optim_call *c, size_t n)
{
    enum { SOME = 64 };
    ses_optim_call other[SOME];
    size_t others = 0;
    for (size_t i = 0; i < n; i++) {
        bool hidden = is_hidden(c[i].param), first = hidden;
        for (size_t j = 0; first && j < i; j++) first = !same_shape(&c[i], &c[j]) || !is_hidden(c[j].param);
        if (first) step_shape(c, i, n);
        if (!hidden) other[others++] = c[i];
        if (others == SOME || i + 1 == n) ses_adam_step_all(other, others), others = 0;
    }
}

const ses_optim_kind ses_optim_muon = {
    .name = "muon",
    .description = "orthogonalized momentum for hidden matrices, AdamW for the rest",
    .defaults = { .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .momentum = 0.95, .nesterov = true },
    .uses = SES_OPTIM_USES_MUON,
    .needs_scratch = true,
    .whole_tensors = true,
    .momentum = offsetof(ses_optim_options, momentum),
    .scratch_size = scratch_size,
    .state_layout = state_layout,
    .step_all = step_all,
};
