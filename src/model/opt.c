/* OPT (Zhang et al. 2022): decoder with learned positions from row 2. The 350M model is post-norm and has a
 * narrower token table with projections in and out. */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("hidden_size", hidden, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("num_hidden_layers", layers, SES_MAX_LAYERS),
    SES_KEY_REQUIRED("num_attention_heads", attention.heads, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("ffn_dim", ffn.width, SES_MAX_FFN),
    SES_KEY_REQUIRED("max_position_embeddings", position.max, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("word_embed_proj_dim", embed.width, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_RATE("dropout", dropout.hidden),
    SES_KEY_RATE("attention_dropout", dropout.attention),
    SES_KEY_NUMBER("init_std", init.range, 0, 100),
    SES_KEY_ACTIVATION("activation_function", ffn.act),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
};

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    bool before = true, removed = false, bias = true, affine = true;
    if (!ses_config_bool(config, "do_layer_norm_before", &before, e) ||
        !ses_config_bool(config, "_remove_final_layer_norm", &removed, e) ||
        !ses_config_bool(config, "enable_bias", &bias, e) ||
        !ses_config_bool(config, "layer_norm_elementwise_affine", &affine, e))
        return false;
    if (!affine) c->norm.kind = SES_NORM_LAYER_NO_AFFINE;
    c->norm.placement = before ? SES_PRE_NORM : SES_POST_NORM;
    c->norm.after_last_layer = before && !removed;
    c->attention.no_bias = c->ffn.no_bias = !bias;
    return true;
}

#define LAYER "decoder.layers.#."
static const ses_tensor_name tensors[] = {
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
    SES_CLASS("OPTForCausalLM", SES_USE_HEAD(causal_lm, "logits")),
    SES_CLASS("OPTForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("OPTForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
};

const ses_model_desc ses_model_opt = {
    .name = "opt",
    .prefix = "model.",
    .defaults = { .pad_id = 1,
                  .norm.eps = 1e-5,
                  .dropout.hidden = 0.1,
                  .dropout.head = -1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_RELU,
                  .summary.kind = SES_SUMMARY_LAST_NON_PAD,
                  .position.offset = 2,
                  .position.extra_rows = 2,
                  .position.from_mask = true,
                  .head.no_classifier_bias = true,
                  .attention.causal = true,
                  .lm.no_transform = true,
                  .embed.tied = true,
                  .embed.project_before_positions = true },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
