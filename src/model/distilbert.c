/* DistilBERT (Sanh et al. 2019): BERT without segments and pooler. */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("dim", hidden, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("n_layers", layers, SES_MAX_LAYERS),
    SES_KEY_REQUIRED("n_heads", attention.heads, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("hidden_dim", ffn.width, SES_MAX_FFN),
    SES_KEY_REQUIRED("max_position_embeddings", position.max, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_RATE("dropout", dropout.hidden),
    SES_KEY_RATE("attention_dropout", dropout.attention),
    SES_KEY_RATE("seq_classif_dropout", dropout.head),
    SES_KEY_RATE("qa_dropout", dropout.span),
    SES_KEY_NUMBER("initializer_range", init.range, 0, 100),
    SES_KEY_ACTIVATION("activation", ffn.act),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
};

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    (void)config, (void)e;
    c->lm.act = c->ffn.act;
    return true;
}

static const ses_tensor_name tensors[] = {
    { "embed.token", "embeddings.word_embeddings.weight" },
    { "embed.position", "embeddings.position_embeddings.weight" },
    { "embed.norm.*", "embeddings.LayerNorm.*" },
    { "layer.#.attn.query.*", "transformer.layer.#.attention.q_lin.*" },
    { "layer.#.attn.key.*", "transformer.layer.#.attention.k_lin.*" },
    { "layer.#.attn.value.*", "transformer.layer.#.attention.v_lin.*" },
    { "layer.#.attn.out.*", "transformer.layer.#.attention.out_lin.*" },
    { "layer.#.attn.norm.*", "transformer.layer.#.sa_layer_norm.*" },
    { "layer.#.ffn.up.*", "transformer.layer.#.ffn.lin1.*" },
    { "layer.#.ffn.down.*", "transformer.layer.#.ffn.lin2.*" },
    { "layer.#.ffn.norm.*", "transformer.layer.#.output_layer_norm.*" },
    { "lm.dense.*", "/vocab_transform.*" },
    { "lm.norm.*", "/vocab_layer_norm.*" },
    { "lm.out.weight", "/vocab_projector.weight" },
    { "lm.out.bias", "/vocab_projector.bias" },
    { "classify.dense.*", "/pre_classifier.*" },
    { "classify.out.*", "/classifier.*" },
    { "choice.dense.*", "/pre_classifier.*" },
    { "choice.out.*", "/classifier.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

static const ses_class classes[] = {
    { .name = "DistilBertModel" },
    SES_CLASS("DistilBertForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_CLASS("DistilBertForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("DistilBertForMultipleChoice", SES_USE_HEAD(multiple_choice, "logits")),
    SES_CLASS("DistilBertForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("DistilBertForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
};

const ses_model_desc ses_model_distilbert = {
    .name = "distilbert",
    .prefix = "distilbert.",
    .defaults = { .pad_id = 0,
                  .norm.eps = 1e-12,
                  .dropout.hidden = 0.1,
                  .dropout.attention = 0.1,
                  .dropout.embed = -1,
                  .dropout.head = 0.2,
                  .dropout.span = 0.1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_GELU,
                  .summary.act = SES_ACT_RELU,
                  .embed.norm = true,
                  .embed.tied = true,
                  .lm.bias = true },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
