/* GPT-2 (Radford et al. 2019): pre-norm decoder, weights stored [in, out], query, key and value in one
 * matrix. GPT (2018) is the same network with post-norm. */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("n_embd", hidden, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("n_layer", layers, SES_MAX_LAYERS),
    SES_KEY_REQUIRED("n_head", attention.heads, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("n_positions", position.max, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("n_inner", ffn.width, 1, SES_MAX_FFN),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_NUMBER("layer_norm_epsilon", norm.eps, 0, 1),
    SES_KEY_RATE("resid_pdrop", dropout.hidden),
    SES_KEY_RATE("attn_pdrop", dropout.attention),
    SES_KEY_RATE("embd_pdrop", dropout.embed),
    SES_KEY_RATE("summary_first_dropout", dropout.summary_first),
    SES_KEY_NUMBER("initializer_range", init.range, 0, 100),
    SES_KEY_ACTIVATION("activation_function", ffn.act),
    SES_KEY_ACTIVATION("afn", ffn.act),
    SES_KEY_ACTIVATION("summary_activation", head.choice_act),
    SES_KEY_FLAG("scale_attn_by_inverse_layer_idx", attention.scale_by_layer),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
};

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    /* summary token of the double heads model */
    static const char *const summaries[] = { "cls_index", "last" };
    bool scaled = true;
    size_t kind;
    if (!ses_config_name(config, "summary_type", summaries, SES_LEN(summaries), &kind, e) ||
        !ses_config_bool(config, "scale_attn_weights", &scaled, e) ||
        !ses_config_bool(config, "add_cross_attention", &c->attention.cross, e))
        return false;
    if (!c->ffn.width) c->ffn.width = 4 * c->hidden;
    if (!scaled) c->attention.scale = 1;
    return true;
}

/* In GPT's config "gelu" means "gelu_new". */
static bool post_read_gpt(ses_config *c, const ses_json *config, ses_err *e)
{
    if (c->ffn.act == SES_ACT_GELU) c->ffn.act = SES_ACT_GELU_TANH;
    return post_read(c, config, e);
}

static const ses_tensor_name tensors[] = {
    { "embed.token", "wte.weight" },
    { "embed.position", "wpe.weight" },
    { "layer.#.attn.norm.*", "h.#.ln_1.*" },
    { "layer.#.attn.qkv.*", "h.#.attn.c_attn.*" },
    { "layer.#.attn.out.*", "h.#.attn.c_proj.*" },
    { "layer.#.cross.norm.*", "h.#.ln_cross_attn.*" },
    { "layer.#.cross.query.*", "h.#.crossattention.q_attn.*" },
    { "layer.#.cross.kv.*", "h.#.crossattention.c_attn.*" },
    { "layer.#.cross.out.*", "h.#.crossattention.c_proj.*" },
    { "layer.#.ffn.norm.*", "h.#.ln_2.*" },
    { "layer.#.ffn.up.*", "h.#.mlp.c_fc.*" },
    { "layer.#.ffn.down.*", "h.#.mlp.c_proj.*" },
    { "final_norm.*", "ln_f.*" },
    { "lm.out.weight", "/lm_head.weight" },
    { "classify.out.*", "/score.*" },
    { "choice.out.*", "/multiple_choice_head.summary.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

static const ses_tensor_name tensors_gpt[] = {
    /* searched before the table above */
    { "embed.token", "tokens_embed.weight" },
    { "embed.position", "positions_embed.weight" },
};

/* One head is the LM, the other scores multiple choices by the token at choice_positions. */
#define DOUBLE_HEADS(class)                                                                         \
    {                                                                                               \
        .name = class, .summary = SES_SUMMARY_CLS_INDEX, .head = {                                  \
            SES_USE_HEAD(causal_lm, "logits"),                                                      \
            { &ses_head_multiple_choice, "mc_logits", offsetof(ses_batch, pair_labels), "mc_loss" } \
        }                                                                                           \
    }

static const ses_class classes[] = {
    { .name = "GPT2Model" },
    SES_CLASS("GPT2LMHeadModel", SES_USE_HEAD(causal_lm, "logits")),
    DOUBLE_HEADS("GPT2DoubleHeadsModel"),
    SES_CLASS("GPT2ForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("GPT2ForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("GPT2ForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
};

static const ses_class classes_gpt[] = {
    { .name = "OpenAIGPTModel" },
    SES_CLASS("OpenAIGPTLMHeadModel", SES_USE_HEAD(causal_lm, "logits")),
    DOUBLE_HEADS("OpenAIGPTDoubleHeadsModel"),
    SES_CLASS("OpenAIGPTForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
};

static const char *const reads[] = { "summary_type", "scale_attn_weights", "add_cross_attention", NULL };

const ses_model_desc ses_model_gpt2 = {
    .name = "gpt2",
    .prefix = "transformer.",
    .defaults = { .pad_id = -1,
                  .norm.eps = 1e-5,
                  .dropout.hidden = 0.1,
                  .dropout.attention = 0.1,
                  .dropout.embed = 0.1,
                  .dropout.head = 0.1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_GELU_TANH,
                  .norm.placement = SES_PRE_NORM,
                  .attention.qkv_layout = SES_QKV_FUSED,
                  .summary.kind = SES_SUMMARY_LAST_NON_PAD,
                  .norm.after_last_layer = true,
                  .weights_in_out = true,
                  .head.no_classifier_bias = true,
                  .attention.causal = true,
                  .lm.no_transform = true,
                  .embed.tied = true,
                  .embed.train_pad = true },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .reads = reads,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};

const ses_model_desc ses_model_openai_gpt = {
    .name = "openai-gpt",
    .prefix = "transformer.",
    .defaults = { .pad_id = -1,
                  .norm.eps = 1e-5,
                  .dropout.hidden = 0.1,
                  .dropout.attention = 0.1,
                  .dropout.embed = 0.1,
                  .dropout.head = 0.1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_GELU_TANH,
                  .norm.placement = SES_POST_NORM,
                  .attention.qkv_layout = SES_QKV_FUSED,
                  .summary.kind = SES_SUMMARY_LAST_NON_PAD,
                  .weights_in_out = true,
                  .head.no_classifier_bias = true,
                  .attention.causal = true,
                  .lm.no_transform = true,
                  .embed.tied = true,
                  .embed.train_pad = true },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read_gpt,
    .reads = reads,
    .tensors = { SES_TABLE(tensors_gpt), SES_TABLE(tensors) },
    .class = classes_gpt,
    .n_classes = SES_LEN(classes_gpt),
};
