/* GTE (Zhang et al. 2024) and arctic-embed-m-v2: post-norm encoders with rotary positions, whose
 * frequencies are scaled for every text, and gated feed-forward blocks without a bias of the gate. "new" is
 * the name of the publisher, "gte" that of transformers. */
#include "model/encoder/rotary_tables.h"

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    static const char *const positions[] = { "rope" };
    size_t kind;
    if (!ses_config_name(config, "position_embedding_type", positions, 1, &kind, e)) return false;
    c->lm.act = c->ffn.act;
    return ses_rotary_post_read(c, config, e);
}

static const ses_tensor_name heads[] = {
    { "lm.dense.*", "/lm_head.dense.*" },
    { "lm.norm.*", "/lm_head.layer_norm.*" },
    { "lm.out.weight", "/lm_head.decoder.weight" },
    { "lm.out.bias", "/lm_head.decoder.bias" },
    { "classify.out.*", "/classifier.*" },
    { "choice.out.*", "/classifier.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

#define LAYER "layers.#."
#define OLD "encoder.layer.#."
static const ses_tensor_rename renames[] = {
    { OLD "attention.qkv_proj.*",
      { LAYER "self_attn.q_proj.*", LAYER "self_attn.k_proj.*", LAYER "self_attn.v_proj.*" } },
    { OLD "attention.q_proj.*", { LAYER "self_attn.q_proj.*" } },
    { OLD "attention.k_proj.*", { LAYER "self_attn.k_proj.*" } },
    { OLD "attention.v_proj.*", { LAYER "self_attn.v_proj.*" } },
    { OLD "attention.o_proj.*", { LAYER "self_attn.o_proj.*" } },
    { OLD "attn_ln.*", { LAYER "post_attention_layernorm.*" } },
    { OLD "mlp_ln.*", { LAYER "post_mlp_layernorm.*" } },
    { OLD "mlp.up_gate_proj.*", { LAYER "mlp.up_proj.*", LAYER "mlp.gate_proj.*" } }, /* up rows first */
    { OLD "mlp.down_proj.*", { LAYER "mlp.down_proj.*" } },
    { "lm_head.norm.*", { "lm_head.layer_norm.*" } },
    { "embeddings.word_embeddings.*", { "embeddings.word_embeddings.*" } },
    { "embeddings.token_type_embeddings.*", { "embeddings.token_type_embeddings.*" } },
    { "embeddings.LayerNorm.*", { "embeddings.LayerNorm.*" } },
    { "pooler.dense.*", { "pooler.dense.*" } },
};

#define CLASSES(stem)                                                                                        \
    { .name = stem "Model" }, SES_CLASS(stem "ForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),              \
        SES_POOLED_CLASS(stem "ForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")), \
        SES_POOLED_CLASS(stem "ForMultipleChoice", SES_USE_HEAD(multiple_choice, "logits")),                 \
        SES_CLASS(stem "ForTokenClassification", SES_USE_HEAD(token_classification, "logits")),              \
        SES_CLASS(stem "ForQuestionAnswering", SES_USE_HEAD(question_answering, ""))
static const ses_class gte_new_classes[] = { CLASSES("New"), CLASSES("Gte") };
static const ses_class gte_classes[] = { CLASSES("Gte"), CLASSES("New") };

static const char *const reads[] = { "rope_parameters", "rope_scaling", "rope_theta",
                                     "position_embedding_type", NULL };

#define GTE(id, type, base, sign)                                            \
    const ses_model_desc ses_model_##id = {                                  \
        .name = type,                                                        \
        .prefix = base,                                                      \
        .tokenizer_sets_segments = true,                                     \
        .defaults = { .embed.segments = 1,                                   \
                      .embed.norm = true,                                    \
                      .embed.tied = true,                                    \
                      .pad_id = 0,                                           \
                      .norm.eps = 1e-12,                                     \
                      .position.kind = SES_POS_ROTARY,                       \
                      .position.rope.theta = 10000,                          \
                      .dropout.hidden = 0.1,                                 \
                      .dropout.embed = -1,                                   \
                      .dropout.head = -1,                                    \
                      .init.range = 0.02,                                    \
                      .ffn.act = SES_ACT_GELU,                               \
                      .ffn.gated = true,                                     \
                      .ffn.no_up_bias = true,                                \
                      .pooler.act = SES_ACT_TANH,                            \
                      .lm.bias = true },                                     \
        .keys = { SES_TABLE(ses_bert_keys) },                                \
        .post_read = post_read,                                              \
        .reads = reads,                                                      \
        .tensors = { SES_TABLE(ses_rotary_post_tensors), SES_TABLE(heads) }, \
        .renames = renames,                                                  \
        .n_renames = SES_LEN(renames),                                       \
        .signature = sign,                                                   \
        .class = id##_classes,                                               \
        .n_classes = SES_LEN(id##_classes),                                  \
    };

GTE(gte_new, "new", "new.", "mlp.up_gate_proj.weight")
GTE(gte, "gte", "gte.", NULL)
