/* Parts that the descriptions of rotary encoders share. */
#include "rotary_tables.h"

#include "base/json/json_helpers.h"

#include <string.h>

const ses_config_key ses_rotary_keys[SES_ROTARY_KEYS] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("hidden_size", hidden, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("num_hidden_layers", layers, SES_MAX_LAYERS),
    SES_KEY_REQUIRED("num_attention_heads", attention.heads, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("intermediate_size", ffn.width, SES_MAX_FFN),
    SES_KEY_REQUIRED("max_position_embeddings", position.max, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("num_key_value_heads", attention.kv_heads, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("head_dim", attention.head_size, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("eos_token_id", eos_id, -1, SES_MAX_VOCAB),
    SES_KEY_NUMBER("rms_norm_eps", norm.eps, 0, 1),
    SES_KEY_RATE("attention_dropout", dropout.attention),
    SES_KEY_RATE("hidden_dropout", dropout.hidden),
    SES_KEY_RATE("classifier_dropout", dropout.head),
    SES_KEY_NUMBER("initializer_range", init.range, 0, 100),
    SES_KEY_ACTIVATION("hidden_act", ffn.act),
    SES_KEY_ACTIVATION("hidden_activation", ffn.act),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
    SES_KEY_NUMBER("rope_local_base_freq", position.local_rope.theta, 1, 1e12),
};

const ses_tensor_name ses_rotary_tensors[SES_ROTARY_TENSORS] = {
    { "embed.token", "embed_tokens.weight" },
    { "layer.#.attn.norm.*", "layers.#.input_layernorm.*" },
    { "layer.#.attn.query.*", "layers.#.self_attn.q_proj.*" },
    { "layer.#.attn.key.*", "layers.#.self_attn.k_proj.*" },
    { "layer.#.attn.value.*", "layers.#.self_attn.v_proj.*" },
    { "layer.#.attn.query_norm.*", "layers.#.self_attn.q_norm.*" },
    { "layer.#.attn.key_norm.*", "layers.#.self_attn.k_norm.*" },
    { "layer.#.attn.out.*", "layers.#.self_attn.o_proj.*" },
    { "layer.#.ffn.gate.*", "layers.#.mlp.gate_proj.*" },
    { "layer.#.ffn.linear.*", "layers.#.mlp.up_proj.*" },
    { "layer.#.ffn.down.*", "layers.#.mlp.down_proj.*" },
    { "final_norm.*", "norm.*" },
};

const ses_tensor_name ses_rotary_post_tensors[SES_ROTARY_POST_TENSORS] = {
    { "embed.token", "embeddings.word_embeddings.weight" },
    { "embed.segment", "embeddings.token_type_embeddings.weight" },
    { "embed.norm.*", "embeddings.LayerNorm.*" },
    { "layer.#.attn.query.*", "layers.#.self_attn.q_proj.*" },
    { "layer.#.attn.key.*", "layers.#.self_attn.k_proj.*" },
    { "layer.#.attn.value.*", "layers.#.self_attn.v_proj.*" },
    { "layer.#.attn.out.*", "layers.#.self_attn.o_proj.*" },
    { "layer.#.attn.norm.*", "layers.#.post_attention_layernorm.*" },
    { "layer.#.ffn.gate.*", "layers.#.mlp.gate_proj.*" },
    { "layer.#.ffn.linear.*", "layers.#.mlp.up_proj.*" },
    { "layer.#.ffn.down.*", "layers.#.mlp.down_proj.*" },
    { "layer.#.ffn.norm.*", "layers.#.post_mlp_layernorm.*" },
    { "pooler.*", "pooler.dense.*" },
};

bool ses_rotary_layer_types(ses_config *c, const ses_json *config,
                            bool (*local)(int64_t layer, int64_t every), int64_t every, ses_err *e)
{
    const ses_json *types = ses_json_get(config, "layer_types");
    bool listed = ses_json_type_of(types) == SES_JSON_ARRAY;
    if (!listed && ses_json_type_of(types) != SES_JSON_NULL)
        return ses_json_wrong_type("layer_types", types, "an array", e);
    if (listed && (int64_t)ses_json_len(types) != c->layers)
        return ses_fail(e, SES_EFORMAT, "\"layer_types\" has %lld entries for %lld layers",
                        (long long)ses_json_len(types), (long long)c->layers);
    for (int64_t i = 0; i < c->layers; i++) {
        const char *type = ses_json_string(ses_json_at(types, (size_t)i), NULL);
        bool sliding = listed ? type && !strcmp(type, "sliding_attention") : local && local(i, every);
        if (listed && !sliding && (!type || strcmp(type, "full_attention")))
            return ses_fail(e, SES_EFORMAT,
                            "\"layer_types\" entry %lld is not full_attention or sliding_attention",
                            (long long)i);
        if (sliding) c->attention.local_layers[i / 64] |= (uint64_t)1 << i % 64;
    }
    return true;
}

bool ses_rotary_post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    bool bias = !c->attention.no_bias;
    if (!ses_config_bool(config, "attention_bias", &bias, e) ||
        !ses_rope_read_fraction(c, config, "partial_rotary_factor", e))
        return false;
    c->attention.no_bias = !bias;
    if (!c->attention.kv_heads) c->attention.kv_heads = c->attention.heads;
    if (c->attention.heads % c->attention.kv_heads)
        return ses_fail(e, SES_EARG, "%lld heads are not a multiple of %lld heads of keys and values",
                        (long long)c->attention.heads, (long long)c->attention.kv_heads);
    if (!c->attention.head_size && c->hidden % c->attention.heads)
        return ses_fail(e, SES_EARG, "a width of %lld is not a multiple of %lld heads", (long long)c->hidden,
                        (long long)c->attention.heads);
    return ses_rope_config(c, config, e);
}
