/* T5 (Raffel et al. 2019): text-to-text encoder-decoder. Pre-norm RMS norms, no biases, unscaled scores,
 * learned position bias by bucketed distance. Version 1.1 and mT5 have gated feed-forward layers,
 * UMT5 (Chung et al. 2023) a bias in every layer. */
#include "model_desc.h"

#include <math.h>
#include <string.h>

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("d_model", hidden, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("d_kv", attention.head_size, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("d_ff", ffn.width, SES_MAX_FFN),
    SES_KEY_REQUIRED("num_layers", layers, SES_MAX_LAYERS),
    SES_KEY_REQUIRED("num_heads", attention.heads, SES_MAX_WIDTH),
    SES_KEY_INTEGER("num_decoder_layers", decoder.layers, 1, SES_MAX_LAYERS),
    SES_KEY_INTEGER("relative_attention_num_buckets", rel_bias.buckets, 4, SES_MAX_WIDTH),
    SES_KEY_INTEGER("relative_attention_max_distance", rel_bias.max_distance, 1, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("eos_token_id", eos_id, -1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("decoder_start_token_id", decoder.start_id, -1, SES_MAX_VOCAB),
    SES_KEY_NUMBER("layer_norm_epsilon", norm.eps, 0, 1),
    SES_KEY_NUMBER("initializer_factor", init.range, 0, 100),
    SES_KEY_RATE("dropout_rate", dropout.hidden),
    SES_KEY_RATE("classifier_dropout", dropout.head),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
};

/* "relu", "gated-gelu", ...; in the gated form "gelu" is the tanh approximation. */
static bool read_ffn(ses_config *c, const ses_json *config, ses_err *e)
{
    const char *kind = "relu";
    if (!ses_config_text(config, "feed_forward_proj", &kind, e)) return false;
    c->ffn.gated = !strncmp(kind, "gated-", 6);
    if (!ses_act_from_name(kind + (c->ffn.gated ? 6 : 0), &c->ffn.act))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "\"feed_forward_proj\" is \"%s\", expected an activation or gated-ACTIVATION", kind);
    if (c->ffn.gated && c->ffn.act == SES_ACT_GELU) c->ffn.act = SES_ACT_GELU_TANH;
    return true;
}

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    if (!c->decoder.layers) c->decoder.layers = c->layers;
    c->decoder.heads = c->attention.heads, c->decoder.ffn_width = c->ffn.width;
    c->dropout.attention = c->dropout.act = c->dropout.final = c->dropout.hidden;
    c->position.max = SES_MAX_POSITIONS; /* no position table: any length */
    if (c->rel_bias.max_distance <= c->rel_bias.buckets / 2)
        return ses_fail(e, SES_EARG,
                        "\"relative_attention_max_distance\" %lld leaves no room for %lld buckets",
                        (long long)c->rel_bias.max_distance, (long long)c->rel_bias.buckets);
    return read_ffn(c, config, e);
}

/* A tied model scales its logits, unless config.json has scale_decoder_outputs. */
static bool post_read_t5(ses_config *c, const ses_json *config, ses_err *e)
{
    bool scale = c->embed.tied;
    if (!ses_config_bool(config, "scale_decoder_outputs", &scale, e)) return false;
    c->lm.logit_scale = scale ? 1 / sqrt((double)c->hidden) : 0;
    return post_read(c, config, e);
}

#define STACK(name, hf_name, ffn)                                                               \
    { name "layer.#.attn.norm.*", hf_name "block.#.layer.0.layer_norm.*" },                     \
        { name "layer.#.attn.query.*", hf_name "block.#.layer.0.SelfAttention.q.*" },           \
        { name "layer.#.attn.key.*", hf_name "block.#.layer.0.SelfAttention.k.*" },             \
        { name "layer.#.attn.value.*", hf_name "block.#.layer.0.SelfAttention.v.*" },           \
        { name "layer.#.attn.out.*", hf_name "block.#.layer.0.SelfAttention.o.*" },             \
        { name "layer.#.ffn.norm.*", hf_name "block.#.layer." ffn ".layer_norm.*" },            \
        { name "layer.#.ffn.gate.*", hf_name "block.#.layer." ffn ".DenseReluDense.wi_0.*" },   \
        { name "layer.#.ffn.linear.*", hf_name "block.#.layer." ffn ".DenseReluDense.wi_1.*" }, \
        { name "layer.#.ffn.up.*", hf_name "block.#.layer." ffn ".DenseReluDense.wi.*" },       \
        { name "layer.#.ffn.down.*", hf_name "block.#.layer." ffn ".DenseReluDense.wo.*" },     \
    {                                                                                           \
        name "final_norm.*", hf_name "final_layer_norm.*"                                       \
    }

static const ses_tensor_name tensors[] = {
    { "embed.token", "shared.weight" },
    { "embed.token", "encoder.embed_tokens.weight" },
    { "embed.token", "decoder.embed_tokens.weight" },
    STACK("", "encoder.", "1"),
    STACK("decoder.", "decoder.", "2"),
    { "decoder.layer.#.cross.norm.*", "decoder.block.#.layer.1.layer_norm.*" },
    { "decoder.layer.#.cross.query.*", "decoder.block.#.layer.1.EncDecAttention.q.*" },
    { "decoder.layer.#.cross.key.*", "decoder.block.#.layer.1.EncDecAttention.k.*" },
    { "decoder.layer.#.cross.value.*", "decoder.block.#.layer.1.EncDecAttention.v.*" },
    { "decoder.layer.#.cross.out.*", "decoder.block.#.layer.1.EncDecAttention.o.*" },
    /* in the first published files: never used */
    { "", "decoder.block.#.layer.1.EncDecAttention.relative_attention_bias.weight" },
    { "lm.out.weight", "/lm_head.weight" },
    { "classify.dense.*", "/classification_head.dense.*" },
    { "classify.out.*", "/classification_head.out_proj.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

#define BIAS "layer.0.SelfAttention.relative_attention_bias.weight"
static const ses_tensor_name one_bias[] = {
    { "buckets", "encoder.block.0." BIAS },
    { "decoder.buckets", "decoder.block.0." BIAS },
};
static const ses_tensor_name biases[] = {
    { "layer.#.attn.buckets", "encoder.block.#." BIAS },
    { "decoder.layer.#.attn.buckets", "decoder.block.#." BIAS },
};

static const char *const reads[] = { "feed_forward_proj", NULL };

/* bias: names of the bias by distance; `more` adds settings */
#define T5(id, stem, post_read_, bias, more)                                 \
    static const ses_class classes_##id[] = {                                \
        { .name = stem "Model" },                                            \
        { .name = stem "ForConditionalGeneration",                           \
          .prefix = "",                                                      \
          .head = { SES_USE_HEAD(seq2seq_lm, "logits") } },                  \
        { .name = stem "EncoderModel", .prefix = "", .encoder_only = true }, \
        { .name = stem "ForSequenceClassification",                          \
          .decoder_input_from_source = true,                                 \
          .head = { SES_USE_HEAD(sequence_classification, "logits") } },     \
        { .name = stem "ForTokenClassification",                             \
          .encoder_only = true,                                              \
          .head = { SES_USE_HEAD(token_classification, "logits") } },        \
        { .name = stem "ForQuestionAnswering",                               \
          .prefix = "",                                                      \
          .decoder_input_from_source = true,                                 \
          .head = { SES_USE_HEAD(question_answering, "") } },                \
    };                                                                       \
    const ses_model_desc ses_model_##id = {                                  \
        .name = #id,                                                         \
        .prefix = "transformer.",                                            \
        .encoder_decoder = true,                                             \
        .sentinels = 100,                                                    \
        .defaults = { .pad_id = 0,                                           \
                      .eos_id = 1,                                           \
                      .rel_bias.buckets = 32,                                \
                      .rel_bias.max_distance = 128,                          \
                      .norm.eps = 1e-6,                                      \
                      .dropout.hidden = 0.1,                                 \
                      .dropout.embed = -1,                                   \
                      .init.range = 1,                                       \
                      .init.by_fan_in = true,                                \
                      .attention.scale = 1,                                  \
                      .norm.kind = SES_NORM_RMS,                             \
                      .norm.placement = SES_PRE_NORM,                        \
                      .position.kind = SES_POS_NONE,                         \
                      .summary.kind = SES_SUMMARY_EOS,                       \
                      .summary.act = SES_ACT_TANH,                           \
                      .dropout.head_on_summary_input = true,                 \
                      .norm.after_last_layer = true,                         \
                      .attention.no_bias = true,                             \
                      .ffn.no_bias = true,                                   \
                      .embed.tied = true,                                    \
                      .lm.no_transform = true,                               \
                      .embed.train_pad = true,                               \
                      more },                                                \
        .keys = { SES_TABLE(keys) },                                         \
        .post_read = post_read_,                                             \
        .reads = reads,                                                      \
        .tensors = { SES_TABLE(tensors), SES_TABLE(bias) },                  \
        .class = classes_##id,                                               \
        .n_classes = SES_LEN(classes_##id),                                  \
    };

T5(t5, "T5", post_read_t5, one_bias, .rel_bias.per_layer = false)
T5(mt5, "MT5", post_read, one_bias, .rel_bias.per_layer = false)
T5(umt5, "UMT5", post_read_t5, biases, .rel_bias.per_layer = true)
