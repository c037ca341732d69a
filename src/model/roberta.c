/* RoBERTa (Liu et al. 2019): BERT with another tokenizer. Positions start after the padding id and skip
 * padding; the classifier has a dense layer. XLM-R, CamemBERT and Data2Vec are the same under other names.
 * RoBERTa-PreLayerNorm (Ott et al. 2019) and XLM-R XL (Goyal et al. 2021) are pre-norm; XL does not normalize
 * the embeddings. */
#include "model_desc.h"

static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    c->position.offset = c->pad_id + 1;
    return ses_bert_post_read_positions(c, config, e);
}

const ses_tensor_name ses_roberta_heads[SES_ROBERTA_HEADS] = {
    { "lm.dense.*", "/lm_head.dense.*" },
    { "lm.norm.*", "/lm_head.layer_norm.*" },
    { "lm.out.weight", "/lm_head.decoder.weight" },
    { "lm.out.bias", "~/lm_head.decoder.bias" },
    { "lm.out.bias", "/lm_head.bias" },
    { "lm.out.bias", "/lm_head.decoder.bias" },
    { "classify.dense.*", "/classifier.dense.*" },
    { "classify.out.*", "/classifier.out_proj.*" },
    { "choice.out.*", "/classifier.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

static const ses_tensor_name prelayernorm[] = {
    { "layer.#.attn.norm.*", "encoder.layer.#.attention.LayerNorm.*" },
    { "layer.#.ffn.norm.*", "encoder.layer.#.intermediate.LayerNorm.*" },
    { "final_norm.*", "LayerNorm.*" },
};

static const ses_tensor_name xl[] = {
    { "layer.#.attn.norm.*", "encoder.layer.#.attention.self_attn_layer_norm.*" },
    { "layer.#.ffn.norm.*", "encoder.layer.#.LayerNorm.*" },
    { "final_norm.*", "encoder.LayerNorm.*" },
};

/* type: model_type; stem: of class names; base: prefix of tensor names; norms: their names; `more` adds
 * settings. */
#define ROBERTA(id, type, stem, base, norms, more)                                                    \
    static const ses_class classes_##id[] = {                                                         \
        { .name = stem "Model", .pooler = true },                                                     \
        SES_CLASS(stem "ForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),                             \
        SES_CLASS(stem "ForCausalLM", SES_USE_HEAD(causal_lm, "logits")),                             \
        SES_CLASS(stem "ForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")), \
        SES_POOLED_CLASS(stem "ForMultipleChoice", SES_USE_HEAD(multiple_choice, "logits")),          \
        SES_CLASS(stem "ForTokenClassification", SES_USE_HEAD(token_classification, "logits")),       \
        SES_CLASS(stem "ForQuestionAnswering", SES_USE_HEAD(question_answering, "")),                 \
    };                                                                                                \
    const ses_model_desc ses_model_##id = {                                                           \
        .name = type,                                                                                 \
        .prefix = base,                                                                               \
        .borrowed_name = true,                                                                        \
        .defaults = { .embed.segments = 1,                                                            \
                      .pad_id = 1,                                                                    \
                      .norm.eps = 1e-12,                                                              \
                      .dropout.hidden = 0.1,                                                          \
                      .dropout.attention = 0.1,                                                       \
                      .dropout.embed = -1,                                                            \
                      .dropout.head = -1,                                                             \
                      .dropout.head_on_summary_input = true,                                          \
                      .init.range = 0.02,                                                             \
                      .ffn.act = SES_ACT_GELU,                                                        \
                      .pooler.act = SES_ACT_TANH,                                                     \
                      .summary.act = SES_ACT_TANH,                                                    \
                      .lm.act = SES_ACT_GELU,                                                         \
                      .position.skips_pad = true,                                                     \
                      .embed.tied = true,                                                             \
                      .lm.bias = true,                                                                \
                      more },                                                                         \
        .keys = { SES_TABLE(ses_bert_keys) },                                                         \
        .post_read = finish,                                                                          \
        .reads = ses_bert_reads,                                                                      \
        .tensors = { SES_TABLE(ses_bert_tensors), SES_TABLE(norms), SES_TABLE(ses_roberta_heads) },   \
        .class = classes_##id,                                                                        \
        .n_classes = SES_LEN(classes_##id),                                                           \
    };
#define AND ,

ROBERTA(roberta, "roberta", "Roberta", "roberta.", ses_bert_norms, .embed.norm = true)
ROBERTA(xlm_roberta, "xlm-roberta", "XLMRoberta", "roberta.", ses_bert_norms, .embed.norm = true)
ROBERTA(camembert, "camembert", "Camembert", "roberta.", ses_bert_norms, .embed.norm = true)
ROBERTA(data2vec_text, "data2vec-text", "Data2VecText", "data2vec_text.", ses_bert_norms, .embed.norm = true)
ROBERTA(roberta_prelayernorm, "roberta-prelayernorm", "RobertaPreLayerNorm", "roberta_prelayernorm.",
        prelayernorm, .embed.norm = true AND.norm.placement = SES_PRE_NORM AND.norm.after_last_layer = true)
ROBERTA(xlm_roberta_xl, "xlm-roberta-xl", "XLMRobertaXL", "roberta.", xl,
        .norm.placement = SES_PRE_NORM AND.norm.after_last_layer = true)
