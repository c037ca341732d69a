/* A small BERT and a ragged batch for tests of the engine. */
#ifndef TESTS_MODEL_FIXTURE_H
#define TESTS_MODEL_FIXTURE_H

#include "sesame/model.h"

#include <stdio.h>
#include <string.h>

/* config.json of a tiny model of the given class; free with ses_json_free. */
static inline ses_json_doc *fixture_config(const char *class_name, ses_err *e)
{
    char text[1024];
    int n = snprintf(
        text, sizeof text,
        "{\"architectures\": [\"%s\"], \"model_type\": \"bert\", \"vocab_size\": 37, \"hidden_size\": 20, "
        "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"intermediate_size\": 28, "
        "\"max_position_embeddings\": 16, \"type_vocab_size\": 2, \"pad_token_id\": 0, "
        "\"hidden_dropout_prob\": 0.1, \"attention_probs_dropout_prob\": 0.1, \"hidden_act\": \"gelu\", "
        "\"initializer_range\": 0.3, \"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}}",
        class_name);
    return ses_json_parse(text, (size_t)n, e);
}

static const int32_t fixture_cu[] = { 0, 5, 6, 13 };
static const int32_t fixture_ids[] = { 2, 9, 4, 36, 3, 2, 2, 7, 7, 11, 30, 8, 3 };
static const int32_t fixture_segments[] = { 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1 };
static const int32_t fixture_token_labels[] = { -100, 1, -100, 0, -100, 2, -100, -100, 1, -100, -100, 2, 0 };
static const int32_t fixture_seq_labels[] = { 1, 0, 1 }, fixture_starts[] = { 1, 0, 2 },
                     fixture_ends[] = { 3, 0, 6 };

/* Labels for every kind of head; per_token: the class has labels per token. */
static inline ses_batch fixture_batch(bool per_token)
{
    return (ses_batch){ .seqs = 3,
                        .tokens = 13,
                        .cu_seqlens = fixture_cu,
                        .ids = fixture_ids,
                        .segments = fixture_segments,
                        .labels = per_token ? fixture_token_labels : fixture_seq_labels,
                        .pair_labels = fixture_seq_labels,
                        .starts = fixture_starts,
                        .ends = fixture_ends };
}

/* The same tokens with a permutation mask, positions to predict, and mems of 5 tokens for 2 layers. */
enum { FIXTURE_PAIRS = 5 * 5 + 1 + 7 * 7, FIXTURE_MEMS = 2 * 5 * 20 };
static const int32_t fixture_target_cu[] = { 0, 2, 3, 5 }, fixture_places[] = { 1, 4, 0, 2, 6 };
static const int32_t fixture_target_labels[] = { 9, 3, -100, 7, 36 }, fixture_mem_cu[] = { 0, 3, 3, 5 };

static inline ses_batch fixture_permutation(uint8_t mask[FIXTURE_PAIRS], ses_real mems[FIXTURE_MEMS])
{
    ses_batch b = fixture_batch(true);
    for (int i = 0; i < FIXTURE_PAIRS; i++) mask[i] = (i * i + i / 3) % 5 == 1;
    for (int i = 0; i < FIXTURE_MEMS; i++) mems[i] = (ses_real)((i * 37 % 101 - 50) / 40.0);
    b.perm_mask = mask;
    b.target_cu_seqlens = fixture_target_cu;
    b.predict_positions = fixture_places;
    b.labels = fixture_target_labels;
    b.mem_cu_seqlens = fixture_mem_cu;
    b.mems = mems;
    return b;
}

typedef struct fixture_class {
    const char *name;
    bool per_token;
} fixture_class;

static const fixture_class fixture_classes[] = {
    { "BertForPreTraining", true },
    { "BertForMaskedLM", true },
    { "BertForNextSentencePrediction", false },
    { "BertForSequenceClassification", false },
    { "BertForTokenClassification", true },
    { "BertForQuestionAnswering", false },
};

#endif
