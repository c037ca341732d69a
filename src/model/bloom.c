/* BLOOM (2022): pre-norm decoder with ALiBi; query, key and value are interleaved by head in one matrix. */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_INTEGER("hidden_size", hidden, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("n_embed", hidden, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("n_layer", layers, 1, SES_MAX_LAYERS),
    SES_KEY_INTEGER("num_hidden_layers", layers, 1, SES_MAX_LAYERS),
    SES_KEY_INTEGER("n_head", attention.heads, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("num_attention_heads", attention.heads, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_NUMBER("layer_norm_epsilon", norm.eps, 0, 1),
    SES_KEY_RATE("hidden_dropout", dropout.hidden),
    SES_KEY_RATE("attention_dropout", dropout.attention),
    SES_KEY_NUMBER("initializer_range", init.range, 0, 100),
    SES_KEY_FLAG("apply_residual_connection_post_layernorm", norm.residual_post_norm),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
};

static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    (void)config;
    if (!c->hidden || !c->layers || !c->attention.heads)
        return ses_fail(e, SES_EFORMAT, "\"hidden_size\", \"n_layer\" or \"n_head\" is missing");
    c->ffn.width = 4 * c->hidden;
    c->position.max = SES_MAX_POSITIONS; /* no position table: any length */
    return true;
}

static const ses_tensor_name tensors[] = {
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
    SES_CLASS("BloomForCausalLM", SES_USE_HEAD(causal_lm, "logits")),
    SES_CLASS("BloomForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("BloomForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("BloomForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
};

const ses_model_desc ses_model_bloom = {
    .name = "bloom",
    .prefix = "transformer.",
    .defaults = { .pad_id = -1,
                  .norm.eps = 1e-5,
                  .dropout.head = 0.1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_GELU_TANH,
                  .norm.placement = SES_PRE_NORM,
                  .position.kind = SES_POS_ALIBI,
                  .attention.qkv_layout = SES_QKV_INTERLEAVED,
                  .summary.kind = SES_SUMMARY_LAST_NON_PAD,
                  .embed.norm = true,
                  .norm.after_last_layer = true,
                  .head.no_classifier_bias = true,
                  .attention.causal = true,
                  .lm.no_transform = true,
                  .embed.tied = true,
                  .embed.train_pad = true },
    .keys = { SES_TABLE(keys) },
    .post_read = finish,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
