/* A tiny config.json for each kind of model, for tests that apply to all of them. */
#ifndef TESTS_FAMILIES_H
#define TESTS_FAMILIES_H

#include "sesame/json.h"

#include <stdio.h>
#include <string.h>

typedef struct family {
    const char *type, *class_name;
    bool per_token;       /* the class has labels per token */
    bool permutation;     /* with permutation mask, positions to predict and mems */
    const char *idle;     /* parameters with this in their names receive no gradient; NULL: all do */
    const char *settings; /* keys of config.json, in addition to the common ones below */
} family;

#define DEBERTA "\"position_biased_input\": false, \"type_vocab_size\": 0, \"relative_attention\": true, "
#define XLNET "\"d_model\": 20, \"n_layer\": 2, \"n_head\": 4, \"d_inner\": 28, "
#define TRANSFO_XL XLNET "\"d_head\": 3, \"init_std\": 0.3, \"mem_len\": 3, "
#define MOBILE "\"hidden_act\": \"gelu\", \"embedding_size\": 12, \"intra_bottleneck_size\": 16, "
static const family families[] = {
    { "deberta", "DebertaForMaskedLM", true, false, NULL, DEBERTA "\"pos_att_type\": [\"c2p\", \"p2c\"]" },
    { "deberta", "DebertaForTokenClassification", true, false, NULL, DEBERTA "\"pos_att_type\": \"p2c\"" },
    { "deberta", "DebertaForSequenceClassification", false, false, NULL,
      "\"relative_attention\": true, \"pos_att_type\": \"c2p\", \"max_relative_positions\": 3, "
      "\"type_vocab_size\": 2" },
    { "deberta-v2", "DebertaV2ForMaskedLM", true, false, NULL,
      DEBERTA "\"pos_att_type\": \"p2c|c2p\", \"share_att_key\": true, \"position_buckets\": 4, "
              "\"norm_rel_ebd\": \"layer_norm\"" },
    { "deberta-v2", "DebertaV2ForQuestionAnswering", false, false, NULL,
      DEBERTA "\"pos_att_type\": \"c2p|p2c\", \"max_relative_positions\": 3, \"conv_kernel_size\": 3" },
    { "xlnet", "XLNetLMHeadModel", true, false, "embed.mask", XLNET "\"mem_len\": 3" },
    { "xlnet", "XLNetLMHeadModel", true, true, NULL, XLNET "\"clamp_len\": 4" },
    { "xlnet", "XLNetLMHeadModel", true, true, NULL, XLNET "\"attn_type\": \"uni\", \"same_length\": true" },
    { "xlnet", "XLNetForSequenceClassification", false, false, "embed.mask", XLNET "\"attn_type\": \"uni\"" },
    { "xlnet", "XLNetForTokenClassification", true, false, "embed.mask",
      XLNET "\"ff_activation\": \"relu\"" },
    { "xlnet", "XLNetForQuestionAnsweringSimple", false, false, "embed.mask", XLNET "\"mem_len\": null" },
    { "transfo-xl", "TransfoXLLMHeadModel", true, false, "cluster.0.project",
      TRANSFO_XL "\"div_val\": 2, \"cutoffs\": [1]" },
    { "transfo-xl", "TransfoXLLMHeadModel", true, false, NULL,
      TRANSFO_XL "\"div_val\": 1, \"cutoffs\": [1], \"same_length\": false, \"pre_lnorm\": true" },
    { "transfo-xl", "TransfoXLForSequenceClassification", false, false, NULL,
      TRANSFO_XL "\"div_val\": 1, \"d_embed\": 12, \"cutoffs\": [], \"untie_r\": false" },
    { "bert", "BertForMaskedLM", true, false, "embed.position",
      "\"position_embedding_type\": \"relative_key\"" },
    { "bert", "BertForQuestionAnswering", false, false, "embed.position",
      "\"position_embedding_type\": \"relative_key_query\", \"is_decoder\": true" },
    { "albert", "AlbertForSequenceClassification", false, false, "embed.position",
      "\"position_embedding_type\": \"relative_key_query\", \"embedding_size\": 12" },
    { "mobilebert", "MobileBertForPreTraining", true, false, NULL, MOBILE "\"num_feedforward_networks\": 3" },
    { "mobilebert", "MobileBertForMaskedLM", true, false, NULL,
      MOBILE "\"normalization_type\": \"layer_norm\", \"num_feedforward_networks\": 1" },
    { "mobilebert", "MobileBertForSequenceClassification", false, false, "narrow.attention",
      MOBILE "\"use_bottleneck_attention\": true, \"classifier_activation\": false" },
    { "mobilebert", "MobileBertForTokenClassification", true, false, NULL,
      MOBILE "\"use_bottleneck\": false, \"trigram_input\": false, \"num_feedforward_networks\": 2" },
};
#undef MOBILE
#undef DEBERTA
#undef XLNET
#undef TRANSFO_XL

#define GPT2 "\"n_embd\": 20, \"n_layer\": 2, \"n_head\": 4, \"n_positions\": 16, \"embd_pdrop\": 0.2"
#define BART                                                                                            \
    "\"d_model\": 20, \"encoder_layers\": 2, \"encoder_attention_heads\": 4, \"encoder_ffn_dim\": 28, " \
    "\"decoder_layers\": 1, \"decoder_attention_heads\": 2, \"decoder_ffn_dim\": 24, \"init_std\": 0.3"
#define T5 "\"d_model\": 20, \"d_kv\": 6, \"d_ff\": 28, \"num_layers\": 2, \"num_heads\": 3"
#define XLM \
    "\"emb_dim\": 20, \"n_layers\": 2, \"n_heads\": 4, \"n_langs\": 2, \"pad_index\": 0, \"init_std\": 0.3"
#define TWO_HEADS "\"num_attention_heads\": 2, " /* an even head size */
#define LOW_RANK(table, a, b, c) \
    "\"sesame_low_rank\": {" table "\"weights\": {\"" a "\": 4, \"" b "\": 3, \"" c "\": 6}}"
static const family heads_of_families[] = {
    { .type = "bert",
      .class_name = "BertLMHeadModel",
      .per_token = true,
      .settings = "\"is_decoder\": true" },
    { .type = "bert",
      .class_name = "SpanBertForPreTraining",
      .per_token = true,
      .settings = "\"span_boundary_places\": 1, \"span_boundary_size\": 6" },
    { .type = "roberta",
      .class_name = "RobertaForCausalLM",
      .per_token = true,
      .settings = "\"type_vocab_size\": 2" },
    { .type = "electra", .class_name = "ElectraForMultipleChoice", .settings = "\"embedding_size\": 12" },
    { .type = "xlm", .class_name = "XLMForMultipleChoice", .settings = XLM },
    { .type = "xlm",
      .class_name = "XLMForSequenceClassification",
      .settings = XLM ", \"summary_type\": \"mean\"" },
    { .type = "modernbert",
      .class_name = "ModernBertForSequenceClassification",
      .idle = "norm.bias",
      .settings = TWO_HEADS "\"classifier_pooling\": \"mean\", \"classifier_dropout\": 0.2" },
    { .type = "modernbert",
      .class_name = "ModernBertForTokenClassification",
      .per_token = true,
      .settings = TWO_HEADS
      "\"attention_bias\": true, \"mlp_bias\": true, \"norm_bias\": true, \"classifier_bias\": true" },
    { .type = "modernbert",
      .class_name = "ModernBertForQuestionAnswering",
      .idle = "norm.bias",
      .settings = TWO_HEADS "\"local_attention\": 4" },
    { .type = "gpt2", .class_name = "GPT2DoubleHeadsModel", .per_token = true, .settings = GPT2 },
    { .type = "openai-gpt", .class_name = "OpenAIGPTDoubleHeadsModel", .per_token = true, .settings = GPT2 },
    { .type = "opt",
      .class_name = "OPTForSequenceClassification",
      .settings = "\"ffn_dim\": 28, \"word_embed_proj_dim\": 12, \"init_std\": 0.3" },
    { .type = "opt",
      .class_name = "OPTForQuestionAnswering",
      .settings = "\"ffn_dim\": 28, \"init_std\": 0.3, \"activation_function\": \"gelu\"" },
    { .type = "bart",
      .class_name = "BartForCausalLM",
      .per_token = true,
      .idle = ".cross.",
      .settings = BART },
    { .type = "bart", .class_name = "BartForQuestionAnswering", .settings = BART },
    { .type = "mbart",
      .class_name = "MBartForSequenceClassification",
      .settings = BART ", \"eos_token_id\": 3" },
    { .type = "t5", .class_name = "T5ForSequenceClassification", .settings = T5 },
    { .type = "mt5",
      .class_name = "MT5ForTokenClassification",
      .per_token = true,
      .settings = T5 ", \"feed_forward_proj\": \"gated-gelu\"" },
    { .type = "t5", .class_name = "T5ForQuestionAnswering", .settings = T5 },
    /* factorized weights and token tables */
    { .type = "bert",
      .class_name = "BertForMaskedLM",
      .per_token = true,
      .settings = LOW_RANK("\"embeddings\": 5, ", "encoder.layer.0.attention.self.query",
                           "encoder.layer.1.attention.output.dense", "encoder.layer.1.output.dense") },
    { .type = "electra",
      .class_name = "ElectraForSequenceClassification",
      .settings = "\"embedding_size\": 12, " LOW_RANK(
          "\"embeddings\": 7, ", "encoder.layer.0.intermediate.dense", "encoder.layer.0.attention.self.key",
          "encoder.layer.0.attention.self.value") },
    { .type = "modernbert",
      .class_name = "ModernBertForMaskedLM",
      .per_token = true,
      .idle = "norm.bias",
      .settings = TWO_HEADS LOW_RANK("\"embeddings\": 8, ", "layers.0.attn.Wqkv", "layers.1.mlp.Wi",
                                     "layers.1.mlp.Wo") },
    { .type = "gpt2",
      .class_name = "GPT2LMHeadModel",
      .per_token = true,
      .settings = GPT2 ", " LOW_RANK("", "h.0.attn.c_attn", "h.1.mlp.c_fc", "h.1.mlp.c_proj") },
};
#undef GPT2
#undef BART
#undef T5
#undef XLM
#undef TWO_HEADS
#undef LOW_RANK

/* free with ses_json_free */
static inline ses_json_doc *family_config(const family *f, ses_err *e)
{
    char text[2048];
    int n = snprintf(
        text, sizeof text,
        "{\"architectures\": [\"%s\"], \"model_type\": \"%s\", \"vocab_size\": 37, \"hidden_size\": 20, "
        "\"num_hidden_layers\": 2, %s\"intermediate_size\": 28, "
        "\"max_position_embeddings\": 16, \"hidden_dropout_prob\": 0.1, "
        "\"attention_probs_dropout_prob\": 0.1, \"initializer_range\": 0.3, "
        "\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}, %s}",
        f->class_name, f->type,
        strstr(f->settings, "\"num_attention_heads\"") ? "" : "\"num_attention_heads\": 4, ", f->settings);
    return ses_json_parse(text, (size_t)n, e);
}

#endif
