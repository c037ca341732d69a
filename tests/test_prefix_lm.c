/* Attention masks given by the batch (prefix_len): causal, full, and a bidirectional prefix. */
#include "check.h"
#include "sesame/model.h"

#include <math.h>

enum { VOCAB = 40, TOKENS = 13, SEQS = 2 };
static const int32_t cu[] = { 0, 7, TOKENS };

static ses_model *model(const char *decoder, ses_json_doc **doc, ses_device *dev, ses_err *e)
{
    char config[600];
    snprintf(config, sizeof config,
             "{\"model_type\": \"bert\", \"vocab_size\": 40, \"hidden_size\": 16, \"num_hidden_layers\": 2, "
             "\"num_attention_heads\": 4, \"intermediate_size\": 24, \"max_position_embeddings\": 16, "
             "\"initializer_range\": 0.5, \"is_decoder\": %s}",
             decoder);
    *doc = ses_json_parse(config, strlen(config), e);
    ses_model_options o = { .class_name = "BertLMHeadModel", .random_init = true, .seed = 3 };
    return *doc ? ses_model_new(ses_json_root(*doc), dev, &o, e) : NULL;
}

static bool logits(const ses_model *m, ses_device *dev, const int32_t *ids, const int32_t *prefix_len,
                   float *out)
{
    ses_err e = { 0 };
    ses_outputs y;
    ses_batch b = { .seqs = SEQS, .tokens = TOKENS, .cu_seqlens = cu, .ids = ids, .prefix_len = prefix_len };
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ 0 }, &e);
    bool ok = t && ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true }, &y, &e) &&
              ses_tape_read(t, y.item[0].tensor, out);
    CHECK_MSG(ok, "%s", e.msg);
    ses_tape_free(t);
    return ok;
}

static bool row_same(const float *a, const float *b, int64_t row)
{
    return !memcmp(a + row * VOCAB, b + row * VOCAB, VOCAB * sizeof *a);
}

static double apart(const float *a, const float *b)
{
    double most = 0;
    for (int i = 0; i < TOKENS * VOCAB; i++) most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

static void test_prefix(ses_device *dev)
{
    static float plain[TOKENS * VOCAB], given[TOKENS * VOCAB], other[TOKENS * VOCAB];
    static const int32_t none[] = { 0, 0 }, all[] = { 7, 6 }, some[] = { 3, 5 }, bad[] = { 8, 0 };
    int32_t ids[TOKENS] = { 2, 9, 4, 36, 3, 8, 2, 7, 7, 11, 30, 8, 3 };
    ses_err e = { 0 };
    ses_json_doc *doc[2] = { 0 };
    ses_model *m = model("false", &doc[0], dev, &e), *decoder = model("true", &doc[1], dev, &e);
    CHECK_MSG(m && decoder, "%s", e.msg);
    if (!m || !decoder) return;
    CHECK(logits(decoder, dev, ids, NULL, plain) && logits(m, dev, ids, none, given));
    CHECK(!memcmp(plain, given, sizeof plain));
    CHECK(logits(m, dev, ids, NULL, plain) && logits(decoder, dev, ids, all, given));
    CHECK(!memcmp(plain, given, sizeof plain));

    CHECK(logits(m, dev, ids, some, plain));
    for (int change = 0; change < 7; change++) { /* a token of the first sequence */
        int32_t was = ids[change];
        ids[change] = 39;
        CHECK(logits(m, dev, ids, some, given) && apart(plain, given) > 0);
        for (int i = 0; i < TOKENS; i++) {
            bool attends = i < 7 && (change < 3 || change <= i);
            CHECK_MSG(row_same(plain, given, i) == !attends, "token %d changes, row %d: %g", change, i,
                      (double)(plain[i * VOCAB] - given[i * VOCAB]));
        }
        ids[change] = was;
    }
    CHECK(logits(decoder, dev, ids, some, other) && !memcmp(plain, other, sizeof plain));
    ses_batch b = { .seqs = SEQS, .tokens = TOKENS, .cu_seqlens = cu, .ids = ids, .prefix_len = bad };
    ses_outputs y;
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ 0 }, &e);
    CHECK(t && !ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true }, &y, &e));
    CHECK_STR(e.msg, "prefix_len 8 in sequence 0 of 7 tokens");
    ses_tape_free(t);
    ses_model_free(m);
    ses_model_free(decoder);
    ses_json_free(doc[0]);
    ses_json_free(doc[1]);
}

/* An encoder with rotary positions and a masked LM head: causal by prefix lengths of 0, for objective
 * ntp. */
static void test_encoder(ses_device *dev)
{
    static const char config[] =
        "{\"model_type\": \"modernbert\", \"vocab_size\": 40, \"hidden_size\": 16, \"num_hidden_layers\": 3, "
        "\"num_attention_heads\": 4, \"intermediate_size\": 24, \"max_position_embeddings\": 16, "
        "\"initializer_range\": 0.5, \"local_attention\": 8}";
    static float plain[TOKENS * VOCAB], given[TOKENS * VOCAB];
    static const int32_t none[] = { 0, 0 };
    int32_t ids[TOKENS] = { 2, 9, 4, 36, 3, 8, 2, 7, 7, 11, 30, 8, 3 };
    ses_err e = { 0 };
    ses_model_options o = { .class_name = "ModernBertForMaskedLM", .random_init = true, .seed = 3 };
    ses_json_doc *doc = ses_json_parse(config, strlen(config), &e);
    ses_model *m = doc ? ses_model_new(ses_json_root(doc), dev, &o, &e) : NULL;
    CHECK_MSG(m, "%s", e.msg);
    if (!m) return;
    CHECK(logits(m, dev, ids, none, plain));
    for (int change = 0; change < TOKENS; change++) {
        int32_t was = ids[change];
        ids[change] = 39;
        CHECK(logits(m, dev, ids, none, given));
        for (int i = 0; i < TOKENS; i++) {
            bool attends = change <= i && (i < 7) == (change < 7);
            CHECK_MSG(row_same(plain, given, i) == !attends, "token %d changes, row %d", change, i);
        }
        ids[change] = was;
    }
    ses_model_free(m);
    ses_json_free(doc);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    CHECK_MSG(dev, "%s", e.msg);
    if (dev) test_prefix(dev), test_encoder(dev);
    ses_device_free(dev);
    return check_report();
}
