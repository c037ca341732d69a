/* jina-embeddings-v2 (Günther et al. 2023) and the rerankers on its body: BERT with a bias on the scores that
 * falls with the distance to both sides (ALiBi) and gated feed-forward blocks. The models of code also
 * normalize queries and keys, and add the input of attention twice. Folders give the type "bert". */
#include "model/model_desc.h"

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    static const char *const positions[] = { "alibi" }, *const gates[] = { "geglu", "reglu" };
    size_t kind, gate;
    if (!ses_config_name(config, "position_embedding_type", positions, 1, &kind, e) ||
        !ses_config_name(config, "feed_forward_type", gates, SES_LEN(gates), &gate, e))
        return false;
    c->ffn.act = gate ? SES_ACT_RELU : SES_ACT_GELU;
    return ses_bert_post_read(c, config, e);
}

#define LAYER "encoder.layer.#."
static const ses_tensor_name jina_v2_tensors[] = {
    { "layer.#.attn.norm.*", LAYER "attention.output.LayerNorm.*" },
    { "layer.#.ffn.up.*", LAYER "mlp.gated_layers.*" },
    { "layer.#.ffn.down.*", LAYER "mlp.wo.*" },
    { "layer.#.ffn.norm.*", LAYER "mlp.layernorm.*" },
};

static const ses_tensor_name jina_v2_code_tensors[] = {
    { "layer.#.attn.query_norm.*", LAYER "attention.self.layer_norm_q.*" },
    { "layer.#.attn.key_norm.*", LAYER "attention.self.layer_norm_k.*" },
    { "layer.#.attn.norm.*", LAYER "attention.output.LayerNorm.*" },
    { "layer.#.attn.norm2.*", LAYER "layer_norm_1.*" },
    { "layer.#.ffn.linear.*", LAYER "mlp.up_layer.*" },
    { "layer.#.ffn.gate.*", LAYER "mlp.gate_layer.*" },
    { "layer.#.ffn.down.*", LAYER "mlp.down_layer.*" },
    { "layer.#.ffn.norm.*", LAYER "layer_norm_2.*" },
};

static const ses_tensor_rename jina_v2_code_renames[] = {
    { LAYER "mlp.up_gated_layer.*", { LAYER "mlp.up_layer.*", LAYER "mlp.gate_layer.*" } },
};

static const ses_class classes[] = {
    { .name = "JinaBertModel", .pooler = true },
    SES_CLASS("JinaBertForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_POOLED_CLASS("JinaBertForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("JinaBertForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("JinaBertForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
    { .name = "BertModel", .pooler = true },
    SES_CLASS("BertForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_POOLED_CLASS("BertForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
};

static const char *const reads[] = { "position_embedding_type", "feed_forward_type", NULL };

/* id: also of its tables; renames, n: other layouts; the rest: settings */
#define JINA(id, sign, renames_, n, ...)                                                                \
    const ses_model_desc ses_model_##id = {                                                             \
        .name = #id,                                                                                    \
        .prefix = "bert.",                                                                              \
        .tokenizer_sets_segments = true,                                                                \
        .defaults = { .embed.segments = 2,                                                              \
                      .embed.norm = true,                                                               \
                      .embed.tied = true,                                                               \
                      .pad_id = 0,                                                                      \
                      .norm.eps = 1e-12,                                                                \
                      .position.kind = SES_POS_ALIBI,                                                   \
                      .dropout.hidden = 0.1,                                                            \
                      .dropout.attention = 0.1,                                                         \
                      .dropout.embed = -1,                                                              \
                      .dropout.head = -1,                                                               \
                      .init.range = 0.02,                                                               \
                      .ffn.gated = true,                                                                \
                      .ffn.no_up_bias = true,                                                           \
                      .pooler.act = SES_ACT_TANH,                                                       \
                      .lm.act = SES_ACT_GELU,                                                           \
                      .lm.bias = true,                                                                  \
                      __VA_ARGS__ },                                                                    \
        .keys = { SES_TABLE(ses_bert_keys) },                                                           \
        .post_read = post_read,                                                                         \
        .reads = reads,                                                                                 \
        .tensors = { SES_TABLE(id##_tensors), SES_TABLE(ses_bert_tensors), SES_TABLE(ses_bert_heads) }, \
        .renames = renames_,                                                                            \
        .n_renames = n,                                                                                 \
        .signature = sign,                                                                              \
        .class = classes,                                                                               \
        .n_classes = SES_LEN(classes),                                                                  \
    };

JINA(jina_v2, "mlp.gated_layers.weight", NULL, 0, .ffn.fused_gate = true)
JINA(jina_v2_code, "mlp.up_gated_layer.weight", jina_v2_code_renames, SES_LEN(jina_v2_code_renames),
     .attention.qk_norm = SES_QK_NORM_ALL, .norm.second_attn_norm = true)
