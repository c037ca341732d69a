/* Dense layers and norms: parameters, and the variants of running them (fused, int8, with adapters). */
#include "nn.h"

#include "tensor/device_impl.h"
#include "tensor/pack.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { NAME = 128 };

static ses_tensor *add(ses_store *s, const char *base, const char *part, const int64_t dim[SES_MAX_DIM],
                       ses_init init)
{
    char name[NAME + 16];
    snprintf(name, sizeof name, "%s.%s", base, part);
    return ses_store_add(s, name, dim, init);
}

/* Lets an adapter add its parameters to the layer. */
static void add_adapter(ses_store *s, ses_dense *d, const char *name, int64_t out, int64_t in)
{
    const ses_adapter_hook *a = ses_store_adapter_hook(s);
    if (a) a->dense(a->ctx, s, d, name, out, in);
}

/* The weight, or its two factors. */
static ses_dense add_weight(ses_store *s, ses_weight_layout layout, int64_t out, int64_t in, const char *name)
{
    const ses_low_rank_hook *h = ses_store_low_rank_hook(s);
    int64_t rank = h ? h->rank(h->ctx, name, out, in) : 0;
    ses_dense d = { .layout = rank ? SES_OUT_IN : layout };
    if (rank) {
        d.first = add(s, name, "weight_a", SES_DIM(rank, in), SES_INIT_NORMAL);
        ses_store_set_dense(s, d.first, SES_OUT_IN);
    }
    d.w = add(s, name, rank ? "weight_b" : "weight",
              rank                   ? SES_DIM(out, rank)
              : layout == SES_IN_OUT ? SES_DIM(in, out)
                                     : SES_DIM(out, in),
              SES_INIT_NORMAL);
    ses_store_set_dense(s, d.w, d.layout);
    return d;
}

ses_dense ses_dense_add_layout(ses_store *s, ses_weight_layout layout, int64_t out, int64_t in, ses_bias bias,
                               const char *name)
{
    ses_dense d = add_weight(s, layout, out, in, name);
    if (bias == SES_BIAS) d.b = add(s, name, "bias", SES_DIM(out), SES_INIT_ZERO);
    add_adapter(s, &d, name, out, in);
    return d;
}

ses_dense ses_dense_add(ses_store *s, int64_t out, int64_t in, ses_bias bias, const char *fmt, ...)
{
    char base[NAME];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(base, sizeof base, fmt, ap);
    va_end(ap);
    return ses_dense_add_layout(s, SES_OUT_IN, out, in, bias, base);
}

void ses_dense_add_fused(ses_store *s, ses_dense *const d[], int n, int64_t out, int64_t in, ses_bias bias,
                         const char *const name[])
{
    for (int i = 0; i < n; i++) *d[i] = add_weight(s, SES_OUT_IN, out, in, name[i]);
    for (int i = 0; i < n && bias == SES_BIAS; i++)
        d[i]->b = add(s, name[i], "bias", SES_DIM(out), SES_INIT_ZERO);
    for (int i = 0; i < n; i++) add_adapter(s, d[i], name[i], out, in);
}

/* Does `part` start n elements after `first`, in values, gradients and the f32 copy? */
static bool follows(const ses_tensor *first, const ses_tensor *part, int64_t n)
{
    const char *data = first->data, *at = part->data;
    return data && at == data + n * (int64_t)ses_dtype_size(first->dtype) &&
           !first->master == !part->master && (!first->master || part->master == first->master + n) &&
           first->requires_grad == part->requires_grad &&
           (!first->requires_grad || part->grad == first->grad + n);
}

/* Consecutive parameters of the same shape as one tensor with n times the rows; NULL: they are not
 * consecutive. */
static ses_tensor *joined(ses_tape *t, ses_tensor *const part[], int n)
{
    const ses_tensor *first = part[0];
    for (int i = 0; i < n; i++)
        if (!follows(first, part[i], i * ses_count(first))) return NULL;
    ses_tensor *all = ses_tape_host_alloc(t, 1, sizeof *all);
    if (!all) return NULL;
    *all = *first;
    all->dim[0] *= n;
    all->capacity = 0;
    all->pack = NULL;
    return all;
}

ses_tensor *ses_dense_run_fused(ses_tape *t, const ses_dense d[], int n, ses_tensor *x, int64_t heads)
{
    enum { MAX_FUSED = 4 };
    ses_tensor *w[MAX_FUSED], *b[MAX_FUSED], *bias = NULL;
    int n_packed = 0, n_i8 = 0; /* number of weights with these properties */
    assert(n <= MAX_FUSED);
    for (int i = 0; i < n; i++) {
        if (!d[i].w || d[i].first || d[i].watch || ses_dense_has_adapter(&d[i]) || !d[i].b != !d[0].b)
            return NULL;
        w[i] = d[i].w, b[i] = d[i].b;
        n_packed += ses_tape_device(t)->is_host && w[i]->pack;
        n_i8 += ses_tape_device(t)->is_host && ses_pack_dtype(w[i]) == SES_I8;
    }
    if (n_i8 == n && !ses_tape_recording(t)) return ses_linear_fused(t, x, n, w, b, d[0].layout, heads);
    if (n_packed) return NULL;
    ses_tensor *weight = joined(t, w, n);
    if (weight && b[0]) bias = joined(t, b, n);
    if (!weight || (b[0] && !bias)) return NULL;
    return ses_linear(t, x, weight, bias, SES_ACT_NONE, d[0].layout);
}

ses_norm ses_norm_add(ses_store *s, int64_t width, ses_norm_kind kind, const char *fmt, ...)
{
    char base[NAME];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(base, sizeof base, fmt, ap);
    va_end(ap);
    ses_norm n = { .gain = add(s, base, "weight", SES_DIM(width), SES_INIT_ONE) };
    if (kind == SES_NORM_LAYER_NO_AFFINE) ses_store_set_role(s, n.gain, SES_PARAM_CONSTANT);
    if (kind == SES_NORM_RMS_PLUS_ONE) ses_store_set_init(s, n.gain, SES_INIT_ZERO), n.plus = 1;
    if (kind != SES_NORM_RMS && kind != SES_NORM_RMS_PLUS_ONE)
        n.bias = add(s, base, "bias", SES_DIM(width), SES_INIT_ZERO);
    if (kind == SES_NORM_LAYER_NO_BIAS || kind == SES_NORM_LAYER_NO_AFFINE)
        ses_store_set_role(s, n.bias, SES_PARAM_CONSTANT);
    return n;
}

/* y = x gain, by column; gain may have any shape. */
static ses_tensor *scale_columns(ses_tape *t, ses_tensor *x, ses_tensor *gain)
{
    return ses_affine(t, x, ses_reshape(t, gain, SES_DIM(ses_count(gain))), NULL);
}

/* The weight that reads the layer's input. */
static const ses_tensor *input_weight(const ses_dense *d) { return d->first ? d->first : d->w; }

ses_tensor *ses_dense_run_first(ses_tape *t, const ses_dense *d, ses_tensor *x)
{
    if (d->watch && x) d->watch->see(d->watch->ctx, x);
    if (!d->first) return x;
    if (ses_tape_device(t)->is_host && ses_pack_dtype(d->w) == SES_I8) /* d->w alone reads the product */
        return ses_linear_i8_out(t, x, d->first, NULL, SES_ACT_NONE, SES_OUT_IN);
    return ses_linear(t, x, d->first, NULL, SES_ACT_NONE, SES_OUT_IN);
}

ses_tensor *ses_dense_run(ses_tape *t, ses_dense d, ses_tensor *x, ses_act act)
{
    x = ses_dense_run_first(t, &d, x); /* factorized layers have no adapters */
    if (!ses_dense_has_adapter(&d)) return ses_linear(t, x, d.w, d.b, act, d.layout);
    if (d.in_gain) x = scale_columns(t, x, d.in_gain);
    ses_tensor *y = ses_linear(t, x, d.w, d.b, SES_ACT_NONE, d.layout);
    if (d.lora_a) {
        ses_tensor *low =
            ses_linear(t, ses_dropout(t, x, d.lora_dropout), d.lora_a, NULL, SES_ACT_NONE, SES_OUT_IN);
        low = ses_linear(t, ses_scale(t, low, d.lora_scale), d.lora_b, NULL, SES_ACT_NONE, SES_OUT_IN);
        y = ses_add(t, y, low);
    }
    if (d.out_gain) y = scale_columns(t, y, d.out_gain);
    return act == SES_ACT_NONE ? y : ses_activate(t, y, act);
}

/* May the output of d be int8 because only `next` reads it? */
static bool i8_output_allowed(const ses_tape *t, const ses_dense *d, const ses_dense *next)
{
    return !ses_dense_has_adapter(d) && !ses_dense_has_adapter(next) && ses_tape_device(t)->is_host &&
           ses_pack_dtype(input_weight(next)) == SES_I8;
}

ses_tensor *ses_dense_run_i8_out(ses_tape *t, ses_dense d, ses_tensor *x, ses_act act, const ses_dense *next)
{
    if (i8_output_allowed(t, &d, next))
        return ses_linear_i8_out(t, ses_dense_run_first(t, &d, x), d.w, d.b, act, d.layout);
    return ses_dense_run(t, d, x, act);
}

ses_tensor *ses_dense_run_gated(ses_tape *t, ses_dense d, ses_tensor *x, ses_act act, const ses_dense *next)
{
    if (i8_output_allowed(t, &d, next))
        return ses_linear_gated(t, ses_dense_run_first(t, &d, x), d.w, d.b, act, d.layout);
    return ses_glu(t, ses_dense_run(t, d, x, SES_ACT_NONE), act);
}

ses_tensor *ses_dense_run_ffn(ses_tape *t, ses_dense up, ses_tensor *x, ses_act act, ses_dense down)
{
    bool fusable = !ses_dense_has_adapter(&up) && !ses_dense_has_adapter(&down) && up.layout == down.layout &&
                   !up.first && !down.first && !up.w->rounds_i8;
    if (!fusable || !ses_tape_recording(t) || ses_tape_device(t)->is_host) return NULL;
    return ses_feed_forward(t, x, up.w, up.b, down.w, down.b, act, up.layout);
}

ses_tensor *ses_norm_run(ses_tape *t, ses_norm n, ses_tensor *x, ses_tensor *residual, double eps)
{
    if (n.bias) return ses_layer_norm(t, x, residual, n.gain, n.bias, eps);
    return ses_rms_norm_plus(t, residual ? ses_add(t, x, residual) : x, n.gain, eps, n.plus);
}

/* As an RMS norm: x / sqrt(mean x^2) / sqrt(width). */
ses_tensor *ses_l2_normalize(ses_tape *t, ses_tensor *x)
{
    int64_t width = x ? ses_cols(x) : 0;
    ses_real *gain = x ? ses_tape_host_alloc(t, (size_t)width, sizeof *gain) : NULL;
    if (!gain) return NULL;
    for (int64_t i = 0; i < width; i++) gain[i] = (ses_real)(1 / sqrt((double)width));
    /* an input, not a reshaped tensor: on a device with bf16 activations norms need their gain in f32 */
    return ses_rms_norm(t, x, ses_tape_input(t, gain, SES_DIM(width)), 1e-24 / (double)width);
}

ses_tensor *ses_norm_run_dropout(ses_tape *t, ses_norm n, ses_tensor *x, double rate, ses_tensor *residual,
                                 double eps)
{
    if (n.bias) return ses_layer_norm_dropout(t, x, rate, residual, n.gain, n.bias, eps);
    return ses_norm_run(t, n, ses_dropout(t, x, rate), residual, eps);
}

ses_tensor *ses_dense_run_normed(ses_tape *t, ses_dense d, ses_tensor *x, ses_norm n, double rate,
                                 ses_tensor *residual, double eps)
{
    if (!ses_dense_has_adapter(&d) && n.bias && ses_tape_device(t)->is_host &&
        ses_linear_norm_supports(t, d.w))
        return ses_linear_norm(t, ses_dense_run_first(t, &d, x), d.w, d.b, d.layout, residual, n.gain, n.bias,
                               eps);
    return ses_norm_run_dropout(t, n, ses_dense_run(t, d, x, SES_ACT_NONE), rate, residual, eps);
}
