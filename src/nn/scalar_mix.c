/* ELMo's scalar mix: a learned weighted sum of layers, which replaces the last one. */
#include "nn.h"

#include <stdio.h>

ses_scalar_mix ses_scalar_mix_add(ses_store *s, const char *prefix, int64_t n)
{
    char weight[64], gain[64];
    snprintf(weight, sizeof weight, "%sweight", prefix);
    snprintf(gain, sizeof gain, "%sgain", prefix);
    return (ses_scalar_mix){ .weight = ses_store_add(s, weight, SES_DIM(n), SES_INIT_ZERO),
                             .gain = ses_store_add(s, gain, SES_DIM(1), SES_INIT_ONE) };
}

ses_tensor *ses_scalar_mix_run(const ses_scalar_mix *m, ses_tape *t, ses_tensor *const *h, int64_t n)
{
    ses_tensor *probs = ses_softmax(t, ses_reshape(t, m->weight, SES_DIM(1, n))), *sum = NULL;
    for (int64_t i = 0; i < n; i++) {
        if (!h[i]) {
            ses_tape_fail(t, SES_EUNSUPPORTED,
                          "this model does not expose its layers: a scalar mix is not supported");
            return NULL;
        }
        sum = ses_add_weighted(t, sum, h[i], probs, i);
    }
    return ses_add_weighted(t, NULL, sum, m->gain, 0);
}
