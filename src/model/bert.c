/* BERT (Devlin et al. 2018): post-norm encoder with learned positions and two segments. */
#include "model_desc.h"

const ses_config_key ses_bert_keys[SES_BERT_KEYS] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("hidden_size", hidden, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("num_hidden_layers", layers, SES_MAX_LAYERS),
    SES_KEY_REQUIRED("num_attention_heads", attention.heads, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("intermediate_size", ffn.width, SES_MAX_FFN),
    SES_KEY_REQUIRED("max_position_embeddings", position.max, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("type_vocab_size", embed.segments, 0, SES_MAX_WIDTH),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_NUMBER("layer_norm_eps", norm.eps, 0, 1),
    SES_KEY_RATE("hidden_dropout_prob", dropout.hidden),
    SES_KEY_RATE("attention_probs_dropout_prob", dropout.attention),
    SES_KEY_RATE("classifier_dropout", dropout.head),
    SES_KEY_NUMBER("initializer_range", init.range, 0, 100),
    SES_KEY_ACTIVATION("hidden_act", ffn.act),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
    SES_KEY_FLAG("is_decoder", attention.causal),
};

const ses_tensor_name ses_bert_tensors[SES_BERT_TENSORS] = {
    { "embed.token", "embeddings.word_embeddings.weight" },
    { "embed.position", "embeddings.position_embeddings.weight" },
    { "embed.segment", "embeddings.token_type_embeddings.weight" },
    { "embed.norm.*", "embeddings.LayerNorm.*" },
    { "layer.#.attn.query.*", "encoder.layer.#.attention.self.query.*" },
    { "layer.#.attn.key.*", "encoder.layer.#.attention.self.key.*" },
    { "layer.#.attn.value.*", "encoder.layer.#.attention.self.value.*" },
    { "layer.#.attn.qkv.*", "encoder.layer.#.attention.self.qkv.*" }, /* rotary positions */
    { "layer.#.attn.distance", "encoder.layer.#.attention.self.distance_embedding.weight" },
    { "layer.#.attn.out.*", "encoder.layer.#.attention.output.dense.*" },
    { "layer.#.cross.query.*", "encoder.layer.#.crossattention.self.query.*" },
    { "layer.#.cross.key.*", "encoder.layer.#.crossattention.self.key.*" },
    { "layer.#.cross.value.*", "encoder.layer.#.crossattention.self.value.*" },
    { "layer.#.cross.out.*", "encoder.layer.#.crossattention.output.dense.*" },
    { "layer.#.cross.norm.*", "encoder.layer.#.crossattention.output.LayerNorm.*" },
    { "layer.#.ffn.up.*", "encoder.layer.#.intermediate.dense.*" },
    { "layer.#.ffn.down.*", "encoder.layer.#.output.dense.*" },
    { "pooler.*", "pooler.dense.*" },
};

const ses_tensor_name ses_bert_norms[SES_BERT_NORMS] = {
    { "layer.#.attn.norm.*", "encoder.layer.#.attention.output.LayerNorm.*" },
    { "layer.#.ffn.norm.*", "encoder.layer.#.output.LayerNorm.*" },
    { "final_norm.*", "encoder.LayerNorm.*" }, /* pre-norm */
};

bool ses_bert_post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    (void)config, (void)e;
    if (c->lm.act == SES_ACT_NONE) c->lm.act = c->ffn.act;
    return true;
}

/* Rotary positions and norms before the sublayers: a network that learns from little text, with the heads of
 * BERT. transformers has no such BERT. */
static bool read_modern(ses_config *c, const ses_json *config, ses_err *e)
{
    static const char *const placements[] = { "post", "pre" };
    size_t pre;
    if (!ses_config_name(config, "norm_placement", placements, SES_LEN(placements), &pre, e)) return false;
    if (pre) {
        c->norm.placement = SES_PRE_NORM;
        c->norm.after_last_layer = c->norm.no_first_attn_norm = true;
    }
    if (c->position.kind != SES_POS_ROTARY) return true;
    c->attention.qkv_layout = SES_QKV_FUSED;
    c->position.rope.theta = c->position.local_rope.theta = 10000;
    return c->hidden / c->attention.heads % 2 == 0 ||
           ses_fail(e, SES_EARG, "rotary positions need heads of an even size");
}

const char *const ses_bert_reads[] = { "position_embedding_type", "norm_placement", "add_cross_attention",
                                       NULL };

bool ses_bert_post_read_positions(ses_config *c, const ses_json *config, ses_err *e)
{
    static const char *const names[] = { "absolute", "relative_key", "relative_key_query", "rotary" };
    static const ses_position_kind kinds[] = { SES_POS_LEARNED, SES_POS_RELATIVE_KEY,
                                               SES_POS_RELATIVE_KEY_QUERY, SES_POS_ROTARY };
    size_t kind;
    if (!ses_config_name(config, "position_embedding_type", names, SES_LEN(names), &kind, e)) return false;
    c->position.kind = kinds[kind];
    if (!read_modern(c, config, e)) return false;
    if (!ses_config_bool(config, "add_cross_attention", &c->attention.cross, e)) return false;
    return ses_bert_post_read(c, config, e);
}

static const ses_config_key keys[] = {
    /* SpanBERT's head, which transformers does not have */
    SES_KEY_INTEGER("span_boundary_places", head.boundary_positions, 1, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("span_boundary_size", head.boundary_width, 1, SES_MAX_WIDTH),
};

const ses_tensor_name ses_bert_heads[SES_BERT_HEADS] = {
    { "lm.dense.*", "/cls.predictions.transform.dense.*" },
    { "lm.norm.*", "/cls.predictions.transform.LayerNorm.*" },
    { "lm.out.weight", "/cls.predictions.decoder.weight" },
    { "lm.out.bias", "~/cls.predictions.decoder.bias" },
    { "lm.out.bias", "/cls.predictions.bias" },
    { "lm.out.bias", "/cls.predictions.decoder.bias" },
    { "boundary.*", "/cls.span_boundary.*" },
    { "copy.*", "/cls.copy.*" },
    { "next.*", "/cls.seq_relationship.*" },
    { "classify.out.*", "/classifier.*" },
    { "choice.out.*", "/classifier.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

static const ses_class classes[] = {
    { .name = "BertModel", .pooler = true },
    SES_POOLED_CLASS("BertForPreTraining", SES_USE_HEAD(masked_lm, "prediction_logits"),
                     SES_USE_PAIR_HEAD(next_sentence, "seq_relationship_logits")),
    SES_CLASS("BertForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_CLASS("BertForCopyLM", SES_USE_HEAD(copy_lm, "logits")),
    SES_CLASS("BertLMHeadModel", SES_USE_HEAD(causal_lm, "logits")),
    SES_CLASS("SpanBertForPreTraining", SES_USE_HEAD(masked_lm, "prediction_logits"),
              SES_USE_HEAD(span_boundary, "span_boundary_logits")),
    SES_POOLED_CLASS("BertForNextSentencePrediction", SES_USE_HEAD(next_sentence, "logits")),
    SES_POOLED_CLASS("BertForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_POOLED_CLASS("BertForMultipleChoice", SES_USE_HEAD(multiple_choice, "logits")),
    SES_CLASS("BertForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("BertForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
};

const ses_model_desc ses_model_bert = {
    .name = "bert",
    .prefix = "bert.",
    .tokenizer_sets_segments = true,
    .borrowed_name = true,
    .defaults = { .embed.segments = 2,
                  .pad_id = -1,
                  .head.boundary_positions = 20,
                  .head.boundary_width = 200,
                  .norm.eps = 1e-12,
                  .dropout.hidden = 0.1,
                  .dropout.attention = 0.1,
                  .dropout.embed = -1,
                  .dropout.head = -1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_GELU,
                  .pooler.act = SES_ACT_TANH,
                  .embed.norm = true,
                  .embed.tied = true,
                  .lm.bias = true },
    .keys = { SES_TABLE(ses_bert_keys), SES_TABLE(keys) },
    .post_read = ses_bert_post_read_positions,
    .reads = ses_bert_reads,
    .tensors = { SES_TABLE(ses_bert_tensors), SES_TABLE(ses_bert_norms), SES_TABLE(ses_bert_heads) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
