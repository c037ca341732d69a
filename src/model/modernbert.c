/* ModernBERT (Warner et al. 2024): pre-norm encoder without biases, rotary positions, gated feed-forward,
 * most layers seeing only their neighborhood. */
#include "model_desc.h"

#include <string.h>

static const ses_config_key keys[] = {
    SES_NEED("vocab_size", vocab, SES_MOST_TOKENS),
    SES_NEED("hidden_size", hidden, SES_MOST_WIDTH),
    SES_NEED("num_hidden_layers", layers, SES_MAX_LAYERS),
    SES_NEED("num_attention_heads", heads, SES_MOST_WIDTH),
    SES_NEED("intermediate_size", ffn, SES_MOST_FFN),
    SES_NEED("max_position_embeddings", positions, SES_MOST_POSITIONS),
    SES_INT("local_attention", window, 1, SES_MOST_POSITIONS),
    SES_INT("pad_token_id", pad, -1, SES_MOST_TOKENS),
    SES_NUMBER("norm_eps", norm_eps, 0, 1),
    SES_RATE("attention_dropout", drop_attention),
    SES_RATE("mlp_dropout", drop_act),
    SES_RATE("embedding_dropout", drop_embed),
    SES_RATE("classifier_dropout", drop_head),
    SES_NUMBER("global_rope_theta", theta, 1, 1e12),
    SES_NUMBER("local_rope_theta", local_theta, 1, 1e12),
    SES_NUMBER("initializer_range", init_range, 0, 100),
    SES_ACTIVATION("hidden_activation", act),
    SES_ACTIVATION("classifier_activation", summary_act),
    SES_SWITCH("tie_word_embeddings", tied),
    SES_SWITCH("decoder_bias", lm_bias),
};

/* Which layers are local: by "layer_types", or all but every n-th. */
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
        if (local) c->local[i / 64] |= (uint64_t)1 << i % 64;
    }
    return true;
}

/* rope_parameters (new) or the two thetas (old). */
static bool read_theta(double *theta, const ses_json *ropes, const char *kind, ses_err *e)
{
    const ses_json *rope = ses_json_get(ropes, kind);
    const char *type = ses_json_string(ses_json_get(rope, "rope_type"), NULL);
    ses_json_real(ses_json_get(rope, "rope_theta"), theta);
    if (type && strcmp(type, "default"))
        return ses_fail(e, SES_EUNSUPPORTED, "\"rope_type\" of %s is \"%s\": only \"default\" is supported",
                        kind, type);
    if (!(*theta >= 1 && *theta <= 1e12))
        return ses_fail(e, SES_EARG, "\"rope_theta\" of %s is %g", kind, *theta);
    return true;
}

static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    static const char *const biases[] = { "attention_bias", "mlp_bias", "norm_bias", "classifier_bias" };
    static const char *const poolings[] = { "cls", "mean" };
    const ses_json *ropes = ses_json_get(config, "rope_parameters");
    bool has[SES_LEN(biases)] = { 0 };
    size_t pooling;
    for (size_t i = 0; i < SES_LEN(biases); i++)
        if (!ses_config_bool(config, biases[i], &has[i], e)) return false;
    c->no_attn_bias = !has[0], c->no_ffn_bias = !has[1], c->no_lm_bias = !has[3];
    c->norm = has[2] ? SES_NORM_LAYER : SES_NORM_GAIN;
    if (!ses_config_name(config, "classifier_pooling", poolings, SES_LEN(poolings), &pooling, e))
        return false;
    c->summary = pooling ? SES_SUMMARY_MEAN : SES_SUMMARY_FIRST;
    c->drop_span = c->drop_head;
    if (c->hidden / c->heads % 2) return ses_fail(e, SES_EARG, "rotary positions need heads of an even size");
    c->window = c->window / 2 + 1;
    c->drop = c->drop_attention;
    c->lm_act = c->summary_act;
    return read_theta(&c->theta, ropes, "full_attention", e) &&
           read_theta(&c->local_theta, ropes, "sliding_attention", e) && read_layers(c, config, e);
}

#define HEAD(ours) \
    { ours ".dense.*", "/head.dense.*" }, { ours ".norm.*", "/head.norm.*" }
static const ses_name tensors[] = {
    { "embed.token", "embeddings.tok_embeddings.weight" },
    { "embed.norm.*", "embeddings.norm.*" },
    { "layer.#.attn.norm.*", "layers.#.attn_norm.*" },
    { "layer.#.attn.qkv.*", "layers.#.attn.Wqkv.*" },
    { "layer.#.attn.out.*", "layers.#.attn.Wo.*" },
    { "layer.#.ffn.norm.*", "layers.#.mlp_norm.*" },
    { "layer.#.ffn.up.*", "layers.#.mlp.Wi.*" },
    { "layer.#.ffn.down.*", "layers.#.mlp.Wo.*" },
    { "final_norm.*", "final_norm.*" },
    HEAD("lm"),
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

static const ses_class classes[] = {
    { .name = "ModernBertModel" },
    SES_CLASS("ModernBertForMaskedLM", SES_ON(masked_lm, "logits")),
    SES_CLASS("ModernBertForSequenceClassification", SES_ON(classify, "logits")),
    SES_CLASS("ModernBertForMultipleChoice", SES_ON(choice, "logits")),
    SES_CLASS("ModernBertForTokenClassification", SES_ON(tag, "logits")),
    SES_CLASS("ModernBertForQuestionAnswering", SES_ON(span, "")),
};

const ses_model_desc ses_model_modernbert = {
    .name = "modernbert",
    .prefix = "model.",
    .arch = { .pad = -1,
              .window = 128,
              .norm_eps = 1e-5,
              .drop_ffn = 0,
              .init_range = 0.02,
              .theta = 160000,
              .local_theta = 10000,
              .act = SES_ACT_GELU,
              .summary_act = SES_ACT_GELU,
              .place = SES_PRE_NORM,
              .pos = SES_POS_ROTARY,
              .qkv = SES_QKV_SIDE,
              .embed_norm = true,
              .final_norm = true,
              .no_first_norm = true,
              .gated = true,
              .head_norm = true,
              .fused_gate = true,
              .lm_bias = true,
              .tied = true },
    .keys = { SES_TABLE(keys) },
    .finish = finish,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
