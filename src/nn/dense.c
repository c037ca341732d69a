#include "nn.h"

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

/* A low-rank adapter beside the layer, where one is wanted: A begins at random, B at zero, so that nothing
 * changes at first (Hu et al. 2021). */
static void adapt(ses_store *s, ses_dense *d, const char *base, int64_t out, int64_t in)
{
    const ses_adapting *a = ses_store_adapting(s);
    if (!a || !a->wants(a->ctx, base, d->order)) return;
    d->down = add(s, base, "lora_A.weight", SES_DIM(a->rank, in), SES_INIT_FAN_IN);
    ses_store_role(s, d->down, SES_PARAM_TRAINED);
    d->up = add(s, base, "lora_B.weight", SES_DIM(out, a->rank), SES_INIT_ZERO);
    ses_store_role(s, d->up, SES_PARAM_TRAINED);
    d->scale = a->scale;
    d->drop = a->drop;
}

ses_dense ses_dense_add_as(ses_store *s, ses_weight order, int64_t out, int64_t in, ses_bias bias,
                           const char *name)
{
    ses_dense d = { .order = order };
    d.w = add(s, name, "weight", order == SES_IN_OUT ? SES_DIM(in, out) : SES_DIM(out, in), SES_INIT_NORMAL);
    ses_store_dense(s, d.w, order);
    if (bias == SES_BIAS) d.b = add(s, name, "bias", SES_DIM(out), SES_INIT_ZERO);
    adapt(s, &d, name, out, in);
    return d;
}

ses_dense ses_dense_add(ses_store *s, int64_t out, int64_t in, ses_bias bias, const char *fmt, ...)
{
    char base[NAME];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(base, sizeof base, fmt, ap);
    va_end(ap);
    return ses_dense_add_as(s, SES_OUT_IN, out, in, bias, base);
}

ses_norm ses_norm_add(ses_store *s, int64_t width, ses_norm_kind kind, const char *fmt, ...)
{
    char base[NAME];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(base, sizeof base, fmt, ap);
    va_end(ap);
    ses_norm n = { .gain = add(s, base, "weight", SES_DIM(width), SES_INIT_ONE) };
    if (kind == SES_NORM_PLAIN) ses_store_role(s, n.gain, SES_PARAM_FIXED);
    if (kind != SES_NORM_RMS) n.bias = add(s, base, "bias", SES_DIM(width), SES_INIT_ZERO);
    if (kind == SES_NORM_GAIN || kind == SES_NORM_PLAIN) ses_store_role(s, n.bias, SES_PARAM_FIXED);
    return n;
}

ses_tensor *ses_dense_run(ses_tape *t, ses_dense d, ses_tensor *x, ses_act act)
{
    if (!d.down) return ses_linear(t, x, d.w, d.b, act, d.order);
    ses_tensor *y = ses_linear(t, x, d.w, d.b, SES_ACT_NONE, d.order);
    ses_tensor *low = ses_linear(t, ses_dropout(t, x, d.drop), d.down, NULL, SES_ACT_NONE, SES_OUT_IN);
    y = ses_add(t, y, ses_linear(t, ses_scale(t, low, d.scale), d.up, NULL, SES_ACT_NONE, SES_OUT_IN));
    return act == SES_ACT_NONE ? y : ses_activate(t, y, act);
}

ses_tensor *ses_norm_run(ses_tape *t, ses_norm n, ses_tensor *x, ses_tensor *residual, double eps)
{
    if (n.bias) return ses_layer_norm(t, x, residual, n.gain, n.bias, eps);
    return ses_rms_norm(t, residual ? ses_add(t, x, residual) : x, n.gain, eps);
}
