/* Random passages and a vocabulary, for tests of objectives. */
#ifndef TESTS_OBJECTIVE_FIXTURE_H
#define TESTS_OBJECTIVE_FIXTURE_H

#include "check.h"
#include "train/objective/objective_mix.h"

#include <string.h>

/* ids: 0 pad, 1 unknown, 2 [CLS], 3 [SEP], 4 [MASK], 5 </s>, 6 .. 25 sentinels, then words. */
enum { VOCAB = 500, FIRST_WORD = 26, SENTINELS = 20, LONGEST = 600 };

static uint8_t fixture_special[VOCAB];
static int32_t fixture_plain[VOCAB], fixture_sentinel[SENTINELS];

static inline ses_special_tokens fixture_lexicon(void)
{
    ses_special_tokens x = { .size = VOCAB,
                             .special = fixture_special,
                             .ordinary = fixture_plain,
                             .mask = 4,
                             .cls = 2,
                             .sep = 3,
                             .bos = -1,
                             .eos = 5,
                             .pad = 0,
                             .sentinel = fixture_sentinel,
                             .n_sentinels = SENTINELS,
                             .before = { { 2 }, { 0 }, 1 },
                             .between = { { 3 }, { 0 }, 1 },
                             .after = { { 3 }, { 1 }, 1 },
                             .segment_b = 1 };
    for (int32_t i = 0; i < VOCAB; i++) {
        fixture_special[i] = i < FIRST_WORD;
        if (i >= FIRST_WORD) fixture_plain[x.n_ordinary++] = i;
    }
    for (int32_t i = 0; i < SENTINELS; i++) fixture_sentinel[i] = 6 + i;
    return x;
}

typedef struct text {
    int32_t id[LONGEST];
    uint8_t starts[LONGEST];
} text;

/* Words of 1 to 4 tokens, sentences, documents; a token in fifty is unknown. */
static inline ses_passage fixture_passage(text *t, uint64_t number, int64_t n, bool two)
{
    ses_rng_stream d = ses_rng_stream_of(77, number, 99);
    int64_t word = 0;
    for (int64_t i = 0; i < n; i++) {
        t->id[i] = ses_draw_below(&d, 50) ? FIRST_WORD + (int32_t)ses_draw_below(&d, VOCAB - FIRST_WORD) : 1;
        t->starts[i] = 0;
        if (word-- > 0) continue;
        t->starts[i] = SES_STARTS_WORD;
        word = ses_draw_below(&d, 4);
        if (ses_draw_below(&d, 8) == 0) t->starts[i] |= SES_STARTS_SENTENCE;
        if (ses_draw_below(&d, 60) == 0) t->starts[i] |= SES_STARTS_SENTENCE | SES_STARTS_DOCUMENT;
    }
    ses_passage p = { .id = t->id, .starts = t->starts, .n = n, .split = two ? n / 2 : n, .number = number };
    if (two) t->starts[p.split] |= SES_STARTS_WORD | SES_STARTS_SENTENCE;
    if (n) t->starts[0] |= SES_STARTS_WORD | SES_STARTS_SENTENCE;
    return p;
}

/* An objective mix over the fixture's vocabulary. */
static inline ses_objective_mix *fixture_aim(const char *objectives, const ses_objective_options *o,
                                             const ses_special_tokens *x, const char *config, int64_t length,
                                             ses_err *e)
{
    ses_json_doc *doc = ses_json_parse(config, strlen(config), e);
    ses_objective_mix_options options = {
        .objectives = objectives, .o = *o, .special_tokens = x, .length = length, .seed = 5
    };
    ses_objective_mix *a = doc ? ses_objective_mix_new(&options, ses_json_root(doc), e) : NULL;
    ses_json_free(doc);
    return a;
}

#define FIXTURE_BERT                                                                                  \
    "{\"model_type\": \"bert\", \"vocab_size\": 500, \"hidden_size\": 16, \"num_hidden_layers\": 2, " \
    "\"num_attention_heads\": 2, \"intermediate_size\": 32, \"max_position_embeddings\": 640, "       \
    "\"type_vocab_size\": 2, \"initializer_range\": 0.2, \"span_boundary_size\": 8}"
#define FIXTURE_ELECTRA                                                                                  \
    "{\"model_type\": \"electra\", \"vocab_size\": 500, \"hidden_size\": 16, \"num_hidden_layers\": 1, " \
    "\"num_attention_heads\": 2, \"intermediate_size\": 32, \"max_position_embeddings\": 80}"
#define FIXTURE_GPT                                                                                   \
    "{\"model_type\": \"gpt2\", \"vocab_size\": 500, \"n_embd\": 16, \"n_layer\": 2, \"n_head\": 2, " \
    "\"n_positions\": 640, \"initializer_range\": 0.2}"

#define FIXTURE_T5                                                                                   \
    "{\"model_type\": \"t5\", \"vocab_size\": 500, \"d_model\": 16, \"d_kv\": 8, \"num_heads\": 2, " \
    "\"d_ff\": 32, \"num_layers\": 2, \"decoder_start_token_id\": 0, \"dropout_rate\": 0.1, "        \
    "\"initializer_factor\": 1}"
#define FIXTURE_BART_OF(type)                                                                      \
    "{\"model_type\": \"" type "\", \"vocab_size\": 500, \"d_model\": 16, \"encoder_layers\": 2, " \
    "\"decoder_layers\": 2, \"encoder_attention_heads\": 2, \"decoder_attention_heads\": 2, "      \
    "\"encoder_ffn_dim\": 32, \"decoder_ffn_dim\": 32, \"max_position_embeddings\": 160, "         \
    "\"init_std\": 0.1, \"decoder_start_token_id\": 5, \"eos_token_id\": 5}"
#define FIXTURE_BART FIXTURE_BART_OF("bart")
#define FIXTURE_MASS FIXTURE_BART_OF("mass")

#define FIXTURE_XLNET                                                                                   \
    "{\"model_type\": \"xlnet\", \"vocab_size\": 500, \"d_model\": 16, \"n_layer\": 2, \"n_head\": 2, " \
    "\"d_inner\": 32, \"mem_len\": 40, \"initializer_range\": 0.1, \"dropout\": 0.1}"
#define FIXTURE_XL                                                                                         \
    "{\"model_type\": \"transfo-xl\", \"vocab_size\": 500, \"d_model\": 16, \"d_embed\": 16, "             \
    "\"n_layer\": 2, \"n_head\": 2, \"d_head\": 8, \"d_inner\": 32, \"mem_len\": 40, \"cutoffs\": [100], " \
    "\"div_val\": 1, \"init_std\": 0.1, \"dropout\": 0.1}"

#endif
