/* ALBERT (Lan et al. 2019): narrow token table, layers that share their parameters in groups, sentence
 * order. */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_INT("embedding_size", embed, 1, SES_MOST_WIDTH),
    SES_INT("num_hidden_groups", groups, 1, SES_MAX_LAYERS),
    SES_INT("inner_group_num", inner, 1, SES_MAX_LAYERS),
    SES_RATE("classifier_dropout_prob", drop_head),
};

static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    if (c->groups * c->inner > SES_MAX_LAYERS)
        return ses_fail(e, SES_EARG,
                        "\"num_hidden_groups\" %lld x \"inner_group_num\" %lld are more than %d layers",
                        (long long)c->groups, (long long)c->inner, SES_MAX_LAYERS);
    if (c->layers * c->inner > SES_MAX_LAYERS)
        return ses_fail(e, SES_EARG, "%lld layers of %lld each are more than %d", (long long)c->layers,
                        (long long)c->inner, SES_MAX_LAYERS);
    c->layers *= c->inner; /* every application counts as a layer */
    return ses_bert_finish(c, config, e);
}

#define LAYER "encoder.albert_layer_groups.#.albert_layers.@."
static const ses_name tensors[] = {
    { "embed.token", "embeddings.word_embeddings.weight" },
    { "embed.position", "embeddings.position_embeddings.weight" },
    { "embed.segment", "embeddings.token_type_embeddings.weight" },
    { "embed.norm.*", "embeddings.LayerNorm.*" },
    { "embed.project.*", "encoder.embedding_hidden_mapping_in.*" },
    { "layer.#.attn.query.*", LAYER "attention.query.*" },
    { "layer.#.attn.key.*", LAYER "attention.key.*" },
    { "layer.#.attn.value.*", LAYER "attention.value.*" },
    { "layer.#.attn.out.*", LAYER "attention.dense.*" },
    { "layer.#.attn.norm.*", LAYER "attention.LayerNorm.*" },
    { "layer.#.ffn.up.*", LAYER "ffn.*" },
    { "layer.#.ffn.down.*", LAYER "ffn_output.*" },
    { "layer.#.ffn.norm.*", LAYER "full_layer_layer_norm.*" },
    { "pooler.*", "pooler.*" },
    { "lm.dense.*", "/predictions.dense.*" },
    { "lm.norm.*", "/predictions.LayerNorm.*" },
    { "lm.out.weight", "/predictions.decoder.weight" },
    { "lm.out.bias", "~/predictions.decoder.bias" },
    { "lm.out.bias", "/predictions.bias" },
    { "lm.out.bias", "/predictions.decoder.bias" },
    { "order.*", "/sop_classifier.classifier.*" },
    { "classify.out.*", "/classifier.*" },
    { "choice.out.*", "/classifier.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

static const ses_class classes[] = {
    { .name = "AlbertModel", .pooler = true },
    SES_POOLED("AlbertForPreTraining", SES_ON(masked_lm, "prediction_logits"),
               SES_ON_PAIRS(sentence_order, "sop_logits")),
    SES_CLASS("AlbertForMaskedLM", SES_ON(masked_lm, "logits")),
    SES_POOLED("AlbertForSequenceClassification", SES_ON(classify, "logits")),
    SES_POOLED("AlbertForMultipleChoice", SES_ON(choice, "logits")),
    SES_CLASS("AlbertForTokenClassification", SES_ON(tag, "logits")),
    SES_CLASS("AlbertForQuestionAnswering", SES_ON(span, "")),
};

const ses_model_desc ses_model_albert = {
    .name = "albert",
    .prefix = "albert.",
    .arch = { .segments = 2,
              .pad = 0,
              .embed = 128,
              .groups = 1,
              .inner = 1,
              .norm_eps = 1e-12,
              .drop_embed = -1,
              .drop_head = 0.1,
              .init_range = 0.02,
              .act = SES_ACT_GELU_TANH,
              .pooler_act = SES_ACT_TANH,
              .embed_norm = true,
              .tied = true,
              .lm_bias = true,
              .always_project = true },
    .keys = { SES_TABLE(ses_bert_keys), SES_TABLE(keys) },
    .finish = finish,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
