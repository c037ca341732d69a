/* Batch norm with PyTorch's names: gain and bias are trained, running statistics are buffers. */
#include "nn.h"

#include <stdio.h>

static ses_tensor *vector(ses_store *s, const char *prefix, const char *what, int64_t width, ses_init init,
                          bool trained)
{
    char name[96];
    snprintf(name, sizeof name, "%s%s", prefix, what);
    ses_tensor *x = ses_store_add(s, name, SES_DIM(width), init);
    if (!trained) ses_store_set_role(s, x, SES_PARAM_BUFFER);
    return x;
}

ses_batch_norm_params ses_batch_norm_add(ses_store *s, int64_t width, const char *prefix)
{
    return (ses_batch_norm_params){ .gain = vector(s, prefix, "weight", width, SES_INIT_ONE, true),
                                    .bias = vector(s, prefix, "bias", width, SES_INIT_ZERO, true),
                                    .mean = vector(s, prefix, "running_mean", width, SES_INIT_ZERO, false),
                                    .var = vector(s, prefix, "running_var", width, SES_INIT_ONE, false) };
}

ses_tensor *ses_batch_norm_run(ses_tape *t, const ses_batch_norm_params *n, ses_tensor *x)
{
    return x ? ses_batch_norm(t, x, n->gain, n->bias, n->mean, n->var, 1e-5, 0.1) : NULL;
}
