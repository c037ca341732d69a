/* jina-embeddings-v3 (Sturua et al. 2024): XLM-R with rotary positions. Folders of the publisher give the
 * type "xlm-roberta", with fused projections and names of flash attention; transformers 5 has a type of its
 * own. */
#include "model/encoder/rotary_tables.h"

#include "base/json/json_helpers.h"

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    static const char *const positions[] = { "rotary" };
    const ses_json *base = ses_json_get(config, "rotary_emb_base");
    size_t kind;
    const ses_json *tasks = ses_json_get(config, "lora_adaptations");
    if (!ses_config_name(config, "position_embedding_type", positions, 1, &kind, e)) return false;
    if (ses_json_type_of(tasks) != SES_JSON_NULL && ses_json_type_of(tasks) != SES_JSON_ARRAY)
        return ses_json_wrong_type("lora_adaptations", tasks, "an array", e);
    if (base && !ses_json_real(base, &c->position.rope.theta))
        return ses_fail(e, SES_EFORMAT, "\"rotary_emb_base\" is not a number");
    return ses_rotary_post_read(c, config, e);
}

static const ses_tensor_name tensors[] = {
    { "layer.#.ffn.up.*", "layers.#.mlp.fc1.*" },
    { "layer.#.ffn.down.*", "layers.#.mlp.fc2.*" },
};

#define LAYER "layers.#."
#define OLD "encoder.layers.#."
/* in folders with adapters of tasks the weight without a task, and what a task adds to it */
#define LORA ".parametrizations.weight.original"
#define ADAPTER ".parametrizations.weight.0.*"
#define QKV(part)                                                                                      \
    {                                                                                                  \
        LAYER "self_attn.q_proj." part, LAYER "self_attn.k_proj." part, LAYER "self_attn.v_proj." part \
    }
static const ses_tensor_rename renames[] = {
    { "emb_ln.*", { "embeddings.LayerNorm.*" } },
    { OLD "mixer.Wqkv.*", QKV("*") },
    { OLD "mixer.Wqkv" LORA, QKV("weight") },
    { OLD "mixer.out_proj.*", { LAYER "self_attn.o_proj.*" } },
    { OLD "mixer.out_proj" LORA, { LAYER "self_attn.o_proj.weight" } },
    { OLD "mlp.fc1.*", { LAYER "mlp.fc1.*" } },
    { OLD "mlp.fc1" LORA, { LAYER "mlp.fc1.weight" } },
    { OLD "mlp.fc2.*", { LAYER "mlp.fc2.*" } },
    { OLD "mlp.fc2" LORA, { LAYER "mlp.fc2.weight" } },
    { OLD "norm1.*", { LAYER "post_attention_layernorm.*" } },
    { OLD "norm2.*", { LAYER "post_mlp_layernorm.*" } },
    { "embeddings.word_embeddings" LORA, { "embeddings.word_embeddings.weight" } },
    { "embeddings.token_type_embeddings" LORA, { "embeddings.token_type_embeddings.weight" } },
    { "pooler.dense" LORA, { "pooler.dense.weight" } },
    { OLD "mixer.Wqkv" ADAPTER, { NULL } },
    { OLD "mixer.out_proj" ADAPTER, { NULL } },
    { OLD "mlp.fc1" ADAPTER, { NULL } },
    { OLD "mlp.fc2" ADAPTER, { NULL } },
    { "embeddings.word_embeddings" ADAPTER, { NULL } },
    { "embeddings.token_type_embeddings" ADAPTER, { NULL } },
    { "pooler.dense" ADAPTER, { NULL } },
};

static const ses_class classes[] = {
    { .name = "JinaEmbeddingsV3Model", .pooler = true },
    SES_CLASS("JinaEmbeddingsV3ForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_CLASS("JinaEmbeddingsV3ForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("JinaEmbeddingsV3ForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("JinaEmbeddingsV3ForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
    { .name = "XLMRobertaModel" },
    SES_CLASS("XLMRobertaForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_CLASS("XLMRobertaForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
};

static const char *const reads[] = {
    "rope_parameters",         "rope_scaling",     "rope_theta", "rotary_emb_base",
    "position_embedding_type", "lora_adaptations", NULL
};

const ses_model_desc ses_model_jina_v3 = {
    .name = "jina_embeddings_v3",
    .prefix = "roberta.",
    .defaults = { .embed.segments = 1,
                  .embed.norm = true,
                  .embed.tied = true,
                  .pad_id = 1,
                  .norm.eps = 1e-5,
                  .position.kind = SES_POS_ROTARY,
                  .position.rope.theta = 20000,
                  .dropout.hidden = 0.1,
                  .dropout.attention = 0.1,
                  .dropout.embed = -1,
                  .dropout.head = -1,
                  .dropout.head_on_summary_input = true,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_GELU,
                  .pooler.act = SES_ACT_TANH,
                  .summary.act = SES_ACT_TANH,
                  .lm.act = SES_ACT_GELU,
                  .lm.bias = true },
    .keys = { SES_TABLE(ses_bert_keys) },
    .post_read = post_read,
    .reads = reads,
    .tensors = { SES_TABLE(tensors), SES_TABLE(ses_rotary_post_tensors), SES_TABLE(ses_roberta_heads) },
    .renames = renames,
    .n_renames = SES_LEN(renames),
    .signature = "mixer.Wqkv.",
    .class = classes,
    .n_classes = SES_LEN(classes),
};
