/* MPNet (Song et al. 2020): as RoBERTa, with a learned bias on the scores by bucketed distance. */
#include "model_desc.h"

/* The reference has 32 buckets, whatever the table's size. */
enum { BUCKETS = 32 };

static const ses_config_key keys[] = { SES_INT("relative_attention_num_buckets", bucket_rows, BUCKETS,
                                               SES_MOST_WIDTH) };

static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    c->pad = 1; /* the reference's tables know no other, whatever the config says */
    c->pos_offset = c->pad + 1;
    return ses_bert_finish(c, config, e);
}

static const ses_name tensors[] = {
    /* before RoBERTa's and BERT's */
    { "buckets", "encoder.relative_attention_bias.weight" },
    { "layer.#.attn.query.*", "encoder.layer.#.attention.attn.q.*" },
    { "layer.#.attn.key.*", "encoder.layer.#.attention.attn.k.*" },
    { "layer.#.attn.value.*", "encoder.layer.#.attention.attn.v.*" },
    { "layer.#.attn.out.*", "encoder.layer.#.attention.attn.o.*" },
    { "layer.#.attn.norm.*", "encoder.layer.#.attention.LayerNorm.*" },
};

static const ses_class classes[] = {
    { .name = "MPNetModel", .pooler = true },
    SES_CLASS("MPNetForMaskedLM", SES_ON(masked_lm, "logits")),
    SES_CLASS("MPNetForSequenceClassification", SES_ON(classify, "logits")),
    SES_POOLED("MPNetForMultipleChoice", SES_ON(choice, "logits")),
    SES_CLASS("MPNetForTokenClassification", SES_ON(tag, "logits")),
    SES_CLASS("MPNetForQuestionAnswering", SES_ON(span, "")),
};

const ses_model_desc ses_model_mpnet = {
    .name = "mpnet",
    .prefix = "mpnet.",
    .arch = { .pad = 1,
              .buckets = BUCKETS,
              .max_distance = 128,
              .norm_eps = 1e-12,
              .drop = 0.1,
              .drop_attention = 0.1,
              .drop_embed = -1,
              .drop_head = -1,
              .drop_summary_in = true,
              .init_range = 0.02,
              .act = SES_ACT_GELU,
              .pooler_act = SES_ACT_TANH,
              .summary_act = SES_ACT_TANH,
              .lm_act = SES_ACT_GELU,
              .pos_skips_pad = true,
              .embed_norm = true,
              .tied = true,
              .lm_bias = true },
    .keys = { SES_TABLE(ses_bert_keys), SES_TABLE(keys) },
    .finish = finish,
    .tensors = { SES_TABLE(tensors), SES_TABLE(ses_roberta_heads), SES_TABLE(ses_bert_tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
