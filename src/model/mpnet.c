/* MPNet (Song et al. 2020): RoBERTa with a learned bias on the scores by bucketed distance. */
#include "model_desc.h"

/* transformers always uses 32 buckets, whatever the table's size. */
enum { BUCKETS = 32 };

static const ses_config_key keys[] = { SES_KEY_INTEGER("relative_attention_num_buckets", rel_bias.table_rows,
                                                       BUCKETS, SES_MAX_WIDTH) };

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    c->pad_id = 1; /* transformers ignores the config's value */
    c->position.offset = c->pad_id + 1;
    return ses_bert_post_read(c, config, e);
}

static const ses_tensor_name tensors[] = {
    /* searched before RoBERTa's and BERT's tables */
    { "buckets", "encoder.relative_attention_bias.weight" },
    { "layer.#.attn.query.*", "encoder.layer.#.attention.attn.q.*" },
    { "layer.#.attn.key.*", "encoder.layer.#.attention.attn.k.*" },
    { "layer.#.attn.value.*", "encoder.layer.#.attention.attn.v.*" },
    { "layer.#.attn.out.*", "encoder.layer.#.attention.attn.o.*" },
    { "layer.#.attn.norm.*", "encoder.layer.#.attention.LayerNorm.*" },
};

static const ses_class classes[] = {
    { .name = "MPNetModel", .pooler = true },
    SES_CLASS("MPNetForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_CLASS("MPNetForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_POOLED_CLASS("MPNetForMultipleChoice", SES_USE_HEAD(multiple_choice, "logits")),
    SES_CLASS("MPNetForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("MPNetForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
};

const ses_model_desc ses_model_mpnet = {
    .name = "mpnet",
    .prefix = "mpnet.",
    .defaults = { .pad_id = 1,
                  .rel_bias.buckets = BUCKETS,
                  .rel_bias.max_distance = 128,
                  .norm.eps = 1e-12,
                  .dropout.hidden = 0.1,
                  .dropout.attention = 0.1,
                  .dropout.embed = -1,
                  .dropout.head = -1,
                  .dropout.head_on_summary_input = true,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_GELU,
                  .pooler.act = SES_ACT_TANH,
                  .summary.act = SES_ACT_TANH,
                  .lm.act = SES_ACT_GELU,
                  .position.skips_pad = true,
                  .embed.norm = true,
                  .embed.tied = true,
                  .lm.bias = true },
    .keys = { SES_TABLE(ses_bert_keys), SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { SES_TABLE(tensors), SES_TABLE(ses_roberta_heads), SES_TABLE(ses_bert_tensors),
                 SES_TABLE(ses_bert_norms) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
