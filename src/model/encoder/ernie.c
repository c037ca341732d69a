/* ERNIE (Sun et al. 2019, 2020): BERT whose embeddings may include a vector of the task, which is that of
 * task 0. */
#include "model/model_desc.h"

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    bool tasks = false;
    int64_t rows = 3;
    if (!ses_config_bool(config, "use_task_id", &tasks, e) ||
        !ses_config_int(config, "task_type_vocab_size", &rows, e))
        return false;
    if (rows < 1 || rows > SES_MAX_WIDTH)
        return ses_fail(e, SES_EARG, "\"task_type_vocab_size\" is %lld, expected 1 to %d", (long long)rows,
                        SES_MAX_WIDTH);
    if (tasks) c->embed.tasks = rows;
    return ses_bert_post_read(c, config, e);
}

static const ses_tensor_name tensors[] = { { "embed.task", "embeddings.task_type_embeddings.weight" } };

static const ses_class classes[] = {
    { .name = "ErnieModel", .pooler = true },
    SES_POOLED_CLASS("ErnieForPreTraining", SES_USE_HEAD(masked_lm, "prediction_logits"),
                     SES_USE_PAIR_HEAD(next_sentence, "seq_relationship_logits")),
    SES_CLASS("ErnieForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_CLASS("ErnieForCausalLM", SES_USE_HEAD(causal_lm, "logits")),
    SES_POOLED_CLASS("ErnieForNextSentencePrediction", SES_USE_HEAD(next_sentence, "logits")),
    SES_POOLED_CLASS("ErnieForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_POOLED_CLASS("ErnieForMultipleChoice", SES_USE_HEAD(multiple_choice, "logits")),
    SES_CLASS("ErnieForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("ErnieForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
};

static const char *const reads[] = { "use_task_id", NULL };

const ses_model_desc ses_model_ernie = {
    .name = "ernie",
    .prefix = "ernie.",
    .tokenizer_sets_segments = true,
    .defaults = { .embed.segments = 2,
                  .pad_id = 0,
                  .norm.eps = 1e-12,
                  .dropout.hidden = 0.1,
                  .dropout.attention = 0.1,
                  .dropout.embed = -1,
                  .dropout.head = -1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_GELU,
                  .pooler.act = SES_ACT_TANH,
                  .embed.norm = true,
                  .embed.tied = true,
                  .lm.bias = true },
    .keys = { SES_TABLE(ses_bert_keys) },
    .post_read = post_read,
    .reads = reads,
    .tensors = { SES_TABLE(tensors), SES_TABLE(ses_bert_tensors), SES_TABLE(ses_bert_norms),
                 SES_TABLE(ses_bert_heads) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
