/* Heads on chosen layers: the mean, the sum, the concatenation or a learned mix of hidden states replaces the
 * last one. */
#include "nn.h"

const char *const ses_combine_names[SES_COMBINES] = { "mean", "sum", "concat", "mix" };

bool ses_layer_choice_check(const ses_config *c, int64_t depth, ses_err *e)
{
    const ses_layer_choice *k = &c->custom_head.choice;
    for (int64_t i = 0; i < k->n; i++)
        if (k->layer[i] > depth || k->layer[i] < -depth - 1)
            return ses_fail(e, SES_EARG, "layer %lld: the model has layers 0 to %lld, or -1 to %lld",
                            (long long)k->layer[i], (long long)depth, (long long)(-depth - 1));
    if (k->combine == SES_COMBINE_CONCAT && k->n > 1 && !c->custom_head.kind)
        return ses_fail(e, SES_EARG,
                        "concatenated layers need a head of their width: linear, mlp, lstm or gru");
    return true;
}

int64_t ses_layer_choice_width(const ses_config *c, int64_t width)
{
    const ses_layer_choice *k = &c->custom_head.choice;
    return k->n && k->combine == SES_COMBINE_CONCAT ? k->n * width : width;
}

ses_tensor *ses_layer_choice_run(const ses_layer_choice *k, const ses_scalar_mix *mix, ses_tape *t,
                                 ses_tensor *const *h, int64_t depth)
{
    ses_tensor *x[SES_MAX_LAYER_CHOICE] = { 0 }, *sum = NULL;
    for (int64_t i = 0; i < k->n; i++) {
        x[i] = h[k->layer[i] < 0 ? depth + 1 + k->layer[i] : k->layer[i]];
        if (!x[i]) {
            ses_tape_fail(t, SES_EUNSUPPORTED,
                          "this model does not expose its layers: a head on chosen layers is not supported");
            return NULL;
        }
    }
    if (k->combine == SES_COMBINE_MIX) return ses_scalar_mix_run(mix, t, x, k->n);
    if (k->combine == SES_COMBINE_CONCAT && k->n > 1) return ses_concat(t, (int)k->n, x);
    for (int64_t i = 0; i < k->n; i++) sum = sum ? ses_add(t, sum, x[i]) : x[i];
    return k->combine == SES_COMBINE_MEAN && k->n > 1 ? ses_scale(t, sum, 1 / (double)k->n) : sum;
}
