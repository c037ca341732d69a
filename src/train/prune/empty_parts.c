/* Removal of empty heads and feed-forward rows: see empty_parts.h. */
#include "empty_parts.h"

#include "base/alloc.h"
#include "kernel/ref/act_ref.h"
#include "model/model_desc.h"
#include "model/reduce.h"
#include "tensor/device_impl.h"

/* The two matrices around the units of a block. */
typedef struct unit_block {
    const ses_dense *first, *gate, *second; /* gate NULL: none. first NULL: its rows are not looked at */
    int part, parts;                        /* the part of a fused first matrix that makes the units */
    int64_t units, dim;                     /* dim: outputs of a unit */
    ses_act act;
    bool gated; /* first or gate is multiplied with the other */
} unit_block;

typedef struct block_values { /* on the host */
    ses_real *first, *gate, *second, *bias;
} block_values;

static ses_real *read(const ses_model *m, const ses_tensor *x, ses_err *e)
{
    ses_real *v = ses_alloc_array((size_t)ses_count(x), sizeof *v, e);
    if (v && ses_device_read(m->dev, x, 0, ses_count(x), v, e)) return v;
    ses_free(v);
    return NULL;
}

/* Element (out, in) of a dense weight on the host. */
static double at(const ses_dense *d, const ses_real *w, int64_t out, int64_t in)
{
    return (double)(d->layout == SES_OUT_IN ? w[out * d->w->dim[1] + in] : w[in * d->w->dim[1] + out]);
}
static int64_t outputs(const ses_dense *d) { return d->w->dim[d->layout == SES_OUT_IN ? 0 : 1]; }
static int64_t inputs(const ses_dense *d) { return d->w->dim[d->layout == SES_OUT_IN ? 1 : 0]; }

/* Are these outputs of d always its bias? */
static bool is_empty_out(const ses_dense *d, const ses_real *w, int64_t from, int64_t n)
{
    for (int64_t i = from; i < from + n; i++)
        for (int64_t j = 0; j < inputs(d); j++)
            if (at(d, w, i, j) != 0) return false;
    return true;
}

static bool is_empty_in(const ses_dense *d, const ses_real *w, int64_t from, int64_t n)
{
    for (int64_t i = 0; i < outputs(d); i++)
        for (int64_t j = from; j < from + n; j++)
            if (at(d, w, i, j) != 0) return false;
    return true;
}

/* Is unit u constant? Then constant[0 .. dim - 1] are its values. Gated rows only without biases: zero. */
static bool is_constant(const unit_block *b, const block_values *v, int64_t u, ses_real *constant)
{
    if (!b->first) return false;
    int64_t part = outputs(b->first) / b->parts, row = b->part * part + u * b->dim;
    if (b->gated) {
        bool up = is_empty_out(b->first, v->first, part * (b->parts - 1) + u, 1);
        bool gate = b->gate ? is_empty_out(b->gate, v->gate, u, 1) : is_empty_out(b->first, v->first, u, 1);
        return !v->bias && !(b->gate && b->gate->b) && (up || (gate && ses_act_ref(b->act, 0) == 0));
    }
    if (!is_empty_out(b->first, v->first, row, b->dim)) return false;
    for (int64_t i = 0; i < b->dim; i++)
        constant[i] = (ses_real)ses_act_ref(b->act, v->bias ? (double)v->bias[row + i] : 0);
    return true;
}

static bool is_zero(const ses_real *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] != 0) return false;
    return true;
}

/* Marks the units to remove with 0 in keep; sum: what to add to the second bias. */
static void mark(const unit_block *b, const block_values *v, uint8_t *keep, ses_real *constant, double *sum)
{
    int64_t left = b->units;
    for (int64_t u = 0; u < b->units && left > 1; u++) {
        ses_real *c = constant + u * b->dim;
        bool unread = is_empty_in(b->second, v->second, u * b->dim, b->dim);
        bool fixed = !unread && is_constant(b, v, u, c);
        if (!unread && (!fixed || (!b->second->b && !is_zero(c, b->dim)))) continue;
        keep[u] = 0;
        left--;
        for (int64_t i = 0; fixed && i < outputs(b->second); i++)
            for (int64_t j = 0; j < b->dim; j++)
                sum[i] += at(b->second, v->second, i, u * b->dim + j) * (double)c[j];
    }
}

static bool mark_block(const ses_model *m, const unit_block *b, uint8_t *keep, double *sum, ses_err *e)
{
    block_values v = { 0 };
    ses_real *constant = ses_alloc_array((size_t)(b->units * b->dim), sizeof *constant, e);
    bool ok = constant && (v.second = read(m, b->second->w, e)) &&
              (!b->first || (v.first = read(m, b->first->w, e))) &&
              (!b->gate || (v.gate = read(m, b->gate->w, e))) &&
              (!b->first || !b->first->b || (v.bias = read(m, b->first->b, e)));
    if (ok) mark(b, &v, keep, constant, sum);
    ses_free(constant), ses_free(v.first), ses_free(v.gate), ses_free(v.second), ses_free(v.bias);
    return ok;
}

static unit_block heads_of(const ses_stack *k, const ses_attn_params *a, int64_t heads)
{
    bool one = k->c->attention.qkv_layout != SES_QKV_SEPARATE, pair = one && a->key.w;
    bool fused = !pair && a->query.w && k->c->attention.qkv_layout == SES_QKV_FUSED;
    return (unit_block){ .first = a->value.w ? &a->value
                                  : pair     ? &a->key
                                  : fused    ? &a->query
                                             : NULL,
                         .second = &a->out,
                         .part = fused  ? 2
                                 : pair ? 1
                                        : 0,
                         .parts = fused  ? 3
                                  : pair ? 2
                                         : 1,
                         .units = heads,
                         .dim = inputs(&a->out) / heads,
                         .act = SES_ACT_NONE };
}

static unit_block rows_of(const ses_stack *k, const ses_layer *l)
{
    const ses_config *c = k->c;
    return (unit_block){ .first = l->up.w ? &l->up : NULL,
                         .gate = l->gate.w ? &l->gate : NULL,
                         .second = &l->down,
                         .parts = c->ffn.fused_gate ? 2 : 1,
                         .units = inputs(&l->down),
                         .dim = 1,
                         .act = c->ffn.act,
                         .gated = c->ffn.gated };
}

/* sum: what the biases of attn.out, cross.out and ffn.down get, [hidden] each. */
static bool mark_layer(const ses_model *m, ses_reduction *r, int stack, int64_t i, double *sum[3], ses_err *e)
{
    const ses_stack *k = &m->stack[stack];
    const ses_layer *l = &k->layer[i];
    ses_part part = stack ? SES_PART_DECODER : SES_PART_MAIN;
    bool heads = !ses_pruned_heads_unsupported(m->desc, &m->c),
         rows = !ses_ffn_widths_unsupported(m->desc, &m->c) && !m->stack[1].layer;
    if (heads && l->self.out.w) {
        unit_block b = heads_of(k, &l->self, ses_stack_heads(k, i));
        if (!mark_block(m, &b, r->head[part] + i * r->heads[part], sum[0], e)) return false;
    }
    if (heads && stack && l->cross.out.w) {
        unit_block b = heads_of(k, &l->cross, ses_stack_cross_heads(k, i));
        if (!mark_block(m, &b, r->head[SES_PART_CROSS] + i * r->heads[SES_PART_CROSS], sum[1], e))
            return false;
    }
    if (rows && l->down.w) {
        unit_block b = rows_of(k, l);
        if (!mark_block(m, &b, r->row + i * r->rows, sum[2], e)) return false;
    }
    return true;
}

/* Adds sum [n] to a bias; b NULL: the sum is zero. */
static bool add_to_bias(const ses_model *m, const ses_tensor *b, const double *sum, ses_err *e)
{
    if (!b) return true;
    ses_real *v = read(m, b, e);
    if (!v) return false;
    for (int64_t i = 0; i < ses_count(b); i++) v[i] = (ses_real)((double)v[i] + sum[i]);
    m->dev->mem->upload(m->dev, ses_master_data(b), v, (size_t)ses_count(b) * sizeof *v);
    ses_free(v);
    return true;
}

static bool add_sums(const ses_model *m, int stack, int64_t i, double *const sum[3], ses_err *e)
{
    const ses_layer *l = &m->stack[stack].layer[i];
    return add_to_bias(m, l->self.out.b, sum[0], e) && add_to_bias(m, l->cross.out.b, sum[1], e) &&
           add_to_bias(m, l->down.b, sum[2], e);
}

/* The three sums of layer i of a stack, in `all`. */
static void sums_of(const ses_model *m, double *all, int stack, int64_t i, double *sum[3])
{
    int64_t hidden = m->c.hidden > m->source.hidden ? m->c.hidden : m->source.hidden;
    int64_t before = stack ? m->stack[0].n_unique : 0;
    for (int k = 0; k < 3; k++) sum[k] = all + (3 * (before + i) + k) * hidden;
}

/* Calls fn for each layer. */
typedef bool layer_fn(const ses_model *m, ses_reduction *r, int stack, int64_t i, double *sum[3], ses_err *e);

static bool add_layer(const ses_model *m, ses_reduction *r, int stack, int64_t i, double *sum[3], ses_err *e)
{
    (void)r;
    return add_sums(m, stack, i, sum, e);
}

static bool each_layer(const ses_model *m, ses_reduction *r, double *all, layer_fn *fn, ses_err *e)
{
    for (int s = 0; s < (int)SES_LEN(m->stack); s++)
        for (int64_t i = 0; m->stack[s].layer && i < m->stack[s].n_unique; i++) {
            double *sum[3];
            sums_of(m, all, s, i, sum);
            if (!fn(m, r, s, i, sum, e)) return false;
        }
    return true;
}

ses_model *ses_model_without_empty_parts(const ses_model *m, ses_err *e)
{
    int64_t hidden = m->c.hidden > m->source.hidden ? m->c.hidden : m->source.hidden,
            layers = m->stack[0].n_unique + (m->stack[1].layer ? m->stack[1].n_unique : 0);
    const char *why = ses_pruned_heads_unsupported(m->desc, &m->c);
    if (why && ses_ffn_widths_unsupported(m->desc, &m->c)) {
        ses_fail(e, SES_EUNSUPPORTED, "heads and rows of a %s model cannot be removed: %s", m->desc->name,
                 why);
        return NULL;
    }
    double *all = ses_alloc_array((size_t)(3 * layers * hidden + 1), sizeof *all, e);
    ses_reduction *r = all ? ses_reduction_new(m, e) : NULL;
    ses_model *small = NULL;
    bool ok = r && ses_reduction_check(r, m, e) && each_layer(m, r, all, mark_layer, e) &&
              (small = ses_model_reduce(m, r, SES_REDUCED_SMALL, e)) &&
              each_layer(small, r, all, add_layer, e);
    if (ok) ses_store_sync_bf16(ses_model_store(small));
    if (!ok) ses_model_free(small);
    ses_reduction_free(r);
    ses_free(all);
    return ok ? small : NULL;
}
