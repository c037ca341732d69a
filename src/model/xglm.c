/* XGLM (Lin et al. 2021): multilingual pre-norm decoder, fairseq's sinusoids, scaled tokens. */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_NEED("vocab_size", vocab, SES_MOST_TOKENS),
    SES_NEED("d_model", hidden, SES_MOST_WIDTH),
    SES_NEED("num_layers", layers, SES_MAX_LAYERS),
    SES_NEED("attention_heads", heads, SES_MOST_WIDTH),
    SES_NEED("ffn_dim", ffn, SES_MOST_FFN),
    SES_NEED("max_position_embeddings", positions, SES_MOST_POSITIONS),
    SES_INT("pad_token_id", pad, -1, SES_MOST_TOKENS),
    SES_RATE("dropout", drop),
    SES_RATE("attention_dropout", drop_attention),
    SES_RATE("activation_dropout", drop_act),
    SES_NUMBER("init_std", init_range, 0, 100),
    SES_ACTIVATION("activation_function", act),
    SES_SWITCH("scale_embedding", scale_embed),
    SES_SWITCH("tie_word_embeddings", tied),
};

static const ses_name tensors[] = {
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
    SES_CLASS("XGLMForCausalLM", SES_ON(causal_lm, "logits")),
};

const ses_model_desc ses_model_xglm = {
    .name = "xglm",
    .prefix = "model.",
    .arch = { .pad = 1,
              .norm_eps = 1e-5,
              .drop = 0.1,
              .drop_attention = 0.1,
              .drop_embed = -1,
              .drop_head = -1,
              .init_range = 0.02,
              .act = SES_ACT_GELU,
              .place = SES_PRE_NORM,
              .pos = SES_POS_FAIRSEQ,
              .pos_offset = 2,
              .pos_extra = 2,
              .final_norm = true,
              .scale_embed = true,
              .causal = true,
              .lm_plain = true,
              .tied = true },
    .keys = { SES_TABLE(keys) },
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
