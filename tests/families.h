/* A tiny config.json of each way a model may work: for tests that hold of all of them. */
#ifndef TESTS_FAMILIES_H
#define TESTS_FAMILIES_H

#include "sesame/json.h"

#include <stdio.h>

typedef struct family {
    const char *type, *class_name;
    bool per_token;       /* what `labels` of a batch means to the class */
    bool order;           /* with a permutation mask, places to predict and a memory */
    const char *idle;     /* parameters with this in their names have no part in the loss; NULL: all have */
    const char *settings; /* of config.json, besides those of every model below */
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

/* ses_json_free. */
static inline ses_json_doc *family_config(const family *f, ses_err *e)
{
    char text[2048];
    int n = snprintf(
        text, sizeof text,
        "{\"architectures\": [\"%s\"], \"model_type\": \"%s\", \"vocab_size\": 37, \"hidden_size\": 20, "
        "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"intermediate_size\": 28, "
        "\"max_position_embeddings\": 16, \"hidden_dropout_prob\": 0.1, "
        "\"attention_probs_dropout_prob\": 0.1, \"initializer_range\": 0.3, "
        "\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}, %s}",
        f->class_name, f->type, f->settings);
    return ses_json_parse(text, (size_t)n, e);
}

#endif
