/* ELECTRA (Clark et al. 2020): BERT with factorized embeddings; a generator (masked LM) and a discriminator
 * (replaced token detection). */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_KEY_INTEGER("embedding_size", embed.width, 1, SES_MAX_WIDTH),
    SES_KEY_ACTIVATION("summary_activation", summary.sequence_summary_act),
};

static const ses_tensor_name tensors[] = {
    { "embed.project.*", "embeddings_project.*" },
    { "lm.dense.*", "/generator_predictions.dense.*" },
    { "lm.norm.*", "/generator_predictions.LayerNorm.*" },
    { "lm.out.weight", "/generator_lm_head.weight" },
    { "lm.out.bias", "/generator_lm_head.bias" },
    { "copy.*", "/copy_predictions.*" },
    { "replaced.dense.*", "/discriminator_predictions.dense.*" },
    { "replaced.out.*", "/discriminator_predictions.dense_prediction.*" },
    { "classify.dense.*", "/classifier.dense.*" },
    { "classify.out.*", "/classifier.out_proj.*" },
    { "choice.dense.*", "/sequence_summary.summary.*" },
    { "choice.out.*", "/classifier.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

static const ses_class classes[] = {
    { .name = "ElectraModel" },
    SES_CLASS("ElectraForPreTraining", SES_USE_HEAD(replaced_tokens, "logits")),
    SES_CLASS("ElectraForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_CLASS("ElectraForCopyLM", SES_USE_HEAD(copy_lm, "logits")),
    SES_CLASS("ElectraForCausalLM", SES_USE_HEAD(causal_lm, "logits")),
    SES_CLASS("ElectraForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    { .name = "ElectraForMultipleChoice",
      .uses_sequence_summary_act = true,
      .head = { SES_USE_HEAD(multiple_choice, "logits") } },
    SES_CLASS("ElectraForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("ElectraForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
};

const ses_model_desc ses_model_electra = {
    .name = "electra",
    .prefix = "electra.",
    .tokenizer_sets_segments = true,
    .defaults = { .embed.segments = 2,
                  .pad_id = 0,
                  .embed.width = 128,
                  .norm.eps = 1e-12,
                  .dropout.hidden = 0.1,
                  .dropout.attention = 0.1,
                  .dropout.embed = -1,
                  .dropout.head = -1,
                  .dropout.head_on_summary_input = true,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_GELU,
                  .summary.act = SES_ACT_GELU,
                  .summary.sequence_summary_act = SES_ACT_GELU,
                  .lm.act = SES_ACT_GELU,
                  .embed.norm = true,
                  .embed.tied = true,
                  .lm.bias = true },
    .keys = { SES_TABLE(ses_bert_keys), SES_TABLE(keys) },
    .post_read = ses_bert_post_read_positions,
    .reads = ses_bert_reads,
    .tensors = { SES_TABLE(ses_bert_tensors), SES_TABLE(ses_bert_norms), SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
