/* GPT-2 (Radford et al. 2019): pre-norm decoder, weights stored [in, out], query, key and value in one.
 * GPT (2018) is the same with the norms after the sublayers. */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_NEED("vocab_size", vocab, SES_MOST_TOKENS),
    SES_NEED("n_embd", hidden, SES_MOST_WIDTH),
    SES_NEED("n_layer", layers, SES_MAX_LAYERS),
    SES_NEED("n_head", heads, SES_MOST_WIDTH),
    SES_NEED("n_positions", positions, SES_MOST_POSITIONS),
    SES_INT("n_inner", ffn, 1, SES_MOST_FFN),
    SES_INT("pad_token_id", pad, -1, SES_MOST_TOKENS),
    SES_NUMBER("layer_norm_epsilon", norm_eps, 0, 1),
    SES_RATE("resid_pdrop", drop),
    SES_RATE("attn_pdrop", drop_attention),
    SES_RATE("embd_pdrop", drop_embed),
    SES_RATE("summary_first_dropout", drop_summary),
    SES_NUMBER("initializer_range", init_range, 0, 100),
    SES_ACTIVATION("activation_function", act),
    SES_ACTIVATION("afn", act),
    SES_ACTIVATION("summary_activation", choice_act),
    SES_SWITCH("scale_attn_by_inverse_layer_idx", scale_by_layer),
    SES_SWITCH("tie_word_embeddings", tied),
};

static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    static const char *const summaries[] = { "cls_index", "last" }; /* what double heads read a choice off */
    bool scaled = true, cross = false;
    size_t kind;
    if (!ses_config_name(config, "summary_type", summaries, SES_LEN(summaries), &kind, e) ||
        !ses_config_bool(config, "scale_attn_weights", &scaled, e) ||
        !ses_config_bool(config, "add_cross_attention", &cross, e))
        return false;
    if (cross)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "\"add_cross_attention\" is true: only the decoder alone is supported");
    if (!c->ffn) c->ffn = 4 * c->hidden;
    if (!scaled) c->attention_scale = 1;
    return true;
}

/* In GPT's config "gelu" means what others call "gelu_new". */
static bool finish_gpt(ses_config *c, const ses_json *config, ses_err *e)
{
    if (c->act == SES_ACT_GELU) c->act = SES_ACT_GELU_TANH;
    return finish(c, config, e);
}

static const ses_name tensors[] = {
    { "embed.token", "wte.weight" },
    { "embed.position", "wpe.weight" },
    { "layer.#.attn.norm.*", "h.#.ln_1.*" },
    { "layer.#.attn.qkv.*", "h.#.attn.c_attn.*" },
    { "layer.#.attn.out.*", "h.#.attn.c_proj.*" },
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

static const ses_name tensors_gpt[] = {
    /* before the ones above */
    { "embed.token", "tokens_embed.weight" },
    { "embed.position", "positions_embed.weight" },
};

/* One head continues the text, the other scores it among several by the token the batch names. */
#define DOUBLE_HEADS(class)                                                                \
    {                                                                                      \
        .name = class, .summary = SES_SUMMARY_PLACE, .head = {                             \
            SES_ON(causal_lm, "logits"),                                                   \
            { &ses_head_choice, "mc_logits", offsetof(ses_batch, pair_labels), "mc_loss" } \
        }                                                                                  \
    }

static const ses_class classes[] = {
    { .name = "GPT2Model" },
    SES_CLASS("GPT2LMHeadModel", SES_ON(causal_lm, "logits")),
    DOUBLE_HEADS("GPT2DoubleHeadsModel"),
    SES_CLASS("GPT2ForSequenceClassification", SES_ON(classify, "logits")),
    SES_CLASS("GPT2ForTokenClassification", SES_ON(tag, "logits")),
    SES_CLASS("GPT2ForQuestionAnswering", SES_ON(span, "")),
};

static const ses_class classes_gpt[] = {
    { .name = "OpenAIGPTModel" },
    SES_CLASS("OpenAIGPTLMHeadModel", SES_ON(causal_lm, "logits")),
    DOUBLE_HEADS("OpenAIGPTDoubleHeadsModel"),
    SES_CLASS("OpenAIGPTForSequenceClassification", SES_ON(classify, "logits")),
};

const ses_model_desc ses_model_gpt2 = {
    .name = "gpt2",
    .prefix = "transformer.",
    .arch = { .pad = -1,
              .norm_eps = 1e-5,
              .drop = 0.1,
              .drop_attention = 0.1,
              .drop_embed = 0.1,
              .drop_head = 0.1,
              .init_range = 0.02,
              .act = SES_ACT_GELU_TANH,
              .place = SES_PRE_NORM,
              .qkv = SES_QKV_SIDE,
              .summary = SES_SUMMARY_LAST,
              .final_norm = true,
              .in_out = true,
              .no_summary_bias = true,
              .causal = true,
              .lm_plain = true,
              .tied = true,
              .pad_learns = true },
    .keys = { SES_TABLE(keys) },
    .finish = finish,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};

const ses_model_desc ses_model_openai_gpt = {
    .name = "openai-gpt",
    .prefix = "transformer.",
    .arch = { .pad = -1,
              .norm_eps = 1e-5,
              .drop = 0.1,
              .drop_attention = 0.1,
              .drop_embed = 0.1,
              .drop_head = 0.1,
              .init_range = 0.02,
              .act = SES_ACT_GELU_TANH,
              .place = SES_POST_NORM,
              .qkv = SES_QKV_SIDE,
              .summary = SES_SUMMARY_LAST,
              .in_out = true,
              .no_summary_bias = true,
              .causal = true,
              .lm_plain = true,
              .tied = true,
              .pad_learns = true },
    .keys = { SES_TABLE(keys) },
    .finish = finish_gpt,
    .tensors = { SES_TABLE(tensors_gpt), SES_TABLE(tensors) },
    .class = classes_gpt,
    .n_classes = SES_LEN(classes_gpt),
};
