/* RoBERTa (Liu et al. 2019): BERT with another tokenizer; positions start behind the pad's id, which they
 * skip; the classifier has a dense layer of its own. XLM-R and CamemBERT are the same under other names. */
#include "model_desc.h"

static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    c->pos_offset = c->pad + 1;
    return ses_bert_finish(c, config, e);
}

const ses_name ses_roberta_heads[SES_ROBERTA_HEADS] = {
    { "lm.dense.*", "/lm_head.dense.*" },
    { "lm.norm.*", "/lm_head.layer_norm.*" },
    { "lm.out.weight", "/lm_head.decoder.weight" },
    { "lm.out.bias", "~/lm_head.decoder.bias" },
    { "lm.out.bias", "/lm_head.bias" },
    { "lm.out.bias", "/lm_head.decoder.bias" },
    { "classify.dense.*", "/classifier.dense.*" },
    { "classify.out.*", "/classifier.out_proj.*" },
    { "choice.out.*", "/classifier.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

#define ROBERTA(id, type, stem)                                                   \
    static const ses_class classes_##id[] = {                                     \
        { .name = stem "Model", .pooler = true },                                 \
        SES_CLASS(stem "ForMaskedLM", SES_ON(masked_lm, "logits")),               \
        SES_CLASS(stem "ForCausalLM", SES_ON(causal_lm, "logits")),               \
        SES_CLASS(stem "ForSequenceClassification", SES_ON(classify, "logits")),  \
        SES_POOLED(stem "ForMultipleChoice", SES_ON(choice, "logits")),           \
        SES_CLASS(stem "ForTokenClassification", SES_ON(tag, "logits")),          \
        SES_CLASS(stem "ForQuestionAnswering", SES_ON(span, "")),                 \
    };                                                                            \
    const ses_model_desc ses_model_##id = {                                       \
        .name = type,                                                             \
        .prefix = "roberta.",                                                     \
        .arch = { .segments = 1,                                                  \
                  .pad = 1,                                                       \
                  .norm_eps = 1e-12,                                              \
                  .drop = 0.1,                                                    \
                  .drop_attention = 0.1,                                          \
                  .drop_embed = -1,                                               \
                  .drop_head = -1,                                                \
                  .drop_summary_in = true,                                        \
                  .init_range = 0.02,                                             \
                  .act = SES_ACT_GELU,                                            \
                  .pooler_act = SES_ACT_TANH,                                     \
                  .summary_act = SES_ACT_TANH,                                    \
                  .lm_act = SES_ACT_GELU,                                         \
                  .pos_skips_pad = true,                                          \
                  .embed_norm = true,                                             \
                  .tied = true,                                                   \
                  .lm_bias = true },                                              \
        .keys = { SES_TABLE(ses_bert_keys) },                                     \
        .finish = finish,                                                         \
        .tensors = { SES_TABLE(ses_bert_tensors), SES_TABLE(ses_roberta_heads) }, \
        .class = classes_##id,                                                    \
        .n_classes = SES_LEN(classes_##id),                                       \
    };

ROBERTA(roberta, "roberta", "Roberta")
ROBERTA(xlm_roberta, "xlm-roberta", "XLMRoberta")
ROBERTA(camembert, "camembert", "Camembert")
