/* EmbeddingGemma (Vera et al. 2025): Gemma 3's text model, whose tokens see both sides. RMS norms with the
 * factor 1 + weight before and after the sublayers and of queries and keys, grouped heads, windows in most
 * layers, embeddings times sqrt(hidden). */
#include "model/encoder/rotary_tables.h"

#include <math.h>

static bool not_every(int64_t layer, int64_t every) { return (layer + 1) % every != 0; }

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    bool both = false;
    int64_t window = 4096, every = 6, older = 0;
    double scalar = 256;
    const ses_json *v = ses_json_get(config, "query_pre_attn_scalar");
    if (!ses_config_bool(config, "use_bidirectional_attention", &both, e) ||
        !ses_config_int(config, "sliding_window", &window, e) ||
        !ses_config_int(config, "sliding_window_pattern", &older, e))
        return false;
    if (older) every = older;
    if (!ses_config_int(config, "_sliding_window_pattern", &every, e)) return false;
    if (v && !ses_json_real(v, &scalar))
        return ses_fail(e, SES_EFORMAT, "\"query_pre_attn_scalar\" is not a number");
    if (!(scalar > 0) || window < 1 || window > SES_MAX_POSITIONS || every < 1)
        return ses_fail(e, SES_EARG,
                        "\"query_pre_attn_scalar\", \"sliding_window\" or its pattern is out of range");
    c->attention.causal = !both;
    c->attention.scale = 1 / sqrt(scalar);
    /* transformers halves the window of a model whose tokens see both sides */
    c->attention.window = both ? window / 2 + 1 : window;
    return ses_rotary_layer_types(c, config, not_every, every, e) && ses_rotary_post_read(c, config, e);
}

static const ses_tensor_name tensors[] = {
    { "layer.#.attn.norm2.*", "layers.#.post_attention_layernorm.*" },
    { "layer.#.ffn.norm.*", "layers.#.pre_feedforward_layernorm.*" },
    { "layer.#.ffn.norm2.*", "layers.#.post_feedforward_layernorm.*" },
    { "lm.out.weight", "/lm_head.weight" },
    { "classify.out.*", "/score.*" },
};

static const ses_class classes[] = {
    { .name = "Gemma3TextModel" },
    SES_CLASS("Gemma3ForCausalLM", SES_USE_HEAD(causal_lm, "logits")),
    SES_CLASS("Gemma3TextForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
};

static const char *const reads[] = { SES_ROTARY_READS,        "use_bidirectional_attention",
                                     "sliding_window",        "sliding_window_pattern",
                                     "query_pre_attn_scalar", "_sliding_window_pattern",
                                     "layer_types",           NULL };

const ses_model_desc ses_model_gemma3_text = {
    .name = "gemma3_text",
    .prefix = "model.",
    .defaults = { .pad_id = 0,
                  .eos_id = 1,
                  .norm.eps = 1e-6,
                  .norm.kind = SES_NORM_RMS_PLUS_ONE,
                  .norm.placement = SES_PRE_NORM,
                  .norm.sandwich = true,
                  .norm.after_last_layer = true,
                  .position.kind = SES_POS_ROTARY,
                  .position.rope.theta = 1000000,
                  .position.local_rope.theta = 10000,
                  .attention.head_size = 256,
                  .attention.no_bias = true,
                  .attention.qk_norm = SES_QK_NORM_HEAD,
                  .ffn.act = SES_ACT_GELU_TANH,
                  .ffn.gated = true,
                  .ffn.no_bias = true,
                  .summary.kind = SES_SUMMARY_LAST_NON_PAD,
                  .head.no_classifier_bias = true,
                  .init.range = 0.02,
                  .embed.scale_by_sqrt_hidden = true,
                  .embed.tied = true,
                  .lm.no_transform = true },
    .keys = { SES_TABLE(ses_rotary_keys) },
    .post_read = post_read,
    .reads = reads,
    .tensors = { SES_TABLE(tensors), SES_TABLE(ses_rotary_tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
