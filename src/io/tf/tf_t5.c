/* T5 and mT5: model.ckpt-STEP of mesh-tensorflow, without a config in JSON: the sizes follow from the shapes.
 * Version 1.1 calls the norms rms_norm, and has gated feed-forward layers and its own output weights. */
#include "tf_family.h"

#define NORM(from, to) \
    { from "/layer_norm/scale", to }, { from "/rms_norm/scale", to }
#define ATTENTION(from, to)                                                                           \
    { from "/q", to ".q.weight", SES_TF_TRANSPOSE }, { from "/k", to ".k.weight", SES_TF_TRANSPOSE }, \
        { from "/v", to ".v.weight", SES_TF_TRANSPOSE },                                              \
    {                                                                                                 \
        from "/o", to ".o.weight", SES_TF_TRANSPOSE                                                   \
    }
#define FEED_FORWARD(from, to) \
    { from "/wi/*", to ".wi.*" }, { from "/wi_@/*", to ".wi_@.*" }, { from "/wo/*", to ".wo.*" }
#define SELF "SelfAttention"
#define CROSS "EncDecAttention"
#define DENSE "DenseReluDense"
#define STACK(from, to, last)                                                                       \
    NORM(from "/block_#/layer_000", to ".block.#.layer.0.layer_norm.weight"),                       \
        ATTENTION(from "/block_#/layer_000/" SELF, to ".block.#.layer.0." SELF),                    \
        { from "/block_000/layer_000/" SELF "/relative_attention_bias",                             \
          to ".block.0.layer.0." SELF ".relative_attention_bias.weight", SES_TF_TRANSPOSE },        \
        NORM(from "/block_#/layer_00" last, to ".block.#.layer." last ".layer_norm.weight"),        \
        FEED_FORWARD(from "/block_#/layer_00" last "/" DENSE, to ".block.#.layer." last "." DENSE), \
        { from "/final_layer_norm/scale", to ".final_layer_norm.weight" },                          \
        NORM(from, to ".final_layer_norm.weight")

static const ses_tf_rule rules[] = {
    { "shared/embedding", "shared.weight" },
    STACK("encoder", "encoder", "1"),
    STACK("decoder", "decoder", "2"),
    NORM("decoder/block_#/layer_001", "decoder.block.#.layer.1.layer_norm.weight"),
    ATTENTION("decoder/block_#/layer_001/" CROSS, "decoder.block.#.layer.1." CROSS),
    { "decoder/block_#/layer_001/" CROSS "/relative_attention_bias", NULL }, /* never read */
    { "decoder/logits/kernel", "lm_head.weight", SES_TF_TRANSPOSE },
};

static const ses_tf_class classes[] = { { NULL, "T5ForConditionalGeneration" } };

#define BIAS "encoder/block_000/layer_000/" SELF "/relative_attention_bias"
#define FFN "encoder/block_000/layer_001/" DENSE
static const ses_tf_size sizes[] = {
    { "vocab_size", "shared/embedding", 0 },
    { "d_model", "shared/embedding", 1 },
    { "d_ff", FFN "/wi/kernel", 1 },
    { "d_ff", FFN "/wi_0/kernel", 1 },
    { "num_heads", BIAS, 0 },
    { "relative_attention_num_buckets", BIAS, 1 },
    { "num_layers", "encoder/block_#/layer_000/" SELF "/q", -1 },
    { "num_decoder_layers", "decoder/block_#/layer_000/" SELF "/q", -1 },
};

static bool put_config(const ses_tf_index *x, const ses_json *original, ses_json_writer *w, ses_err *e)
{
    const ses_tf_tensor *bias = ses_tf_find(x, BIAS),
                        *query = ses_tf_find(x, "encoder/block_000/layer_000/" SELF "/q");
    (void)original;
    if (!bias || bias->rank != 2 || !bias->dim[0] || !query || query->rank != 2)
        return ses_fail(e, SES_EFORMAT, "variable \"%s\" missing, or not of two axes",
                        bias && bias->rank == 2 ? "encoder/block_000/layer_000/" SELF "/q" : BIAS);
    ses_json_member_int(w, "d_kv", query->dim[1] / bias->dim[0]);
    ses_json_member_string(w, "feed_forward_proj",
                           ses_tf_find(x, FFN "/wi_0/kernel") ? "gated-gelu" : "relu");
    ses_json_member_bool(w, "tie_word_embeddings", !ses_tf_find(x, "decoder/logits/kernel"));
    return true;
}

const ses_tf_family ses_tf_t5 = {
    .name = "t5",
    .variable = "shared/embedding",
    .constants = "{\"decoder_start_token_id\": 0, \"pad_token_id\": 0, \"eos_token_id\": 1, "
                 "\"is_encoder_decoder\": true}",
    .put_config = put_config,
    SES_TF_TABLE(size, n_sizes, sizes),
    SES_TF_TABLE(class, n_classes, classes),
    SES_TF_TABLE(rule, n_rules, rules),
};
