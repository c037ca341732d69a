/* XGLM (Lin et al. 2021): multilingual pre-norm decoder with fairseq's sinusoidal positions and scaled
 * embeddings. */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("d_model", hidden, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("num_layers", layers, SES_MAX_LAYERS),
    SES_KEY_REQUIRED("attention_heads", attention.heads, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("ffn_dim", ffn.width, SES_MAX_FFN),
    SES_KEY_REQUIRED("max_position_embeddings", position.max, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_RATE("dropout", dropout.hidden),
    SES_KEY_RATE("attention_dropout", dropout.attention),
    SES_KEY_RATE("activation_dropout", dropout.act),
    SES_KEY_NUMBER("init_std", init.range, 0, 100),
    SES_KEY_ACTIVATION("activation_function", ffn.act),
    SES_KEY_FLAG("scale_embedding", embed.scale_by_sqrt_hidden),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
};

static const ses_tensor_name tensors[] = {
    { "embed.token", "embed_tokens.weight" },
    { "layer.#.attn.norm.*", "layers.#.self_attn_layer_norm.*" },
    { "layer.#.attn.query.*", "layers.#.self_attn.q_proj.*" },
    { "layer.#.attn.key.*", "layers.#.self_attn.k_proj.*" },
    { "layer.#.attn.value.*", "layers.#.self_attn.v_proj.*" },
    { "layer.#.attn.out.*", "layers.#.self_attn.out_proj.*" },
    { "layer.#.ffn.norm.*", "layers.#.final_layer_norm.*" },
    { "layer.#.ffn.up.*", "layers.#.fc1.*" },
    { "layer.#.ffn.down.*", "layers.#.fc2.*" },
    { "final_norm.*", "layer_norm.*" },
    { "lm.out.weight", "/lm_head.weight" },
};

static const ses_class classes[] = {
    { .name = "XGLMModel" },
    SES_CLASS("XGLMForCausalLM", SES_USE_HEAD(causal_lm, "logits")),
};

const ses_model_desc ses_model_xglm = {
    .name = "xglm",
    .prefix = "model.",
    .defaults = { .pad_id = 1,
                  .norm.eps = 1e-5,
                  .dropout.hidden = 0.1,
                  .dropout.attention = 0.1,
                  .dropout.embed = -1,
                  .dropout.head = -1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_GELU,
                  .norm.placement = SES_PRE_NORM,
                  .position.kind = SES_POS_FAIRSEQ,
                  .position.offset = 2,
                  .position.extra_rows = 2,
                  .norm.after_last_layer = true,
                  .embed.scale_by_sqrt_hidden = true,
                  .attention.causal = true,
                  .lm.no_transform = true,
                  .embed.tied = true },
    .keys = { SES_TABLE(keys) },
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
