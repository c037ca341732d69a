/* Megatron-BERT (Shoeybi et al. 2019): BERT with norms before the sublayers and none after the embeddings. */
#include "model/model_desc.h"

static const ses_tensor_name norms[] = {
    { "layer.#.attn.norm.*", "encoder.layer.#.attention.ln.*" },
    { "layer.#.ffn.norm.*", "encoder.layer.#.ln.*" },
    { "final_norm.*", "encoder.ln.*" },
};

static const ses_class classes[] = {
    { .name = "MegatronBertModel", .pooler = true },
    SES_POOLED_CLASS("MegatronBertForPreTraining", SES_USE_HEAD(masked_lm, "prediction_logits"),
                     SES_USE_PAIR_HEAD(next_sentence, "seq_relationship_logits")),
    SES_CLASS("MegatronBertForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_CLASS("MegatronBertForCausalLM", SES_USE_HEAD(causal_lm, "logits")),
    SES_POOLED_CLASS("MegatronBertForNextSentencePrediction", SES_USE_HEAD(next_sentence, "logits")),
    SES_POOLED_CLASS("MegatronBertForSequenceClassification",
                     SES_USE_HEAD(sequence_classification, "logits")),
    SES_POOLED_CLASS("MegatronBertForMultipleChoice", SES_USE_HEAD(multiple_choice, "logits")),
    SES_CLASS("MegatronBertForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("MegatronBertForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
};

const ses_model_desc ses_model_megatron_bert = {
    .name = "megatron-bert",
    .prefix = "bert.",
    .tokenizer_sets_segments = true,
    .defaults = { .embed.segments = 2,
                  .pad_id = 0,
                  .norm.eps = 1e-12,
                  .norm.placement = SES_PRE_NORM,
                  .norm.after_last_layer = true,
                  .dropout.hidden = 0.1,
                  .dropout.attention = 0.1,
                  .dropout.embed = -1,
                  .dropout.head = -1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_GELU,
                  .pooler.act = SES_ACT_TANH,
                  .embed.tied = true,
                  .lm.bias = true },
    .keys = { SES_TABLE(ses_bert_keys) },
    .post_read = ses_bert_post_read,
    .tensors = { SES_TABLE(ses_bert_tensors), SES_TABLE(norms), SES_TABLE(ses_bert_heads) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
