/* OPT (Zhang et al. 2022): decoder with learned positions from row 2; the smallest and the 350M one have
 * a narrower token table, projected in and out, and the latter puts its norms after the sublayers. */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_NEED("vocab_size", vocab, SES_MOST_TOKENS),
    SES_NEED("hidden_size", hidden, SES_MOST_WIDTH),
    SES_NEED("num_hidden_layers", layers, SES_MAX_LAYERS),
    SES_NEED("num_attention_heads", heads, SES_MOST_WIDTH),
    SES_NEED("ffn_dim", ffn, SES_MOST_FFN),
    SES_NEED("max_position_embeddings", positions, SES_MOST_POSITIONS),
    SES_INT("word_embed_proj_dim", embed, 1, SES_MOST_WIDTH),
    SES_INT("pad_token_id", pad, -1, SES_MOST_TOKENS),
    SES_RATE("dropout", drop),
    SES_RATE("attention_dropout", drop_attention),
    SES_NUMBER("init_std", init_range, 0, 100),
    SES_ACTIVATION("activation_function", act),
    SES_SWITCH("tie_word_embeddings", tied),
};

static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    bool before = true, removed = false, bias = true, affine = true;
    if (!ses_config_bool(config, "do_layer_norm_before", &before, e) ||
        !ses_config_bool(config, "_remove_final_layer_norm", &removed, e) ||
        !ses_config_bool(config, "enable_bias", &bias, e) ||
        !ses_config_bool(config, "layer_norm_elementwise_affine", &affine, e))
        return false;
    if (!affine) c->norm = SES_NORM_PLAIN;
    c->place = before ? SES_PRE_NORM : SES_POST_NORM;
    c->final_norm = before && !removed;
    c->no_attn_bias = c->no_ffn_bias = !bias;
    return true;
}

#define LAYER "decoder.layers.#."
static const ses_name tensors[] = {
    { "embed.token", "decoder.embed_tokens.weight" },
    { "embed.position", "decoder.embed_positions.weight" },
    { "embed.project.*", "decoder.project_in.*" },
    { "layer.#.attn.norm.*", LAYER "self_attn_layer_norm.*" },
    { "layer.#.attn.query.*", LAYER "self_attn.q_proj.*" },
    { "layer.#.attn.key.*", LAYER "self_attn.k_proj.*" },
    { "layer.#.attn.value.*", LAYER "self_attn.v_proj.*" },
    { "layer.#.attn.out.*", LAYER "self_attn.out_proj.*" },
    { "layer.#.ffn.norm.*", LAYER "final_layer_norm.*" },
    { "layer.#.ffn.up.*", LAYER "fc1.*" },
    { "layer.#.ffn.down.*", LAYER "fc2.*" },
    { "final_norm.*", "decoder.final_layer_norm.*" },
    { "project_out.*", "decoder.project_out.*" },
    { "lm.out.weight", "/lm_head.weight" },
    { "classify.out.*", "/score.*" },
    { "span.*", "/qa_outputs.*" },
};

static const ses_class classes[] = {
    { .name = "OPTModel" },
    SES_CLASS("OPTForCausalLM", SES_ON(causal_lm, "logits")),
    SES_CLASS("OPTForSequenceClassification", SES_ON(classify, "logits")),
    SES_CLASS("OPTForQuestionAnswering", SES_ON(span, "")),
};

const ses_model_desc ses_model_opt = {
    .name = "opt",
    .prefix = "model.",
    .arch = { .pad = 1,
              .norm_eps = 1e-5,
              .drop = 0.1,
              .drop_head = -1,
              .init_range = 0.02,
              .act = SES_ACT_RELU,
              .summary = SES_SUMMARY_LAST,
              .pos_offset = 2,
              .pos_extra = 2,
              .pos_by_mask = true,
              .no_summary_bias = true,
              .causal = true,
              .lm_plain = true,
              .tied = true,
              .project_early = true },
    .keys = { SES_TABLE(keys) },
    .finish = finish,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
