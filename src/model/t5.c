/* T5 (Raffel et al. 2019): everything is text to text. Pre-norm without means and biases, unscaled
 * scores, positions as a learned bias on the scores by bucketed distance. Version 1.1 and mT5 gate their
 * feed-forward. */
#include "model_desc.h"

#include <math.h>
#include <string.h>

static const ses_config_key keys[] = {
    SES_NEED("vocab_size", vocab, SES_MOST_TOKENS),
    SES_NEED("d_model", hidden, SES_MOST_WIDTH),
    SES_NEED("d_kv", head_size, SES_MOST_WIDTH),
    SES_NEED("d_ff", ffn, SES_MOST_FFN),
    SES_NEED("num_layers", layers, SES_MAX_LAYERS),
    SES_NEED("num_heads", heads, SES_MOST_WIDTH),
    SES_INT("num_decoder_layers", decoder_layers, 1, SES_MAX_LAYERS),
    SES_INT("relative_attention_num_buckets", buckets, 4, SES_MOST_WIDTH),
    SES_INT("relative_attention_max_distance", max_distance, 1, SES_MOST_POSITIONS),
    SES_INT("pad_token_id", pad, -1, SES_MOST_TOKENS),
    SES_INT("eos_token_id", eos, -1, SES_MOST_TOKENS),
    SES_INT("decoder_start_token_id", start, -1, SES_MOST_TOKENS),
    SES_NUMBER("layer_norm_epsilon", norm_eps, 0, 1),
    SES_NUMBER("initializer_factor", init_range, 0, 100),
    SES_RATE("dropout_rate", drop),
    SES_RATE("classifier_dropout", drop_head),
    SES_SWITCH("tie_word_embeddings", tied),
};

/* "relu", "gated-gelu", ...: in the gated form "gelu" means the tanh one. */
static bool read_ffn(ses_config *c, const ses_json *config, ses_err *e)
{
    const char *kind = "relu";
    if (!ses_config_text(config, "feed_forward_proj", &kind, e)) return false;
    c->gated = !strncmp(kind, "gated-", 6);
    if (!ses_act_from_name(kind + (c->gated ? 6 : 0), &c->act))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "\"feed_forward_proj\" is \"%s\", expected an activation or gated-ACTIVATION", kind);
    if (c->gated && c->act == SES_ACT_GELU) c->act = SES_ACT_GELU_TANH;
    return true;
}

static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    if (!c->decoder_layers) c->decoder_layers = c->layers;
    c->decoder_heads = c->heads, c->decoder_ffn = c->ffn;
    c->drop_attention = c->drop_act = c->drop_final = c->drop;
    c->positions = SES_MOST_POSITIONS; /* no table: any length */
    if (c->max_distance <= c->buckets / 2)
        return ses_fail(e, SES_EARG,
                        "\"relative_attention_max_distance\" %lld leaves no room for %lld buckets",
                        (long long)c->max_distance, (long long)c->buckets);
    return read_ffn(c, config, e);
}

/* A tied model scales its output, unless the config says otherwise. */
static bool finish_t5(ses_config *c, const ses_json *config, ses_err *e)
{
    bool scale = c->tied;
    if (!ses_config_bool(config, "scale_decoder_outputs", &scale, e)) return false;
    c->logit_scale = scale ? 1 / sqrt((double)c->hidden) : 0;
    return finish(c, config, e);
}

#define STACK(ours, theirs, ffn)                                                               \
    { ours "buckets", theirs "block.0.layer.0.SelfAttention.relative_attention_bias.weight" }, \
        { ours "layer.#.attn.norm.*", theirs "block.#.layer.0.layer_norm.*" },                 \
        { ours "layer.#.attn.query.*", theirs "block.#.layer.0.SelfAttention.q.*" },           \
        { ours "layer.#.attn.key.*", theirs "block.#.layer.0.SelfAttention.k.*" },             \
        { ours "layer.#.attn.value.*", theirs "block.#.layer.0.SelfAttention.v.*" },           \
        { ours "layer.#.attn.out.*", theirs "block.#.layer.0.SelfAttention.o.*" },             \
        { ours "layer.#.ffn.norm.*", theirs "block.#.layer." ffn ".layer_norm.*" },            \
        { ours "layer.#.ffn.gate.*", theirs "block.#.layer." ffn ".DenseReluDense.wi_0.*" },   \
        { ours "layer.#.ffn.linear.*", theirs "block.#.layer." ffn ".DenseReluDense.wi_1.*" }, \
        { ours "layer.#.ffn.up.*", theirs "block.#.layer." ffn ".DenseReluDense.wi.*" },       \
        { ours "layer.#.ffn.down.*", theirs "block.#.layer." ffn ".DenseReluDense.wo.*" },     \
    {                                                                                          \
        ours "final_norm.*", theirs "final_layer_norm.*"                                       \
    }

static const ses_name tensors[] = {
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
    { "lm.out.weight", "/lm_head.weight" },
    { "classify.dense.*", "/classification_head.dense.*" },
    { "classify.out.*", "/classification_head.out_proj.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

#define T5(id, stem, finish_)                                                                               \
    static const ses_class classes_##id[] = {                                                               \
        { .name = stem "Model" },                                                                           \
        { .name = stem "ForConditionalGeneration", .prefix = "", .head = { SES_ON(target_lm, "logits") } }, \
        { .name = stem "EncoderModel", .prefix = "", .encoder_only = true },                                \
        { .name = stem "ForSequenceClassification", .echo = true, .head = { SES_ON(classify, "logits") } }, \
        { .name = stem "ForTokenClassification", .encoder_only = true, .head = { SES_ON(tag, "logits") } }, \
        { .name = stem "ForQuestionAnswering", .prefix = "", .echo = true, .head = { SES_ON(span, "") } },  \
    };                                                                                                      \
    const ses_model_desc ses_model_##id = {                                                                 \
        .name = #id,                                                                                        \
        .prefix = "transformer.",                                                                           \
        .pair = true,                                                                                       \
        .sentinels = 100,                                                                                   \
        .arch = { .pad = 0,                                                                                 \
                  .eos = 1,                                                                                 \
                  .buckets = 32,                                                                            \
                  .max_distance = 128,                                                                      \
                  .norm_eps = 1e-6,                                                                         \
                  .drop = 0.1,                                                                              \
                  .drop_embed = -1,                                                                         \
                  .init_range = 1,                                                                          \
                  .init_fan = true,                                                                         \
                  .attention_scale = 1,                                                                     \
                  .norm = SES_NORM_RMS,                                                                     \
                  .place = SES_PRE_NORM,                                                                    \
                  .pos = SES_POS_NONE,                                                                      \
                  .summary = SES_SUMMARY_EOS,                                                               \
                  .summary_act = SES_ACT_TANH,                                                              \
                  .drop_summary_in = true,                                                                  \
                  .final_norm = true,                                                                       \
                  .no_attn_bias = true,                                                                     \
                  .no_ffn_bias = true,                                                                      \
                  .tied = true,                                                                             \
                  .lm_plain = true,                                                                         \
                  .pad_learns = true },                                                                     \
        .keys = { SES_TABLE(keys) },                                                                        \
        .finish = finish_,                                                                                  \
        .tensors = { SES_TABLE(tensors) },                                                                  \
        .class = classes_##id,                                                                              \
        .n_classes = SES_LEN(classes_##id),                                                                 \
    };

T5(t5, "T5", finish_t5)
T5(mt5, "MT5", finish)
