/* The Transformer of "Attention is all you need" (Vaswani et al. 2017): encoder and decoder, norms after the
 * residual sums, one table for source, target and prediction, tokens times sqrt(d_model), fixed sinusoids.
 * Its config.json has BART's keys (see docs/MODELS.md), and two of its own, whose defaults are the paper's:
 *   "attention_bias": false      projections of attention have no bias
 *   "sinusoids": "interleaved"   sin, cos, sin, cos, ... of rising wavelength; or "halves": sines first */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_NUMBER("layer_norm_eps", norm_eps, 0, 1),
};

static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    static const char *const layouts[] = { "interleaved", "halves" };
    bool biased = false;
    size_t layout;
    if (!ses_config_bool(config, "attention_bias", &biased, e) ||
        !ses_config_name(config, "sinusoids", layouts, SES_LEN(layouts), &layout, e))
        return false;
    c->no_attn_bias = !biased;
    if (layout) c->pos = SES_POS_SINUSOID;
    return true;
}

static const ses_class classes[] = {
    { .name = "TransformerModel" },
    SES_CLASS("TransformerForConditionalGeneration", SES_ON(target_lm, "logits")),
    { .name = "TransformerEncoderModel", .encoder_only = true },
};

const ses_model_desc ses_model_transformer = {
    .name = "transformer",
    .prefix = "model.",
    .pair = true,
    .arch = { .pad = 1,
              .eos = 2,
              .start = 2,
              .norm_eps = 1e-5,
              .drop = 0.1,
              .drop_embed = -1,
              .init_range = 0.02,
              .act = SES_ACT_RELU,
              .pos = SES_POS_INTERLEAVED,
              .scale_embed = true,
              .tied = true,
              .lm_plain = true },
    .keys = { { ses_bart_keys, SES_BART_KEYS }, SES_TABLE(keys) },
    .finish = finish,
    .tensors = { { ses_bart_tensors, SES_BART_TENSORS } },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
