/* ModernBERT (Warner et al. 2024): pre-norm encoder without biases, rotary positions, gated feed-forward,
 * local attention in most layers. */
#include "base/json/json_helpers.h"
#include "model_desc.h"

#include <string.h>

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("hidden_size", hidden, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("num_hidden_layers", layers, SES_MAX_LAYERS),
    SES_KEY_REQUIRED("num_attention_heads", attention.heads, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("intermediate_size", ffn.width, SES_MAX_FFN),
    SES_KEY_REQUIRED("max_position_embeddings", position.max, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("local_attention", attention.window, 1, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_NUMBER("norm_eps", norm.eps, 0, 1),
    SES_KEY_RATE("attention_dropout", dropout.attention),
    SES_KEY_RATE("mlp_dropout", dropout.act),
    SES_KEY_RATE("embedding_dropout", dropout.embed),
    SES_KEY_RATE("classifier_dropout", dropout.head),
    SES_KEY_NUMBER("global_rope_theta", position.rope.theta, 1, 1e12),
    SES_KEY_NUMBER("local_rope_theta", position.local_rope.theta, 1, 1e12),
    SES_KEY_NUMBER("initializer_range", init.range, 0, 100),
    SES_KEY_ACTIVATION("hidden_activation", ffn.act),
    SES_KEY_ACTIVATION("classifier_activation", summary.act),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
    SES_KEY_FLAG("decoder_bias", lm.bias),
};

/* Local layers: "layer_types", or all but every n-th. */
static bool read_layers(ses_config *c, const ses_json *config, ses_err *e)
{
    const ses_json *types = ses_json_get(config, "layer_types");
    int64_t every = 3;
    if (!ses_config_int(config, "global_attn_every_n_layers", &every, e)) return false;
    if (types && (int64_t)ses_json_len(types) != c->layers)
        return ses_fail(e, SES_EFORMAT, "\"layer_types\" has %lld entries for %lld layers",
                        (long long)ses_json_len(types), (long long)c->layers);
    if (every < 1) return ses_fail(e, SES_EARG, "\"global_attn_every_n_layers\" is %lld", (long long)every);
    for (int64_t i = 0; i < c->layers; i++) {
        const char *type = ses_json_string(ses_json_at(types, (size_t)i), NULL);
        bool local = types ? type && !strcmp(type, "sliding_attention") : i % every != 0;
        if (types && !local && (!type || strcmp(type, "full_attention")))
            return ses_fail(e, SES_EFORMAT,
                            "\"layer_types\" entry %lld is not full_attention or sliding_attention",
                            (long long)i);
        if (local) c->attention.local_layers[i / 64] |= (uint64_t)1 << i % 64;
    }
    return true;
}

/* The setting of transformers that also sets "local_attention", to twice its value. */
static bool check_window(const ses_config *c, const ses_json *config, ses_err *e)
{
    int64_t half = c->attention.window / 2;
    if (!ses_config_int(config, "sliding_window", &half, e)) return false;
    return half == c->attention.window / 2 ||
           ses_fail(e, SES_EARG,
                    "\"sliding_window\" is %lld, but \"local_attention\" is %lld: expected twice as much",
                    (long long)half, (long long)c->attention.window);
}

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    static const char *const biases[] = { "attention_bias", "mlp_bias", "norm_bias", "classifier_bias" };
    static const char *const poolings[] = { "cls", "mean" };
    bool has[SES_LEN(biases)] = { 0 };
    size_t pooling;
    for (size_t i = 0; i < SES_LEN(biases); i++)
        if (!ses_config_bool(config, biases[i], &has[i], e)) return false;
    c->attention.no_bias = !has[0], c->ffn.no_bias = !has[1], c->lm.no_transform_bias = !has[3];
    c->norm.kind = has[2] ? SES_NORM_LAYER : SES_NORM_LAYER_NO_BIAS;
    if (!ses_config_name(config, "classifier_pooling", poolings, SES_LEN(poolings), &pooling, e))
        return false;
    c->summary.kind = pooling ? SES_SUMMARY_MEAN : SES_SUMMARY_FIRST;
    c->dropout.span = c->dropout.head;
    if (!check_window(c, config, e)) return false;
    c->attention.window = c->attention.causal ? c->attention.window / 2 : c->attention.window / 2 + 1;
    c->dropout.hidden = c->dropout.attention;
    c->lm.act = c->summary.act;
    return ses_rope_config(c, config, e) && read_layers(c, config, e);
}

#define HEAD(name) \
    { name ".dense.*", "/head.dense.*" }, { name ".norm.*", "/head.norm.*" }
static const ses_tensor_name tensors[] = {
    { "embed.token", "embeddings.tok_embeddings.weight" },
    { "embed.norm.*", "embeddings.norm.*" },
    { "layer.#.attn.norm.*", "layers.#.attn_norm.*" },
    { "layer.#.attn.qkv.*", "layers.#.attn.Wqkv.*" },
    { "layer.#.attn.query.*", "layers.#.attn.q_proj.*" },
    { "layer.#.attn.key.*", "layers.#.attn.k_proj.*" },
    { "layer.#.attn.value.*", "layers.#.attn.v_proj.*" },
    { "layer.#.attn.out.*", "layers.#.attn.Wo.*" },
    { "layer.#.ffn.norm.*", "layers.#.mlp_norm.*" },
    { "layer.#.ffn.up.*", "layers.#.mlp.Wi.*" },
    { "layer.#.ffn.down.*", "layers.#.mlp.Wo.*" },
    { "final_norm.*", "final_norm.*" },
    HEAD("classify"),
    HEAD("choice"),
    HEAD("tag"),
    HEAD("span"),
    { "classify.out.*", "/classifier.*" },
    { "choice.out.*", "/classifier.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/classifier.*" },
    { "lm.out.weight", "/decoder.weight" },
    { "lm.out.bias", "/decoder.bias" },
};

static const ses_tensor_name modernbert_heads[] = { HEAD("lm") };
static const ses_tensor_name modernbert_decoder_heads[] = {
    { "lm.dense.*", "/lm_head.dense.*" },
    { "lm.norm.*", "/lm_head.norm.*" },
};

static const ses_class modernbert_classes[] = {
    { .name = "ModernBertModel" },
    SES_CLASS("ModernBertForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_CLASS("ModernBertForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("ModernBertForMultipleChoice", SES_USE_HEAD(multiple_choice, "logits")),
    SES_CLASS("ModernBertForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("ModernBertForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
};

static const ses_class modernbert_decoder_classes[] = {
    { .name = "ModernBertDecoderModel" },
    SES_CLASS("ModernBertDecoderForCausalLM", SES_USE_HEAD(causal_lm, "logits")),
};

static const char *const reads[] = { "layer_types",     "global_attn_every_n_layers",
                                     "rope_parameters", "rope_scaling",
                                     "sliding_window",  NULL };

/* id: "modernbert" or its decoder, whose tokens see earlier ones and whose projections are apart */
#define MODERNBERT(id, type, ...)                                                          \
    const ses_model_desc ses_model_##id = {                                                \
        .name = type,                                                                      \
        .prefix = "model.",                                                                \
        .defaults = { .pad_id = -1,                                                        \
                      .attention.window = 128,                                             \
                      .norm.eps = 1e-5,                                                    \
                      .dropout.ffn = 0,                                                    \
                      .init.range = 0.02,                                                  \
                      .position.rope.theta = 160000,                                       \
                      .position.local_rope.theta = 10000,                                  \
                      .ffn.act = SES_ACT_GELU,                                             \
                      .summary.act = SES_ACT_GELU,                                         \
                      .norm.placement = SES_PRE_NORM,                                      \
                      .position.kind = SES_POS_ROTARY,                                     \
                      .embed.norm = true,                                                  \
                      .norm.after_last_layer = true,                                       \
                      .norm.no_first_attn_norm = true,                                     \
                      .ffn.gated = true,                                                   \
                      .head.prediction_head = true,                                        \
                      .ffn.fused_gate = true,                                              \
                      .lm.bias = true,                                                     \
                      .embed.tied = true,                                                  \
                      __VA_ARGS__ },                                                       \
        .keys = { SES_TABLE(keys) },                                                       \
        .post_read = post_read,                                                            \
        .reads = reads,                                                                    \
        .layer_kinds = { "layer_types", "global_attn_every_n_layers", "sliding_attention", \
                         "full_attention" },                                               \
        .tensors = { SES_TABLE(tensors), SES_TABLE(id##_heads) },                          \
        .class = id##_classes,                                                             \
        .n_classes = SES_LEN(id##_classes),                                                \
    };

MODERNBERT(modernbert, "modernbert", .attention.qkv_layout = SES_QKV_FUSED)
MODERNBERT(modernbert_decoder, "modernbert-decoder", .attention.causal = true,
           .summary.kind = SES_SUMMARY_LAST_NON_PAD)
