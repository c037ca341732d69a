/* MobileBERT: mobilebert_variables.ckpt with bert_config.json. */
#include "tf_family.h"

#define LAYER "bert/encoder/layer_#/"
#define TO "mobilebert.encoder.layer.#."
/* Norms that only scale and shift are called FakeLayerNorm. */
#define NORM(from, to) \
    { from "FakeLayerNorm/*", to "LayerNorm.*" }, { from "LayerNorm/*", to "LayerNorm.*" }

static const ses_tf_rule rules[] = {
    { "bert/embeddings/word_embeddings", "mobilebert.embeddings.word_embeddings.weight" },
    { "bert/embeddings/position_embeddings", "mobilebert.embeddings.position_embeddings.weight" },
    { "bert/embeddings/token_type_embeddings", "mobilebert.embeddings.token_type_embeddings.weight" },
    { "bert/embeddings/embedding_transformation/*", "mobilebert.embeddings.embedding_transformation.*" },
    NORM("bert/embeddings/", "mobilebert.embeddings."),
    { LAYER "attention/self/query/*", TO "attention.self.query.*" },
    { LAYER "attention/self/key/*", TO "attention.self.key.*" },
    { LAYER "attention/self/value/*", TO "attention.self.value.*" },
    { LAYER "attention/output/dense/*", TO "attention.output.dense.*" },
    NORM(LAYER "attention/output/", TO "attention.output."),
    { LAYER "bottleneck/input/dense/*", TO "bottleneck.input.dense.*" },
    NORM(LAYER "bottleneck/input/", TO "bottleneck.input."),
    { LAYER "bottleneck/attention/dense/*", TO "bottleneck.attention.dense.*" },
    NORM(LAYER "bottleneck/attention/", TO "bottleneck.attention."),
    { LAYER "ffn_layer_@/intermediate/dense/*", TO "ffn.@.intermediate.dense.*" },
    { LAYER "ffn_layer_@/output/dense/*", TO "ffn.@.output.dense.*" },
    NORM(LAYER "ffn_layer_@/output/", TO "ffn.@.output."),
    { LAYER "intermediate/dense/*", TO "intermediate.dense.*" },
    { LAYER "output/dense/*", TO "output.dense.*" },
    NORM(LAYER "output/", TO "output."),
    { LAYER "output/bottleneck/dense/*", TO "output.bottleneck.dense.*" },
    NORM(LAYER "output/bottleneck/", TO "output.bottleneck."),
    { "bert/pooler/dense/*", "mobilebert.pooler.dense.*" },
    { "cls/predictions/transform/dense/*", "cls.predictions.transform.dense.*" },
    { "cls/predictions/transform/LayerNorm/*", "cls.predictions.transform.LayerNorm.*" },
    { "cls/predictions/extra_output_weights", "cls.predictions.dense.weight", SES_TF_TRANSPOSE },
    { "cls/predictions/output_bias", "cls.predictions.bias" },
    { "cls/seq_relationship/output_weights", "cls.seq_relationship.weight" },
    { "cls/seq_relationship/output_bias", "cls.seq_relationship.bias" },
    { "cls/squad/output_weights", "qa_outputs.weight" },
    { "cls/squad/output_bias", "qa_outputs.bias" },
    { "output_weights", "classifier.weight" },
    { "output_bias", "classifier.bias" },
};

static const ses_tf_class classes[] = {
    { "cls/squad/output_weights", "MobileBertForQuestionAnswering" },
    { "output_weights", "MobileBertForSequenceClassification", .labels = true },
    { "cls/seq_relationship/output_weights", "MobileBertForPreTraining" },
    { "cls/predictions/output_bias", "MobileBertForMaskedLM" },
    { NULL, "MobileBertModel" },
};

const ses_tf_family ses_tf_mobilebert = {
    .name = "mobilebert",
    .variable = "bert/encoder/layer_0/bottleneck/input/dense/kernel",
    .config = "bert_config.json",
    SES_TF_TABLE(class, n_classes, classes),
    SES_TF_TABLE(rule, n_rules, rules),
};
