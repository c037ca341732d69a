/* Qwen3 (Qwen team 2025), the body of Qwen3-Embedding and Qwen3-Reranker: pre-norm decoder with RMS norms,
 * also of queries and keys, rotary positions, grouped heads and gated feed-forward blocks. With
 * "use_bidirectional_attention" an encoder. */
#include "model/encoder/rotary_tables.h"

static bool from_layer(int64_t layer, int64_t from) { return layer >= from; }

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    bool both = false, sliding = false;
    int64_t window = 4096, full = 28;
    if (!ses_config_bool(config, "use_bidirectional_attention", &both, e) ||
        !ses_config_bool(config, "use_sliding_window", &sliding, e) ||
        !ses_config_int(config, "sliding_window", &window, e) ||
        !ses_config_int(config, "max_window_layers", &full, e))
        return false;
    c->attention.causal = !both;
    if (sliding && (window < 1 || window > SES_MAX_POSITIONS))
        return ses_fail(e, SES_EARG, "\"sliding_window\" is %lld, expected 1 to %d", (long long)window,
                        SES_MAX_POSITIONS);
    if (sliding) c->attention.window = window;
    if (!ses_rotary_layer_types(c, config, sliding ? from_layer : NULL, full, e)) return false;
    return ses_rotary_post_read(c, config, e);
}

static const ses_tensor_name heads[] = {
    { "layer.#.ffn.norm.*", "layers.#.post_attention_layernorm.*" },
    { "lm.out.weight", "/lm_head.weight" },
    { "classify.out.*", "/score.*" },
    { "tag.*", "/score.*" },
    { "span.*", "/qa_outputs.*" },
};

static const ses_class classes[] = {
    { .name = "Qwen3Model" },
    SES_CLASS("Qwen3ForCausalLM", SES_USE_HEAD(causal_lm, "logits")),
    SES_CLASS("Qwen3ForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("Qwen3ForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
};

static const char *const reads[] = { SES_ROTARY_READS,     "use_bidirectional_attention",
                                     "use_sliding_window", "sliding_window",
                                     "layer_types",        NULL };

const ses_model_desc ses_model_qwen3 = {
    .name = "qwen3",
    .prefix = "model.",
    .defaults = { .pad_id = -1,
                  .norm.eps = 1e-6,
                  .norm.kind = SES_NORM_RMS,
                  .norm.placement = SES_PRE_NORM,
                  .norm.after_last_layer = true,
                  .position.kind = SES_POS_ROTARY,
                  .position.rope.theta = 10000,
                  .attention.head_size = 128,
                  .attention.causal = true,
                  .attention.no_bias = true,
                  .attention.qk_norm = SES_QK_NORM_HEAD,
                  .ffn.act = SES_ACT_SILU,
                  .ffn.gated = true,
                  .ffn.no_bias = true,
                  .summary.kind = SES_SUMMARY_LAST_NON_PAD,
                  .head.no_classifier_bias = true,
                  .init.range = 0.02,
                  .lm.no_transform = true },
    .keys = { SES_TABLE(ses_rotary_keys) },
    .post_read = post_read,
    .reads = reads,
    .tensors = { SES_TABLE(ses_rotary_tensors), SES_TABLE(heads) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
