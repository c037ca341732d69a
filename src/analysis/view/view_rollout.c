/* Rollout and flow of a text's attention. With A' = (mean over heads + I), rows normalized, the rollout of
 * layer l is A'_l times that of the layer before; the flow is the maximum flow through the layers with A'
 * as capacities.
 *
 * In an encoder-decoder, a token of the decoder gets half of its input from the layer's cross attention
 * and half from what its self-attention (with A') left: rows of the decoder's and the cross rollout
 * together sum to 1. */
#include "analysis/view/attention_view.h"
#include "base/alloc.h"
#include "math/graph/maxflow.h"
#include "math/graph/rollout.h"
#include "tensor/device_impl.h"

#include <stdatomic.h>
#include <string.h>

static const ses_view_family *family_of(const ses_attention_view *v, const char *id)
{
    for (int i = 0; i < v->n_families; i++)
        if (!strcmp(v->family[i].id, id)) return &v->family[i];
    return NULL;
}

static double *matrix(ses_attention_view *v, int64_t rows, int64_t cols, ses_err *e)
{
    return ses_arena_array(&v->mem, (size_t)(rows * cols) + 1, sizeof(double), e);
}

/* Mean over heads, with the residual connection if it is self-attention. */
static double *mean_of(ses_attention_view *v, const ses_view_family *f, int64_t layer, ses_err *e)
{
    const ses_view_layer *l = &f->layer[layer];
    double *a = matrix(v, f->rows, f->cols, e);
    if (!a) return NULL;
    ses_head_mean(l->weight, l->heads, f->rows, f->cols, a);
    if (f->from == f->to)
        ses_add_residual(a, f->rows);
    else
        ses_normalize_rows(a, f->rows, f->cols);
    return a;
}

/* ---- rollout ---- */

static bool roll_stack(ses_attention_view *v, const ses_view_family *f, ses_thread_pool *pool, ses_err *e)
{
    for (int64_t i = 0; i < f->n_layers; i++) {
        double *a = mean_of(v, f, i, e), *out = a && i ? matrix(v, f->rows, f->cols, e) : a;
        if (!out) return false;
        if (i) ses_rollout_product(a, f->layer[i - 1].rollout, f->rows, f->rows, f->cols, out, pool);
        f->layer[i].rollout = out;
    }
    return true;
}

static void halve_into(double *x, const double *other, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] = 0.5 * x[i] + (other ? 0.5 * other[i] : 0);
}

/* The decoder after the encoder: own holds what reaches a token from the decoder's input, cross from the
 * source. */
static bool roll_decoder(ses_attention_view *v, const ses_view_family *own, const ses_view_family *cross,
                         const double *encoder, ses_thread_pool *pool, ses_err *e)
{
    int64_t t = own->rows, s = cross->cols;
    for (int64_t i = 0; i < own->n_layers && i < cross->n_layers; i++) {
        double *a = mean_of(v, own, i, e), *x = a ? mean_of(v, cross, i, e) : NULL,
               *d = x && i ? matrix(v, t, t, e) : a, *c = d ? matrix(v, t, s, e) : NULL,
               *seen = c ? matrix(v, t, s, e) : NULL;
        if (!seen) return false;
        if (i) {
            ses_rollout_product(a, own->layer[i - 1].rollout, t, t, t, d, pool);
            ses_rollout_product(a, cross->layer[i - 1].rollout, t, t, s, c, pool);
        }
        ses_rollout_product(x, encoder, t, s, s, seen, pool);
        halve_into(d, NULL, t * t);
        halve_into(c, seen, t * s);
        own->layer[i].rollout = d, cross->layer[i].rollout = c;
    }
    return true;
}

bool ses_view_rollout(ses_attention_view *v, ses_device *dev, ses_err *e)
{
    const ses_view_family *cross = family_of(v, "cross");
    ses_thread_pool *pool = dev->exec.pool;
    if (!roll_stack(v, &v->family[0], pool, e)) return false;
    if (!cross) return true;
    const ses_view_family *encoder = family_of(v, "encoder"), *own = family_of(v, "decoder");
    return !encoder || !own ||
           roll_decoder(v, own, cross, encoder->layer[encoder->n_layers - 1].rollout, pool, e);
}

/* ---- flow ---- */

/* Nodes: level l of the encoder (or only stack) is l * n .. ; the decoder follows with two levels a layer:
 * after cross attention, and after self-attention. */
typedef struct flow {
    ses_flow_graph *g;
    int32_t top;            /* first node of the last level */
    int32_t source, target; /* first node of the encoder's and the decoder's inputs */
    const ses_view_family *f;
    int64_t first_row;
    double *out;
    atomic_bool failed;
} flow;

static void add_matrix(ses_flow_graph *g, int32_t from, int32_t to, const double *a, int64_t rows,
                       int64_t cols, double factor)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            ses_flow_graph_add(g, from + (int32_t)i, to + (int32_t)j, factor * a[i * cols + j]);
}

static int64_t count_edges(const ses_attention_view *v)
{
    int64_t n = 0;
    for (int i = 0; i < v->n_families; i++) {
        const ses_view_family *f = &v->family[i];
        n += f->n_layers * (f->rows * f->cols + f->rows);
    }
    return n;
}

static bool add_decoder(ses_attention_view *v, flow *x, const ses_view_family *own,
                        const ses_view_family *cross, ses_err *e)
{
    int32_t memory = x->top, t = (int32_t)own->rows, at = x->target;
    for (int64_t i = 0; i < own->n_layers; i++, at += 2 * t) {
        double *a = mean_of(v, own, i, e), *c = a ? mean_of(v, cross, i, e) : NULL;
        if (!c) return false;
        add_matrix(x->g, at + t, at, a, t, t, 1);
        add_matrix(x->g, at + 2 * t, memory, c, t, cross->cols, 0.5);
        for (int32_t k = 0; k < t; k++) ses_flow_graph_add(x->g, at + 2 * t + k, at + t + k, 0.5);
    }
    x->top = at;
    return true;
}

/* The graph; x->top is the last level of the encoder, or with `decoder` of the decoder. */
static bool build(ses_attention_view *v, flow *x, bool decoder, ses_err *e)
{
    const ses_view_family *f = &v->family[0], *own = decoder ? family_of(v, "decoder") : NULL,
                          *cross = decoder ? family_of(v, "cross") : NULL;
    int64_t n = f->rows, nodes = (f->n_layers + 1) * n;
    x->target = (int32_t)nodes;
    if (own) nodes += (2 * own->n_layers + 1) * own->rows;
    x->g = nodes < INT32_MAX ? ses_flow_graph_new((int32_t)nodes, count_edges(v), e) : NULL;
    if (!x->g) return false;
    for (int64_t i = 0; i < f->n_layers; i++) {
        double *a = mean_of(v, f, i, e);
        if (!a) return false;
        add_matrix(x->g, (int32_t)((i + 1) * n), (int32_t)(i * n), a, n, n, 1);
    }
    x->top = (int32_t)(f->n_layers * n);
    return (!own || add_decoder(v, x, own, cross, e)) && ses_flow_graph_finish(x->g, e);
}

static void flow_of_row(void *ctx, int64_t chunk, void *scratch)
{
    flow *x = ctx;
    int64_t i = x->first_row + chunk;
    int32_t inputs = x->f->from == x->f->to && x->top >= x->target ? x->target : x->source;
    (void)scratch;
    ses_flow_solver *s = ses_flow_solver_new(x->g, NULL);
    if (!s) x->failed = true;
    for (int64_t j = 0; s && j < x->f->cols; j++)
        x->out[i * x->f->cols + j] = ses_max_flow(s, x->top + (int32_t)i, inputs + (int32_t)j);
    ses_flow_solver_free(s);
}

static bool solve(ses_attention_view *v, flow *x, ses_view_family *f, const ses_analysis_call *call,
                  ses_err *e)
{
    enum { ROWS = 8 };
    x->f = f;
    f->flow = x->out = matrix(v, f->rows, f->cols, e);
    if (!x->out) return false;
    for (x->first_row = 0; x->first_row < f->rows; x->first_row += ROWS) {
        int64_t left = f->rows - x->first_row;
        ses_analysis_progress(call, "Flow", x->first_row, f->rows);
        ses_parallel_for(call->dev->exec.pool, left < ROWS ? left : ROWS, flow_of_row, x);
        if (x->failed) return ses_fail(e, SES_ENOMEM, "out of memory for the flow");
    }
    ses_analysis_progress(call, "Flow", f->rows, f->rows);
    return true;
}

bool ses_view_flow(ses_attention_view *v, const ses_analysis_call *call, ses_err *e)
{
    bool ok = true;
    for (int i = 0; ok && i < v->n_families; i++) {
        flow x = { 0 };
        ok = build(v, &x, i > 0, e) && solve(v, &x, &v->family[i], call, e);
        ses_flow_graph_free(x.g);
    }
    return ok;
}

double ses_view_flow_seconds(const ses_attention_view *v)
{
    double pairs = 0, edges = (double)count_edges(v);
    for (int i = 0; i < v->n_families; i++) pairs += (double)(v->family[i].rows * v->family[i].cols);
    return pairs * edges * 25e-9; /* measured */
}
