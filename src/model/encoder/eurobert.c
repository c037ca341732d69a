/* EuroBERT (Boizard et al. 2025): pre-norm encoder with RMS norms, rotary positions and gated feed-forward
 * blocks, without biases. */
#include "model/encoder/rotary_tables.h"

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    static const char *const poolings[] = { "late", "bos", "mean" };
    size_t pooling;
    bool mlp_bias = false;
    if (!ses_config_name(config, "classifier_pooling", poolings, SES_LEN(poolings), &pooling, e) ||
        !ses_config_bool(config, "mlp_bias", &mlp_bias, e))
        return false;
    c->summary.kind = pooling == 1 ? SES_SUMMARY_FIRST : SES_SUMMARY_MEAN;
    c->summary.dense_by_token = pooling == 0;
    c->ffn.no_bias = !mlp_bias, c->lm.bias = mlp_bias;
    return ses_rotary_post_read(c, config, e);
}

static const ses_tensor_name heads[] = {
    { "layer.#.ffn.norm.*", "layers.#.post_attention_layernorm.*" },
    { "lm.out.*", "/lm_head.*" },
    { "classify.dense.*", "/dense.*" },
    { "classify.out.*", "/classifier.*" },
    { "tag.*", "/classifier.*" },
};

static const ses_class classes[] = {
    { .name = "EuroBertModel" },
    SES_CLASS("EuroBertForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_CLASS("EuroBertForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("EuroBertForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
};

static const char *const reads[] = { SES_ROTARY_READS, NULL };

const ses_model_desc ses_model_eurobert = {
    .name = "eurobert",
    .prefix = "model.",
    .defaults = { .pad_id = -1,
                  .norm.eps = 1e-5,
                  .norm.kind = SES_NORM_RMS,
                  .norm.placement = SES_PRE_NORM,
                  .norm.after_last_layer = true,
                  .position.kind = SES_POS_ROTARY,
                  .position.rope.theta = 250000,
                  .attention.no_bias = true,
                  .ffn.act = SES_ACT_SILU,
                  .ffn.gated = true,
                  .embed.train_pad = false,
                  .dropout.embed = 0,
                  .dropout.head = 0,
                  .summary.act = SES_ACT_GELU,
                  .init.range = 0.02,
                  .lm.no_transform = true },
    .keys = { SES_TABLE(ses_rotary_keys) },
    .post_read = post_read,
    .reads = reads,
    .tensors = { SES_TABLE(ses_rotary_tensors), SES_TABLE(heads) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
