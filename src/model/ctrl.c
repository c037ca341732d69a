/* CTRL (Keskar et al. 2019): pre-norm decoder steered by a control code; sinusoids for positions, scaled
 * tokens. */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_NEED("vocab_size", vocab, SES_MOST_TOKENS),
    SES_NEED("n_embd", hidden, SES_MOST_WIDTH),
    SES_NEED("n_layer", layers, SES_MAX_LAYERS),
    SES_NEED("n_head", heads, SES_MOST_WIDTH),
    SES_NEED("n_positions", positions, SES_MOST_POSITIONS),
    SES_NEED("dff", ffn, SES_MOST_FFN),
    SES_INT("pad_token_id", pad, -1, SES_MOST_TOKENS),
    SES_NUMBER("layer_norm_epsilon", final_eps, 0, 1),
    SES_RATE("resid_pdrop", drop),
    SES_RATE("embd_pdrop", drop_embed),
    SES_NUMBER("initializer_range", init_range, 0, 100),
    SES_SWITCH("tie_word_embeddings", tied),
};

static const ses_name tensors[] = {
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
    SES_CLASS("CTRLLMHeadModel", SES_ON(causal_lm, "logits")),
    SES_CLASS("CTRLForSequenceClassification", SES_ON(classify, "logits")),
};

const ses_model_desc ses_model_ctrl = {
    .name = "ctrl",
    .prefix = "transformer.",
    .arch = { .pad = -1,
              .norm_eps = 1e-6, /* in layers, whatever the config says */
              .drop = 0.1,
              .drop_embed = 0.1,
              .init_range = 0.02,
              .act = SES_ACT_RELU,
              .place = SES_PRE_NORM,
              .pos = SES_POS_SINUSOID,
              .summary = SES_SUMMARY_LAST,
              .final_norm = true,
              .scale_embed = true,
              .no_summary_bias = true,
              .causal = true,
              .lm_plain = true,
              .lm_bias = true,
              .tied = true,
              .pad_learns = true },
    .keys = { SES_TABLE(keys) },
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
