/* ESM-1b and ESM-2 (Lin et al. 2023): pre-norm encoders of protein sequences, with rotary or learned
 * positions. Vectors of mask tokens are zero, and the others are scaled as after dropout of tokens. */
#include "model/model_desc.h"

static const ses_config_key keys[] = {
    SES_KEY_FLAG("emb_layer_norm_before", embed.norm),
    SES_KEY_FLAG("token_dropout", embed.token_dropout),
    SES_KEY_INTEGER("mask_token_id", embed.mask_id, -1, SES_MAX_VOCAB),
};

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    static const char *const positions[] = { "absolute", "rotary" };
    bool folds = false;
    size_t kind;
    if (!ses_config_name(config, "position_embedding_type", positions, SES_LEN(positions), &kind, e) ||
        !ses_config_bool(config, "is_folding_model", &folds, e))
        return false;
    if (folds)
        return ses_fail(e, SES_EUNSUPPORTED, "\"is_folding_model\" is true: structures are not predicted");
    if (c->embed.token_dropout && c->embed.mask_id < 0)
        return ses_fail(e, SES_EFORMAT, "\"mask_token_id\" is missing, which \"token_dropout\" needs");
    if (kind) {
        c->position.kind = SES_POS_ROTARY;
        return ses_rope_config(c, config, e);
    }
    c->position.offset = c->pad_id + 1, c->position.skips_pad = true;
    return true;
}

static const ses_tensor_name tensors[] = {
    { "embed.norm.*", "embeddings.layer_norm.*" },
    { "layer.#.attn.norm.*", "encoder.layer.#.attention.LayerNorm.*" },
    { "layer.#.ffn.norm.*", "encoder.layer.#.LayerNorm.*" },
    { "final_norm.*", "encoder.emb_layer_norm_after.*" },
    { "", "contact_head.regression.weight" }, /* contacts of residues */
    { "", "contact_head.regression.bias" },
};

static const ses_class classes[] = {
    { .name = "EsmModel", .pooler = true },
    SES_CLASS("EsmForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_CLASS("EsmForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("EsmForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
};

static const char *const reads[] = { "position_embedding_type", "rope_parameters", "rope_theta",
                                     "rope_scaling", NULL };

const ses_model_desc ses_model_esm = {
    .name = "esm",
    .prefix = "esm.",
    .defaults = { .pad_id = 1,
                  .embed.tied = true,
                  .embed.mask_id = -1,
                  .norm.eps = 1e-12,
                  .norm.placement = SES_PRE_NORM,
                  .norm.after_last_layer = true,
                  .position.rope.theta = 10000,
                  .dropout.hidden = 0.1,
                  .dropout.attention = 0.1,
                  .dropout.head = -1,
                  .dropout.head_on_summary_input = true,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_GELU,
                  .pooler.act = SES_ACT_TANH,
                  .summary.act = SES_ACT_TANH,
                  .lm.act = SES_ACT_GELU,
                  .lm.bias = true },
    .keys = { SES_TABLE(ses_bert_keys), SES_TABLE(keys) },
    .post_read = post_read,
    .reads = reads,
    .tensors = { SES_TABLE(tensors), SES_TABLE(ses_bert_tensors), SES_TABLE(ses_roberta_heads) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
