/* ALBERT: model.ckpt-best with albert_config.json. Its layers share their parameters by groups. */
#include "tf_family.h"

#define LAYER "bert/encoder/transformer/group_#/inner_group_@/"
#define TO "albert.encoder.albert_layer_groups.#.albert_layers.@."
static const ses_tf_rule rules[] = {
    { "bert/embeddings/word_embeddings", "albert.embeddings.word_embeddings.weight" },
    { "bert/embeddings/position_embeddings", "albert.embeddings.position_embeddings.weight" },
    { "bert/embeddings/token_type_embeddings", "albert.embeddings.token_type_embeddings.weight" },
    { "bert/embeddings/LayerNorm/*", "albert.embeddings.LayerNorm.*" },
    { "bert/encoder/embedding_hidden_mapping_in/*", "albert.encoder.embedding_hidden_mapping_in.*" },
    { LAYER "attention_1/self/query/*", TO "attention.query.*" },
    { LAYER "attention_1/self/key/*", TO "attention.key.*" },
    { LAYER "attention_1/self/value/*", TO "attention.value.*" },
    { LAYER "attention_1/output/dense/*", TO "attention.dense.*" },
    { LAYER "LayerNorm/*", TO "attention.LayerNorm.*" },
    { LAYER "ffn_1/intermediate/dense/*", TO "ffn.*" },
    { LAYER "ffn_1/intermediate/output/dense/*", TO "ffn_output.*" },
    { LAYER "LayerNorm_1/*", TO "full_layer_layer_norm.*" },
    { "bert/pooler/dense/*", "albert.pooler.*" },
    { "cls/predictions/transform/dense/*", "predictions.dense.*" },
    { "cls/predictions/transform/LayerNorm/*", "predictions.LayerNorm.*" },
    { "cls/predictions/output_bias", "predictions.bias" },
    { "cls/seq_relationship/output_weights", "sop_classifier.classifier.weight" },
    { "cls/seq_relationship/output_bias", "sop_classifier.classifier.bias" },
    { "output_weights", "classifier.weight" },
    { "output_bias", "classifier.bias" },
};

static const ses_tf_class classes[] = {
    { "output_weights", "AlbertForSequenceClassification", .labels = true },
    { "cls/seq_relationship/output_weights", "AlbertForPreTraining" },
    { "cls/predictions/output_bias", "AlbertForMaskedLM" },
    { NULL, "AlbertModel" },
};

const ses_tf_family ses_tf_albert = {
    .name = "albert",
    .variable = "bert/encoder/embedding_hidden_mapping_in/kernel",
    .config = "albert_config.json",
    .gelu = "gelu_new", /* ALBERT computes the tanh form */
    SES_TF_TABLE(class, n_classes, classes),
    SES_TF_TABLE(rule, n_rules, rules),
};
