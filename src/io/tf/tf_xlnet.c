/* XLNet: xlnet_model.ckpt with xlnet_config.json. The biases of all layers are one variable. */
#include "tf_family.h"

#define LAYER "model/transformer/layer_#/"
#define TO "transformer.layer.#."
static const ses_tf_rule rules[] = {
    { "model/transformer/word_embedding/lookup_table", "transformer.word_embedding.weight" },
    { "model/transformer/mask_emb/mask_emb", "transformer.mask_emb" },
    { "model/transformer/r_w_bias", TO "rel_attn.r_w_bias", SES_TF_SPLIT },
    { "model/transformer/r_r_bias", TO "rel_attn.r_r_bias", SES_TF_SPLIT },
    { "model/transformer/r_s_bias", TO "rel_attn.r_s_bias", SES_TF_SPLIT },
    { "model/transformer/seg_embed", TO "rel_attn.seg_embed", SES_TF_SPLIT },
    { LAYER "rel_attn/q/kernel", TO "rel_attn.q" },
    { LAYER "rel_attn/k/kernel", TO "rel_attn.k" },
    { LAYER "rel_attn/v/kernel", TO "rel_attn.v" },
    { LAYER "rel_attn/o/kernel", TO "rel_attn.o" },
    { LAYER "rel_attn/r/kernel", TO "rel_attn.r" },
    { LAYER "rel_attn/LayerNorm/*", TO "rel_attn.layer_norm.*" },
    { LAYER "ff/layer_1/*", TO "ff.layer_1.*" },
    { LAYER "ff/layer_2/*", TO "ff.layer_2.*" },
    { LAYER "ff/LayerNorm/*", TO "ff.layer_norm.*" },
    { "model/lm_loss/bias", "lm_loss.bias" },
    { "model/lm_loss/weight", "lm_loss.weight" },
    { "model/sequnece_summary/summary/*", "sequence_summary.summary.*" }, /* spelled so in the files */
    { "model/classification_%/logit/*", "logits_proj.*" },
    { "model/regression_%/logit/*", "logits_proj.*" },
};

static const ses_tf_class classes[] = {
    { "model/lm_loss/bias", "XLNetLMHeadModel" },
    { NULL, "XLNetModel" },
};

static const char *const renamed[][2] = { { "n_token", "vocab_size" }, { NULL, NULL } };

static bool put_config(const ses_tf_index *x, const ses_json *original, ses_json_writer *w, ses_err *e)
{
    bool untied = true;
    (void)w;
    (void)x;
    if (ses_json_bool(ses_json_get(original, "untie_r"), &untied) && !untied)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "\"untie_r\" is false: only models with biases for each layer are supported");
    return true;
}

const ses_tf_family ses_tf_xlnet = {
    .name = "xlnet",
    .variable = "model/transformer/word_embedding/lookup_table",
    .config = "xlnet_config.json",
    .renamed = renamed,
    .put_config = put_config,
    SES_TF_TABLE(class, n_classes, classes),
    SES_TF_TABLE(rule, n_rules, rules),
};
