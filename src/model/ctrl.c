/* CTRL (Keskar et al. 2019): pre-norm decoder conditioned on a control code; sinusoidal positions, scaled
 * embeddings. */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("n_embd", hidden, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("n_layer", layers, SES_MAX_LAYERS),
    SES_KEY_REQUIRED("n_head", attention.heads, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("n_positions", position.max, SES_MAX_POSITIONS),
    SES_KEY_REQUIRED("dff", ffn.width, SES_MAX_FFN),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_NUMBER("layer_norm_epsilon", norm.final_eps, 0, 1),
    SES_KEY_RATE("resid_pdrop", dropout.hidden),
    SES_KEY_RATE("embd_pdrop", dropout.embed),
    SES_KEY_NUMBER("initializer_range", init.range, 0, 100),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
};

static const ses_tensor_name tensors[] = {
    { "embed.token", "w.weight" },
    { "layer.#.attn.norm.*", "h.#.layernorm1.*" },
    { "layer.#.attn.query.*", "h.#.multi_head_attention.Wq.*" },
    { "layer.#.attn.key.*", "h.#.multi_head_attention.Wk.*" },
    { "layer.#.attn.value.*", "h.#.multi_head_attention.Wv.*" },
    { "layer.#.attn.out.*", "h.#.multi_head_attention.dense.*" },
    { "layer.#.ffn.norm.*", "h.#.layernorm2.*" },
    { "layer.#.ffn.up.*", "h.#.ffn.0.*" },
    { "layer.#.ffn.down.*", "h.#.ffn.2.*" },
    { "final_norm.*", "layernorm.*" },
    { "lm.out.weight", "/lm_head.weight" },
    { "lm.out.bias", "/lm_head.bias" },
    { "classify.out.*", "/classifier.*" },
};

static const ses_class classes[] = {
    { .name = "CTRLModel" },
    SES_CLASS("CTRLLMHeadModel", SES_USE_HEAD(causal_lm, "logits")),
    SES_CLASS("CTRLForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
};

const ses_model_desc ses_model_ctrl = {
    .name = "ctrl",
    .prefix = "transformer.",
    .defaults = { .pad_id = -1,
                  .norm.eps = 1e-6, /* fixed in the layers, whatever config.json contains */
                  .dropout.hidden = 0.1,
                  .dropout.embed = 0.1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_RELU,
                  .norm.placement = SES_PRE_NORM,
                  .position.kind = SES_POS_SINUSOID,
                  .summary.kind = SES_SUMMARY_LAST_NON_PAD,
                  .norm.after_last_layer = true,
                  .embed.scale_by_sqrt_hidden = true,
                  .head.no_classifier_bias = true,
                  .attention.causal = true,
                  .lm.no_transform = true,
                  .lm.bias = true,
                  .embed.tied = true,
                  .embed.train_pad = true },
    .keys = { SES_TABLE(keys) },
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
