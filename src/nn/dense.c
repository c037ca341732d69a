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

ses_dense ses_dense_add(ses_store *s, int64_t out, int64_t in, ses_bias bias, const char *fmt, ...)
{
    char base[NAME];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(base, sizeof base, fmt, ap);
    va_end(ap);
    ses_dense d = { .w = add(s, base, "weight", SES_DIM(out, in), SES_INIT_NORMAL) };
    if (bias == SES_BIAS) d.b = add(s, base, "bias", SES_DIM(out), SES_INIT_ZERO);
    return d;
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
    return ses_linear(t, x, d.w, d.b, act, d.order);
}

ses_tensor *ses_norm_run(ses_tape *t, ses_norm n, ses_tensor *x, ses_tensor *residual, double eps)
{
    if (n.bias) return ses_layer_norm(t, x, residual, n.gain, n.bias, eps);
    return ses_rms_norm(t, residual ? ses_add(t, x, residual) : x, n.gain, eps);
}
