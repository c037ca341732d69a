/* XLM (Lample and Conneau 2019): post-norm encoder with language embeddings (the batch's segments are
 * language ids). */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_KEY_INTEGER("vocab_size", vocab, 1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("n_words", vocab, 1, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("emb_dim", hidden, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("n_layers", layers, SES_MAX_LAYERS),
    SES_KEY_REQUIRED("n_heads", attention.heads, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("max_position_embeddings", position.max, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("n_langs", embed.segments, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("pad_index", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_NUMBER("layer_norm_eps", norm.eps, 0, 1),
    SES_KEY_RATE("dropout", dropout.hidden),
    SES_KEY_RATE("attention_dropout", dropout.attention),
    SES_KEY_RATE("summary_first_dropout", dropout.head),
    SES_KEY_NUMBER("init_std", init.range, 0, 100),
    SES_KEY_ACTIVATION("summary_activation", head.score_act),
    SES_KEY_FLAG("causal", attention.causal),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
    SES_KEY_INTEGER("start_n_top", head.start_n_top, 1, SES_MAX_BEAM),
    SES_KEY_INTEGER("end_n_top", head.end_n_top, 1, SES_MAX_BEAM),
};

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    static const char *const summaries[] = { "first", "last", "mean", "cls_index" };
    static const ses_summary summary[] = { SES_SUMMARY_FIRST, SES_SUMMARY_LAST_TOKEN, SES_SUMMARY_MEAN,
                                           SES_SUMMARY_LAST_TOKEN };
    bool gelu = true, lang_embeddings = true, adaptive = false, project = true, to_labels = true;
    size_t kind;
    if (!ses_config_bool(config, "summary_use_proj", &project, e) ||
        !ses_config_bool(config, "summary_proj_to_labels", &to_labels, e) ||
        !ses_config_bool(config, "gelu_activation", &gelu, e) ||
        !ses_config_bool(config, "use_lang_emb", &lang_embeddings, e) ||
        !ses_config_bool(config, "asm", &adaptive, e))
        return false;
    if (adaptive) return ses_fail(e, SES_EUNSUPPORTED, "\"asm\" is true: adaptive softmax is not supported");
    if (!project || !to_labels)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "\"%s\" is false: a summary without label scores is not supported",
                        project ? "summary_proj_to_labels" : "summary_use_proj");
    if (!ses_config_name(config, "summary_type", summaries, SES_LEN(summaries), &kind, e)) return false;
    c->summary.kind = summary[kind];
    if (!c->vocab) return ses_fail(e, SES_EFORMAT, "\"vocab_size\" is missing");
    if (!lang_embeddings || c->embed.segments < 2) c->embed.segments = 0;
    c->ffn.act = gelu ? SES_ACT_GELU : SES_ACT_RELU;
    c->ffn.width = 4 * c->hidden;
    return true;
}

static const ses_tensor_name tensors[] = {
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
    { "beam.start.*", "/qa_outputs.start_logits.dense.*" },
    { "beam.end.dense.*", "/qa_outputs.end_logits.dense_0.*" },
    { "beam.end.norm.*", "/qa_outputs.end_logits.LayerNorm.*" },
    { "beam.end.out.*", "/qa_outputs.end_logits.dense_1.*" },
    { "beam.none.dense.*", "/qa_outputs.answer_class.dense_0.*" },
    { "beam.none.out.*", "/qa_outputs.answer_class.dense_1.*" },
};

static const ses_class classes[] = {
    { .name = "XLMModel" },
    SES_CLASS("XLMWithLMHeadModel", SES_USE_HEAD(masked_lm, "logits")),
    SES_CLASS("XLMForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("XLMForMultipleChoice", SES_USE_HEAD(multiple_choice, "logits")),
    SES_CLASS("XLMForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("XLMForQuestionAnsweringSimple", SES_USE_HEAD(question_answering, "")),
    SES_CLASS("XLMForQuestionAnswering", SES_USE_PAIR_HEAD(answer_beam, "")),
};

static const char *const reads[] = { "summary_type", NULL };

const ses_model_desc ses_model_xlm = {
    .name = "xlm",
    .prefix = "transformer.",
    .defaults = { .pad_id = 2,
                  .norm.eps = 1e-12,
                  .dropout.hidden = 0.1,
                  .dropout.attention = 0.1,
                  .dropout.embed = -1,
                  .dropout.head = 0.1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_GELU,
                  .embed.norm = true,
                  .summary.no_proj = true,
                  .head.choice_from_labels = true,
                  .head.start_n_top = 5,
                  .head.end_n_top = 5,
                  .lm.no_transform = true,
                  .lm.bias = true,
                  .embed.tied = true },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .reads = reads,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
