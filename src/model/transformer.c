/* The Transformer of "Attention is all you need" (Vaswani et al. 2017): post-norm encoder-decoder, one table
 * for source, target and prediction, embeddings times sqrt(d_model), sinusoidal positions. config.json has
 * BART's keys (see docs/MODELS.md) and two more, with the paper's values as defaults: "attention_bias": false
 * (attention projections have no bias); "sinusoids": "interleaved" (sin, cos, sin, cos, ... by rising
 * wavelength) or "halves" (all sines, then all cosines). */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_KEY_NUMBER("layer_norm_eps", norm.eps, 0, 1),
};

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    static const char *const layouts[] = { "interleaved", "halves" };
    bool biased = false;
    size_t layout;
    if (!ses_config_bool(config, "attention_bias", &biased, e) ||
        !ses_config_name(config, "sinusoids", layouts, SES_LEN(layouts), &layout, e))
        return false;
    c->attention.no_bias = !biased;
    if (layout) c->position.kind = SES_POS_SINUSOID;
    return true;
}

static const ses_class classes[] = {
    { .name = "TransformerModel" },
    SES_CLASS("TransformerForConditionalGeneration", SES_USE_HEAD(seq2seq_lm, "logits")),
    { .name = "TransformerEncoderModel", .encoder_only = true },
};

const ses_model_desc ses_model_transformer = {
    .name = "transformer",
    .prefix = "model.",
    .encoder_decoder = true,
    .defaults = { .pad_id = 1,
                  .eos_id = 2,
                  .decoder.start_id = 2,
                  .norm.eps = 1e-5,
                  .dropout.hidden = 0.1,
                  .dropout.embed = -1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_RELU,
                  .position.kind = SES_POS_INTERLEAVED,
                  .embed.scale_by_sqrt_hidden = true,
                  .embed.tied = true,
                  .lm.no_transform = true },
    .keys = { { ses_bart_keys, SES_BART_KEYS }, SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { { ses_bart_tensors, SES_BART_TENSORS } },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
