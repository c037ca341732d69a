/* BERT: bert_model.ckpt with bert_config.json. */
#include "tf_family.h"

#define LAYER "bert/encoder/layer_#/"
#define TO "bert.encoder.layer.#."
static const ses_tf_rule rules[] = {
    { "bert/embeddings/word_embeddings", "bert.embeddings.word_embeddings.weight" },
    { "bert/embeddings/position_embeddings", "bert.embeddings.position_embeddings.weight" },
    { "bert/embeddings/token_type_embeddings", "bert.embeddings.token_type_embeddings.weight" },
    { "bert/embeddings/LayerNorm/*", "bert.embeddings.LayerNorm.*" },
    { LAYER "attention/self/query/*", TO "attention.self.query.*" },
    { LAYER "attention/self/key/*", TO "attention.self.key.*" },
    { LAYER "attention/self/value/*", TO "attention.self.value.*" },
    { LAYER "attention/output/dense/*", TO "attention.output.dense.*" },
    { LAYER "attention/output/LayerNorm/*", TO "attention.output.LayerNorm.*" },
    { LAYER "intermediate/dense/*", TO "intermediate.dense.*" },
    { LAYER "output/dense/*", TO "output.dense.*" },
    { LAYER "output/LayerNorm/*", TO "output.LayerNorm.*" },
    { "bert/pooler/dense/*", "bert.pooler.dense.*" },
    { "cls/predictions/transform/dense/*", "cls.predictions.transform.dense.*" },
    { "cls/predictions/transform/LayerNorm/*", "cls.predictions.transform.LayerNorm.*" },
    { "cls/predictions/output_bias", "cls.predictions.bias" },
    { "cls/seq_relationship/output_weights", "cls.seq_relationship.weight" },
    { "cls/seq_relationship/output_bias", "cls.seq_relationship.bias" },
    { "cls/squad/output_weights", "qa_outputs.weight" },
    { "cls/squad/output_bias", "qa_outputs.bias" },
    { "output_weights", "classifier.weight" },
    { "output_bias", "classifier.bias" },
};

static const ses_tf_class classes[] = {
    { "cls/squad/output_weights", "BertForQuestionAnswering" },
    { "output_weights", "BertForSequenceClassification", .labels = true },
    { "cls/seq_relationship/output_weights", "BertForPreTraining" },
    { "cls/predictions/output_bias", "BertForMaskedLM" },
    { NULL, "BertModel" },
};

const ses_tf_family ses_tf_bert = {
    .name = "bert",
    .variable = "bert/embeddings/word_embeddings",
    .config = "bert_config.json",
    SES_TF_TABLE(class, n_classes, classes),
    SES_TF_TABLE(rule, n_rules, rules),
};
