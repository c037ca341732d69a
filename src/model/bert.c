/* BERT (Devlin et al. 2018): post-norm encoder, learned positions, two segments. */
#include "desc.h"

#include <string.h>

#define INT(key, field, min, max, required, fallback)                               \
    {                                                                               \
        key, SES_KEY_INT, offsetof(ses_config, field), min, max, required, fallback \
    }
#define REAL(key, field, min, max, fallback)                                      \
    {                                                                             \
        key, SES_KEY_REAL, offsetof(ses_config, field), min, max, false, fallback \
    }

static const ses_config_key keys[] = {
    INT("vocab_size", vocab, 1, 1 << 24, true, 0),
    INT("hidden_size", hidden, 1, 1 << 16, true, 0),
    INT("num_hidden_layers", layers, 1, 1024, true, 0),
    INT("num_attention_heads", heads, 1, 1 << 16, true, 0),
    INT("intermediate_size", ffn, 1, 1 << 20, true, 0),
    INT("max_position_embeddings", positions, 1, 1 << 20, true, 0),
    INT("type_vocab_size", segments, 1, 1 << 16, false, 2),
    INT("pad_token_id", pad, -1, 1 << 24, false, -1),
    REAL("layer_norm_eps", norm_eps, 0, 1, 1e-12),
    REAL("hidden_dropout_prob", drop, 0, 0.999, 0.1),
    REAL("attention_probs_dropout_prob", drop_attention, 0, 0.999, 0.1),
    REAL("classifier_dropout", drop_head, 0, 0.999, -1),
    REAL("initializer_range", init_range, 0, 100, 0.02),
    { "hidden_act", SES_KEY_ACT, offsetof(ses_config, act), 0, 0, false, SES_ACT_GELU },
    { "tie_word_embeddings", SES_KEY_BOOL, offsetof(ses_config, tied), 0, 1, false, true },
};

static const ses_name tensors[] = {
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
    /* heads: no prefix */
    { "lm.dense.*", "/cls.predictions.transform.dense.*" },
    { "lm.norm.*", "/cls.predictions.transform.LayerNorm.*" },
    { "lm.out.weight", "/cls.predictions.decoder.weight" },
    { "lm.out.bias", "/cls.predictions.bias" },
    { "next.*", "/cls.seq_relationship.*" },
    { "classify.*", "/classifier.*" },
    { "choice.*", "/classifier.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

#define LABELS offsetof(ses_batch, labels)
static const ses_class classes[] = {
    { "BertModel", true, { { 0 } } },
    { "BertForPreTraining",
      true,
      { { &ses_head_masked_lm, "prediction_logits", LABELS },
        { &ses_head_next_sentence, "seq_relationship_logits", offsetof(ses_batch, pair_labels) } } },
    { "BertForMaskedLM", false, { { &ses_head_masked_lm, "logits", LABELS } } },
    { "BertForNextSentencePrediction", true, { { &ses_head_next_sentence, "logits", LABELS } } },
    { "BertForSequenceClassification", true, { { &ses_head_classify, "logits", LABELS } } },
    { "BertForMultipleChoice", true, { { &ses_head_choice, "logits", LABELS } } },
    { "BertForTokenClassification", false, { { &ses_head_tag, "logits", LABELS } } },
    { "BertForQuestionAnswering", false, { { &ses_head_span, "", LABELS } } },
};

static bool check(const ses_config *c, const ses_json *config, ses_err *e)
{
    const char *kind = ses_json_string(ses_json_get(config, "position_embedding_type"), NULL);
    bool decoder = false;
    ses_json_bool(ses_json_get(config, "is_decoder"), &decoder);
    if (decoder)
        return ses_fail(e, SES_EUNSUPPORTED, "\"is_decoder\" is true: only the encoder is supported");
    if (kind && strcmp(kind, "absolute"))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "\"position_embedding_type\" is \"%s\": only \"absolute\" is supported", kind);
    if (c->hidden % c->heads)
        return ses_fail(e, SES_EARG,
                        "\"hidden_size\" %lld cannot be split among \"num_attention_heads\" %lld",
                        (long long)c->hidden, (long long)c->heads);
    if (c->pad >= c->vocab)
        return ses_fail(e, SES_EARG, "\"pad_token_id\" %lld is outside the vocabulary of %lld",
                        (long long)c->pad, (long long)c->vocab);
    return true;
}

const ses_model_desc ses_model_bert = {
    .name = "bert",
    .prefix = "bert.",
    .key = keys,
    .n_keys = SES_LEN(keys),
    .check = check,
    .tensor = tensors,
    .n_tensors = SES_LEN(tensors),
    .class = classes,
    .n_classes = SES_LEN(classes),
};
