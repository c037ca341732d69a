/* DistilBERT (Sanh et al. 2019): BERT without segments and pooler. */
#include "model_desc.h"

static const ses_config_key keys[] = {
    SES_NEED("vocab_size", vocab, SES_MOST_TOKENS),
    SES_NEED("dim", hidden, SES_MOST_WIDTH),
    SES_NEED("n_layers", layers, SES_MAX_LAYERS),
    SES_NEED("n_heads", heads, SES_MOST_WIDTH),
    SES_NEED("hidden_dim", ffn, SES_MOST_FFN),
    SES_NEED("max_position_embeddings", positions, SES_MOST_POSITIONS),
    SES_INT("pad_token_id", pad, -1, SES_MOST_TOKENS),
    SES_RATE("dropout", drop),
    SES_RATE("attention_dropout", drop_attention),
    SES_RATE("seq_classif_dropout", drop_head),
    SES_RATE("qa_dropout", drop_span),
    SES_NUMBER("initializer_range", init_range, 0, 100),
    SES_ACTIVATION("activation", act),
    SES_SWITCH("tie_word_embeddings", tied),
};

static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    (void)config, (void)e;
    c->lm_act = c->act;
    return true;
}

static const ses_name tensors[] = {
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
    SES_CLASS("DistilBertForMaskedLM", SES_ON(masked_lm, "logits")),
    SES_CLASS("DistilBertForSequenceClassification", SES_ON(classify, "logits")),
    SES_CLASS("DistilBertForMultipleChoice", SES_ON(choice, "logits")),
    SES_CLASS("DistilBertForTokenClassification", SES_ON(tag, "logits")),
    SES_CLASS("DistilBertForQuestionAnswering", SES_ON(span, "")),
};

const ses_model_desc ses_model_distilbert = {
    .name = "distilbert",
    .prefix = "distilbert.",
    .arch = { .pad = 0,
              .norm_eps = 1e-12,
              .drop = 0.1,
              .drop_attention = 0.1,
              .drop_embed = -1,
              .drop_head = 0.2,
              .drop_span = 0.1,
              .init_range = 0.02,
              .act = SES_ACT_GELU,
              .summary_act = SES_ACT_RELU,
              .embed_norm = true,
              .tied = true,
              .lm_bias = true },
    .keys = { SES_TABLE(keys) },
    .finish = finish,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
