/* RemBERT (Chung et al. 2021): BERT with narrow embeddings and a wide vocabulary projection of its own. */
#include "model/model_desc.h"

static const ses_config_key keys[] = {
    SES_KEY_INTEGER("input_embedding_size", embed.width, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("output_embedding_size", lm.width, 1, SES_MAX_WIDTH),
    SES_KEY_RATE("classifier_dropout_prob", dropout.head),
};

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    if (c->embed.tied && c->lm.width != c->embed.width)
        return ses_fail(e, SES_EARG,
                        "\"tie_word_embeddings\" is true, but \"input_embedding_size\" is %lld and "
                        "\"output_embedding_size\" %lld",
                        (long long)c->embed.width, (long long)c->lm.width);
    return ses_bert_post_read(c, config, e);
}

static const ses_tensor_name tensors[] = {
    { "embed.project.*", "encoder.embedding_hidden_mapping_in.*" },
    { "lm.dense.*", "/cls.predictions.dense.*" },
    { "lm.norm.*", "/cls.predictions.LayerNorm.*" },
    { "lm.out.*", "/cls.predictions.decoder.*" },
    { "classify.out.*", "/classifier.*" },
    { "choice.out.*", "/classifier.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

static const ses_class classes[] = {
    { .name = "RemBertModel", .pooler = true },
    SES_CLASS("RemBertForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_CLASS("RemBertForCausalLM", SES_USE_HEAD(causal_lm, "logits")),
    SES_POOLED_CLASS("RemBertForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_POOLED_CLASS("RemBertForMultipleChoice", SES_USE_HEAD(multiple_choice, "logits")),
    SES_CLASS("RemBertForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("RemBertForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
};

const ses_model_desc ses_model_rembert = {
    .name = "rembert",
    .prefix = "rembert.",
    .tokenizer_sets_segments = true,
    .defaults = { .embed.segments = 2,
                  .embed.width = 256,
                  .embed.norm = true,
                  .embed.always_project = true,
                  .pad_id = 0,
                  .norm.eps = 1e-12,
                  .dropout.embed = -1,
                  .dropout.head = 0.1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_GELU,
                  .pooler.act = SES_ACT_TANH,
                  .lm.width = 1664,
                  .lm.bias = true },
    .keys = { SES_TABLE(ses_bert_keys), SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { SES_TABLE(tensors), SES_TABLE(ses_bert_tensors), SES_TABLE(ses_bert_norms) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
