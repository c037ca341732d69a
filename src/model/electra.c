/* ELECTRA (Clark et al. 2020): BERT with a token table of its own width; a generator that fills masks and a
 * discriminator that tells what was replaced. */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_INT("embedding_size", embed, 1, SES_MOST_WIDTH),
    SES_ACTIVATION("summary_activation", told_act),
};

static const ses_name tensors[] = {
    { "embed.project.*", "embeddings_project.*" },
    { "lm.dense.*", "/generator_predictions.dense.*" },
    { "lm.norm.*", "/generator_predictions.LayerNorm.*" },
    { "lm.out.weight", "/generator_lm_head.weight" },
    { "lm.out.bias", "/generator_lm_head.bias" },
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
    SES_CLASS("ElectraForPreTraining", SES_ON(replaced, "logits")),
    SES_CLASS("ElectraForMaskedLM", SES_ON(masked_lm, "logits")),
    SES_CLASS("ElectraForCausalLM", SES_ON(causal_lm, "logits")),
    SES_CLASS("ElectraForSequenceClassification", SES_ON(classify, "logits")),
    { .name = "ElectraForMultipleChoice", .told_act = true, .head = { SES_ON(choice, "logits") } },
    SES_CLASS("ElectraForTokenClassification", SES_ON(tag, "logits")),
    SES_CLASS("ElectraForQuestionAnswering", SES_ON(span, "")),
};

const ses_model_desc ses_model_electra = {
    .name = "electra",
    .prefix = "electra.",
    .told_segments = true,
    .arch = { .segments = 2,
              .pad = 0,
              .embed = 128,
              .norm_eps = 1e-12,
              .drop = 0.1,
              .drop_attention = 0.1,
              .drop_embed = -1,
              .drop_head = -1,
              .drop_summary_in = true,
              .init_range = 0.02,
              .act = SES_ACT_GELU,
              .summary_act = SES_ACT_GELU,
              .told_act = SES_ACT_GELU,
              .lm_act = SES_ACT_GELU,
              .embed_norm = true,
              .tied = true,
              .lm_bias = true },
    .keys = { SES_TABLE(ses_bert_keys), SES_TABLE(keys) },
    .finish = ses_bert_finish,
    .tensors = { SES_TABLE(ses_bert_tensors), SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
