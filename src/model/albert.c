/* ALBERT (Lan et al. 2019): factorized embeddings, parameters shared by groups of layers, sentence order
 * prediction. */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_KEY_INTEGER("embedding_size", embed.width, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("num_hidden_groups", layer_groups, 1, SES_MAX_LAYERS),
    SES_KEY_INTEGER("inner_group_num", layers_per_group, 1, SES_MAX_LAYERS),
    SES_KEY_RATE("classifier_dropout_prob", dropout.head),
};

static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    if (c->layer_groups * c->layers_per_group > SES_MAX_LAYERS)
        return ses_fail(e, SES_EARG,
                        "\"num_hidden_groups\" %lld x \"inner_group_num\" %lld are more than %d layers",
                        (long long)c->layer_groups, (long long)c->layers_per_group, SES_MAX_LAYERS);
    if (c->layers * c->layers_per_group > SES_MAX_LAYERS)
        return ses_fail(e, SES_EARG, "%lld applications of %lld layers exceed the maximum of %d",
                        (long long)c->layers, (long long)c->layers_per_group, SES_MAX_LAYERS);
    c->layers *= c->layers_per_group; /* every application counts as a layer */
    if (!ses_bert_post_read_positions(c, config, e)) return false;
    c->attention.cross = false;         /* ALBERT has none */
    c->norm.no_first_attn_norm = false; /* layers share weights */
    return true;
}

#define LAYER "encoder.albert_layer_groups.#.albert_layers.@."
static const ses_tensor_name tensors[] = {
    { "embed.token", "embeddings.word_embeddings.weight" },
    { "embed.position", "embeddings.position_embeddings.weight" },
    { "embed.segment", "embeddings.token_type_embeddings.weight" },
    { "embed.norm.*", "embeddings.LayerNorm.*" },
    { "embed.project.*", "encoder.embedding_hidden_mapping_in.*" },
    { "layer.#.attn.query.*", LAYER "attention.query.*" },
    { "layer.#.attn.key.*", LAYER "attention.key.*" },
    { "layer.#.attn.value.*", LAYER "attention.value.*" },
    { "layer.#.attn.qkv.*", LAYER "attention.qkv.*" }, /* rotary positions */
    { "layer.#.attn.distance", LAYER "attention.distance_embedding.weight" },
    { "layer.#.attn.out.*", LAYER "attention.dense.*" },
    { "layer.#.attn.norm.*", LAYER "attention.LayerNorm.*" },
    { "layer.#.ffn.up.*", LAYER "ffn.*" },
    { "layer.#.ffn.down.*", LAYER "ffn_output.*" },
    { "layer.#.ffn.norm.*", LAYER "full_layer_layer_norm.*" },
    { "final_norm.*", "encoder.LayerNorm.*" }, /* pre-norm */
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
    SES_POOLED_CLASS("AlbertForPreTraining", SES_USE_HEAD(masked_lm, "prediction_logits"),
                     SES_USE_PAIR_HEAD(sentence_order, "sop_logits")),
    SES_CLASS("AlbertForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_POOLED_CLASS("AlbertForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_POOLED_CLASS("AlbertForMultipleChoice", SES_USE_HEAD(multiple_choice, "logits")),
    SES_CLASS("AlbertForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("AlbertForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
};

const ses_model_desc ses_model_albert = {
    .name = "albert",
    .prefix = "albert.",
    .defaults = { .embed.segments = 2,
                  .pad_id = 0,
                  .embed.width = 128,
                  .layer_groups = 1,
                  .layers_per_group = 1,
                  .norm.eps = 1e-12,
                  .dropout.embed = -1,
                  .dropout.head = 0.1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_GELU_TANH,
                  .pooler.act = SES_ACT_TANH,
                  .embed.norm = true,
                  .embed.tied = true,
                  .lm.bias = true,
                  .embed.always_project = true,
                  .position.distances_unscaled = true },
    .keys = { SES_TABLE(ses_bert_keys), SES_TABLE(keys) },
    .post_read = finish,
    .reads = ses_bert_reads,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
