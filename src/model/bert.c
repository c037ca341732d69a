/* BERT (Devlin et al. 2018): post-norm encoder, learned positions, two segments. */
#include "model_desc.h"

#include <string.h>

const ses_config_key ses_bert_keys[SES_BERT_KEYS] = {
    SES_NEED("vocab_size", vocab, SES_MOST_TOKENS),
    SES_NEED("hidden_size", hidden, SES_MOST_WIDTH),
    SES_NEED("num_hidden_layers", layers, SES_MAX_LAYERS),
    SES_NEED("num_attention_heads", heads, SES_MOST_WIDTH),
    SES_NEED("intermediate_size", ffn, SES_MOST_FFN),
    SES_NEED("max_position_embeddings", positions, SES_MOST_POSITIONS),
    SES_INT("type_vocab_size", segments, 0, SES_MOST_WIDTH),
    SES_INT("pad_token_id", pad, -1, SES_MOST_TOKENS),
    SES_NUMBER("layer_norm_eps", norm_eps, 0, 1),
    SES_RATE("hidden_dropout_prob", drop),
    SES_RATE("attention_probs_dropout_prob", drop_attention),
    SES_RATE("classifier_dropout", drop_head),
    SES_NUMBER("initializer_range", init_range, 0, 100),
    SES_ACTIVATION("hidden_act", act),
    SES_SWITCH("tie_word_embeddings", tied),
};

const ses_name ses_bert_tensors[SES_BERT_TENSORS] = {
    { "embed.token", "embeddings.word_embeddings.weight" },
    { "embed.position", "embeddings.position_embeddings.weight" },
    { "embed.segment", "embeddings.token_type_embeddings.weight" },
    { "embed.norm.*", "embeddings.LayerNorm.*" },
    { "layer.#.attn.query.*", "encoder.layer.#.attention.self.query.*" },
    { "layer.#.attn.key.*", "encoder.layer.#.attention.self.key.*" },
    { "layer.#.attn.value.*", "encoder.layer.#.attention.self.value.*" },
    { "layer.#.attn.out.*", "encoder.layer.#.attention.output.dense.*" },
    { "layer.#.attn.norm.*", "encoder.layer.#.attention.output.LayerNorm.*" },
    { "layer.#.ffn.up.*", "encoder.layer.#.intermediate.dense.*" },
    { "layer.#.ffn.down.*", "encoder.layer.#.output.dense.*" },
    { "layer.#.ffn.norm.*", "encoder.layer.#.output.LayerNorm.*" },
    { "pooler.*", "pooler.dense.*" },
};

bool ses_bert_finish(ses_config *c, const ses_json *config, ses_err *e)
{
    const char *kind = NULL;
    bool cross = false;
    if (!ses_config_text(config, "position_embedding_type", &kind, e) ||
        !ses_config_bool(config, "is_decoder", &c->causal, e) ||
        !ses_config_bool(config, "add_cross_attention", &cross, e))
        return false;
    if (cross)
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "\"add_cross_attention\" is true: a model that reads another one's output is not supported");
    if (kind && strcmp(kind, "absolute"))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "\"position_embedding_type\" is \"%s\": only \"absolute\" is supported", kind);
    if (c->lm_act == SES_ACT_NONE) c->lm_act = c->act;
    return true;
}

static const ses_config_key keys[] = {
    /* of SpanBERT's head, which the reference does not have */
    SES_INT("span_boundary_places", span_places, 1, SES_MOST_POSITIONS),
    SES_INT("span_boundary_size", span_width, 1, SES_MOST_WIDTH),
};

const ses_name ses_bert_heads[SES_BERT_HEADS] = {
    { "lm.dense.*", "/cls.predictions.transform.dense.*" },
    { "lm.norm.*", "/cls.predictions.transform.LayerNorm.*" },
    { "lm.out.weight", "/cls.predictions.decoder.weight" },
    { "lm.out.bias", "~/cls.predictions.decoder.bias" },
    { "lm.out.bias", "/cls.predictions.bias" },
    { "lm.out.bias", "/cls.predictions.decoder.bias" },
    { "boundary.*", "/cls.span_boundary.*" },
    { "next.*", "/cls.seq_relationship.*" },
    { "classify.out.*", "/classifier.*" },
    { "choice.out.*", "/classifier.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

static const ses_class classes[] = {
    { .name = "BertModel", .pooler = true },
    SES_POOLED("BertForPreTraining", SES_ON(masked_lm, "prediction_logits"),
               SES_ON_PAIRS(next_sentence, "seq_relationship_logits")),
    SES_CLASS("BertForMaskedLM", SES_ON(masked_lm, "logits")),
    SES_CLASS("BertLMHeadModel", SES_ON(causal_lm, "logits")),
    SES_CLASS("SpanBertForPreTraining", SES_ON(masked_lm, "prediction_logits"),
              SES_ON(boundary, "span_boundary_logits")),
    SES_POOLED("BertForNextSentencePrediction", SES_ON(next_sentence, "logits")),
    SES_POOLED("BertForSequenceClassification", SES_ON(classify, "logits")),
    SES_POOLED("BertForMultipleChoice", SES_ON(choice, "logits")),
    SES_CLASS("BertForTokenClassification", SES_ON(tag, "logits")),
    SES_CLASS("BertForQuestionAnswering", SES_ON(span, "")),
};

const ses_model_desc ses_model_bert = {
    .name = "bert",
    .prefix = "bert.",
    .told_segments = true,
    .arch = { .segments = 2,
              .pad = -1,
              .span_places = 20,
              .span_width = 200,
              .norm_eps = 1e-12,
              .drop = 0.1,
              .drop_attention = 0.1,
              .drop_embed = -1,
              .drop_head = -1,
              .init_range = 0.02,
              .act = SES_ACT_GELU,
              .pooler_act = SES_ACT_TANH,
              .embed_norm = true,
              .tied = true,
              .lm_bias = true },
    .keys = { SES_TABLE(ses_bert_keys), SES_TABLE(keys) },
    .finish = ses_bert_finish,
    .tensors = { SES_TABLE(ses_bert_tensors), SES_TABLE(ses_bert_heads) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
