/* XLM (Lample and Conneau 2019): post-norm encoder that is told each token's language (in the batch's
 * segments). */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_INT("vocab_size", vocab, 1, SES_MOST_TOKENS),
    SES_INT("n_words", vocab, 1, SES_MOST_TOKENS),
    SES_NEED("emb_dim", hidden, SES_MOST_WIDTH),
    SES_NEED("n_layers", layers, SES_MAX_LAYERS),
    SES_NEED("n_heads", heads, SES_MOST_WIDTH),
    SES_NEED("max_position_embeddings", positions, SES_MOST_POSITIONS),
    SES_INT("n_langs", segments, 1, SES_MOST_WIDTH),
    SES_INT("pad_token_id", pad, -1, SES_MOST_TOKENS),
    SES_INT("pad_index", pad, -1, SES_MOST_TOKENS),
    SES_NUMBER("layer_norm_eps", norm_eps, 0, 1),
    SES_RATE("dropout", drop),
    SES_RATE("attention_dropout", drop_attention),
    SES_RATE("summary_first_dropout", drop_head),
    SES_NUMBER("init_std", init_range, 0, 100),
    SES_ACTIVATION("summary_activation", score_act),
    SES_SWITCH("causal", causal),
    SES_SWITCH("tie_word_embeddings", tied),
};

static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    static const char *const summaries[] = { "first", "last", "mean", "cls_index" };
    static const ses_summary summary[] = { SES_SUMMARY_FIRST, SES_SUMMARY_END, SES_SUMMARY_MEAN,
                                           SES_SUMMARY_END };
    bool gelu = true, told = true, adaptive = false, project = true, to_labels = true;
    size_t kind;
    if (!ses_config_bool(config, "summary_use_proj", &project, e) ||
        !ses_config_bool(config, "summary_proj_to_labels", &to_labels, e) ||
        !ses_config_bool(config, "gelu_activation", &gelu, e) ||
        !ses_config_bool(config, "use_lang_emb", &told, e) || !ses_config_bool(config, "asm", &adaptive, e))
        return false;
    if (adaptive) return ses_fail(e, SES_EUNSUPPORTED, "\"asm\" is true: adaptive softmax is not supported");
    if (!project || !to_labels)
        return ses_fail(e, SES_EUNSUPPORTED, "\"%s\" is false: a summary that is no label is not supported",
                        project ? "summary_proj_to_labels" : "summary_use_proj");
    if (!ses_config_name(config, "summary_type", summaries, SES_LEN(summaries), &kind, e)) return false;
    c->summary = summary[kind];
    if (!c->vocab) return ses_fail(e, SES_EFORMAT, "\"vocab_size\" is missing");
    if (!told || c->segments < 2) c->segments = 0;
    c->act = gelu ? SES_ACT_GELU : SES_ACT_RELU;
    c->ffn = 4 * c->hidden;
    return true;
}

static const ses_name tensors[] = {
    { "embed.token", "embeddings.weight" },
    { "embed.position", "position_embeddings.weight" },
    { "embed.segment", "lang_embeddings.weight" },
    { "embed.norm.*", "layer_norm_emb.*" },
    { "layer.#.attn.query.*", "attentions.#.q_lin.*" },
    { "layer.#.attn.key.*", "attentions.#.k_lin.*" },
    { "layer.#.attn.value.*", "attentions.#.v_lin.*" },
    { "layer.#.attn.out.*", "attentions.#.out_lin.*" },
    { "layer.#.attn.norm.*", "layer_norm1.#.*" },
    { "layer.#.ffn.up.*", "ffns.#.lin1.*" },
    { "layer.#.ffn.down.*", "ffns.#.lin2.*" },
    { "layer.#.ffn.norm.*", "layer_norm2.#.*" },
    { "lm.out.weight", "/pred_layer.proj.weight" },
    { "lm.out.bias", "/pred_layer.proj.bias" },
    { "classify.out.*", "/sequence_summary.summary.*" },
    { "choice.labels.*", "/sequence_summary.summary.*" },
    { "choice.out.*", "/logits_proj.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

static const ses_class classes[] = {
    { .name = "XLMModel" },
    SES_CLASS("XLMWithLMHeadModel", SES_ON(masked_lm, "logits")),
    SES_CLASS("XLMForSequenceClassification", SES_ON(classify, "logits")),
    SES_CLASS("XLMForMultipleChoice", SES_ON(choice, "logits")),
    SES_CLASS("XLMForTokenClassification", SES_ON(tag, "logits")),
    SES_CLASS("XLMForQuestionAnsweringSimple", SES_ON(span, "")),
};

const ses_model_desc ses_model_xlm = {
    .name = "xlm",
    .prefix = "transformer.",
    .arch = { .pad = 2,
              .norm_eps = 1e-12,
              .drop = 0.1,
              .drop_attention = 0.1,
              .drop_embed = -1,
              .drop_head = 0.1,
              .init_range = 0.02,
              .act = SES_ACT_GELU,
              .embed_norm = true,
              .summary_plain = true,
              .choice_by_label = true,
              .lm_plain = true,
              .lm_bias = true,
              .tied = true },
    .keys = { SES_TABLE(keys) },
    .finish = finish,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
