/* BLOOM (2022): pre-norm decoder, positions by ALiBi, query, key and value of each head side by side. */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_NEED("vocab_size", vocab, SES_MOST_TOKENS),
    SES_INT("hidden_size", hidden, 1, SES_MOST_WIDTH),
    SES_INT("n_embed", hidden, 1, SES_MOST_WIDTH),
    SES_INT("n_layer", layers, 1, SES_MAX_LAYERS),
    SES_INT("num_hidden_layers", layers, 1, SES_MAX_LAYERS),
    SES_INT("n_head", heads, 1, SES_MOST_WIDTH),
    SES_INT("num_attention_heads", heads, 1, SES_MOST_WIDTH),
    SES_INT("pad_token_id", pad, -1, SES_MOST_TOKENS),
    SES_NUMBER("layer_norm_epsilon", norm_eps, 0, 1),
    SES_RATE("hidden_dropout", drop),
    SES_RATE("attention_dropout", drop_attention),
    SES_NUMBER("initializer_range", init_range, 0, 100),
    SES_SWITCH("apply_residual_connection_post_layernorm", normed_residual),
    SES_SWITCH("tie_word_embeddings", tied),
};

static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    (void)config;
    if (!c->hidden || !c->layers || !c->heads)
        return ses_fail(e, SES_EFORMAT, "\"hidden_size\", \"n_layer\" or \"n_head\" is missing");
    c->ffn = 4 * c->hidden;
    c->positions = SES_MOST_POSITIONS; /* no table: any length */
    return true;
}

static const ses_name tensors[] = {
    { "embed.token", "word_embeddings.weight" },
    { "embed.norm.*", "word_embeddings_layernorm.*" },
    { "layer.#.attn.norm.*", "h.#.input_layernorm.*" },
    { "layer.#.attn.qkv.*", "h.#.self_attention.query_key_value.*" },
    { "layer.#.attn.out.*", "h.#.self_attention.dense.*" },
    { "layer.#.ffn.norm.*", "h.#.post_attention_layernorm.*" },
    { "layer.#.ffn.up.*", "h.#.mlp.dense_h_to_4h.*" },
    { "layer.#.ffn.down.*", "h.#.mlp.dense_4h_to_h.*" },
    { "final_norm.*", "ln_f.*" },
    { "lm.out.weight", "/lm_head.weight" },
    { "classify.out.*", "/score.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

static const ses_class classes[] = {
    { .name = "BloomModel" },
    SES_CLASS("BloomForCausalLM", SES_ON(causal_lm, "logits")),
    SES_CLASS("BloomForSequenceClassification", SES_ON(classify, "logits")),
    SES_CLASS("BloomForTokenClassification", SES_ON(tag, "logits")),
    SES_CLASS("BloomForQuestionAnswering", SES_ON(span, "")),
};

const ses_model_desc ses_model_bloom = {
    .name = "bloom",
    .prefix = "transformer.",
    .arch = { .pad = -1,
              .norm_eps = 1e-5,
              .drop_head = 0.1,
              .init_range = 0.02,
              .act = SES_ACT_GELU_TANH,
              .place = SES_PRE_NORM,
              .pos = SES_POS_ALIBI,
              .qkv = SES_QKV_HEADS,
              .summary = SES_SUMMARY_LAST,
              .embed_norm = true,
              .final_norm = true,
              .no_summary_bias = true,
              .causal = true,
              .lm_plain = true,
              .tied = true,
              .pad_learns = true },
    .keys = { SES_TABLE(keys) },
    .finish = finish,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
