/* Sentence encoders and cross-encoders against sentence-transformers' vectors: folders of tests/sentence
 * (made with that library's modules) and, if present, of ../shared/golden/e2e; invalid folders. */
#define _GNU_SOURCE
#include "check.h"
#include "model_fixture.h"
#include "sesame/safetensors.h"
#include "sesame/sentence.h"
#include "sesame/tokenizer.h"

#include <math.h>
#include <sys/stat.h>

enum { MOST_TOKENS = 512, MOST_SEQS = 16, MOST_WIDTH = 128 };

static ses_device *dev;

/* Sequences, concatenated. */
typedef struct words {
    int32_t cu[MOST_SEQS + 1], ids[MOST_TOKENS];
    int64_t seqs;
} words;

static ses_batch batch_of(const words *w)
{
    return (ses_batch){ .seqs = w->seqs, .tokens = w->cu[w->seqs], .cu_seqlens = w->cu, .ids = w->ids };
}

static void add_seq(words *w, const int32_t *id, int64_t n)
{
    int32_t at = w->cu[w->seqs];
    if (!CHECK(w->seqs < MOST_SEQS && at + n <= MOST_TOKENS)) return;
    memcpy(w->ids + at, id, (size_t)n * sizeof *id);
    w->cu[++w->seqs] = at + (int32_t)n;
}

/* Vectors of a batch, into out [seqs, width]. */
static bool embed(const ses_sentence *s, const words *w, const int32_t *prompt, ses_real *out)
{
    ses_err e = { 0 };
    ses_batch b = batch_of(w);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    ses_tensor *y = t ? ses_sentence_embed(s, t, &b, prompt, &e) : NULL;
    bool ok = CHECK_MSG(y, "%s", e.msg) &&
              CHECK(ses_rows(y) == w->seqs && ses_cols(y) == ses_sentence_width(s)) &&
              ses_tape_read(t, y, out);
    ses_tape_free(t);
    return ok;
}

/* Each sequence has the same bits alone and in the batch. */
static void same_alone(const ses_sentence *s, const words *w, const int32_t *prompt, const ses_real *together)
{
    int64_t width = ses_sentence_width(s);
    for (int64_t i = 0; i < w->seqs; i++) {
        ses_real one[MOST_WIDTH];
        words alone = { 0 };
        add_seq(&alone, w->ids + w->cu[i], w->cu[i + 1] - w->cu[i]);
        if (embed(s, &alone, prompt ? prompt + i : NULL, one))
            CHECK(!memcmp(one, together + i * width, (size_t)width * sizeof *one));
    }
}

static double apart(const ses_real *got, const double *want, int64_t n)
{
    double worst = 0, largest = 1;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs((double)got[i] - want[i]);
        if (!(d <= worst)) worst = d;
        largest = fmax(largest, fabs(want[i]));
    }
    return worst / largest;
}

/* ---- folders made with sentence-transformers ---- */

/* input_ids and attention_mask of a padded case, unpadded. */
static void read_words(const ses_safetensors *f, words *w)
{
    const ses_tensor_entry *ids = ses_safetensors_find(f, "input_ids"),
                           *mask = ses_safetensors_find(f, "attention_mask");
    if (!CHECK(ids && mask && ids->dim[0] <= MOST_SEQS && ids->dim[1] <= 64)) return;
    for (int64_t s = 0; s < ids->dim[0]; s++) {
        int32_t row[64], on[64], n = 0;
        size_t at = (size_t)(s * ids->dim[1]) * sizeof(int64_t), len = (size_t)ids->dim[1];
        CHECK(ses_convert(row, SES_I32, (const char *)ids->data + at, SES_I64, len, NULL));
        CHECK(ses_convert(on, SES_I32, (const char *)mask->data + at, SES_I64, len, NULL));
        while (n < (int32_t)len && on[n]) n++;
        add_seq(w, row, n);
    }
}

static void test_case(const char *name, const char *modules)
{
    char dir[128], path[160], text[512] = "", one[128];
    ses_err e = { 0 };
    words w = { 0 };
    snprintf(dir, sizeof dir, "tests/sentence/%s", name);
    snprintf(path, sizeof path, "%s/golden.safetensors", dir);
    ses_safetensors *f = ses_safetensors_open(path, &e);
    ses_sentence *s = ses_sentence_open(dir, dev, NULL, &e);
    if (!CHECK_MSG(f && s, "%s", e.msg)) return;
    read_words(f, &w);
    int32_t prompt[MOST_SEQS], length = 0;
    const ses_tensor_entry *p = ses_safetensors_find(f, "prompt_length"),
                           *want = ses_safetensors_find(f, "sentence_embedding");
    if (p) CHECK(ses_convert(&length, SES_I32, p->data, SES_I64, 1, &e));
    for (int i = 0; i < MOST_SEQS; i++) prompt[i] = length;
    static ses_real got[MOST_SEQS * MOST_WIDTH];
    static double ref[MOST_SEQS * MOST_WIDTH];
    if (CHECK(want && want->dim[1] == ses_sentence_width(s) && embed(s, &w, prompt, got))) {
        CHECK(ses_convert(ref, SES_F64, want->data, want->dtype, (size_t)want->count, &e));
        double d = apart(got, ref, want->count);
        CHECK_MSG(d < 2e-6, "%s: off by %g", name, d);
        same_alone(s, &w, prompt, got);
    }
    for (size_t i = 0; i < ses_sentence_module_count(s); i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", i ? "; " : "",
                 ses_sentence_describe(s, i, one, sizeof one));
    }
    CHECK_STR(text, modules);
    CHECK(ses_sentence_max_tokens(s) == 20);
    ses_sentence_free(s);
    ses_safetensors_free(f);
}

static void test_about(void)
{
    ses_err e = { 0 };
    ses_sentence *s = ses_sentence_open("tests/sentence/all-pools", dev, NULL, &e);
    if (!CHECK_MSG(s, "%s", e.msg)) return;
    CHECK_STR(ses_sentence_prompt(s, NULL), "query: ");
    CHECK_STR(ses_sentence_prompt(s, "document"), "");
    CHECK(!ses_sentence_prompt(s, "none") && ses_sentence_prompt_count(s) == 2);
    CHECK_STR(ses_sentence_prompt_name(s, 1), "document");
    CHECK_STR(ses_sentence_similarity(s), "dot");
    CHECK(!ses_sentence_lower_case(s) && ses_sentence_pools_prompt(s) && !ses_sentence_normalizes(s));
    ses_sentence_free(s);
    s = ses_sentence_open("tests/sentence/old-bin", dev, NULL, &e);
    if (!CHECK_MSG(s, "%s", e.msg)) return;
    CHECK_STR(ses_sentence_dir(s), "tests/sentence/old-bin/0_Transformer");
    CHECK_STR(ses_sentence_similarity(s), "cosine");
    CHECK(ses_sentence_lower_case(s) && ses_sentence_normalizes(s) && !ses_sentence_prompt(s, NULL));
    CHECK(ses_sentence_is_encoder_dir("tests/sentence/old-bin") &&
          !ses_sentence_is_encoder_dir("tests/golden/bert-model"));
    ses_sentence_free(s);
}

/* ---- end to end, with the tokenizer ---- */

static void tokenize(const char *dir, const ses_json *texts, int64_t max, words *w)
{
    ses_err e = { 0 };
    ses_tokenizer *t = ses_tokenizer_open(dir, &e);
    ses_encode_ctx *k = t ? ses_encode_ctx_new(t, &e) : NULL;
    CHECK_MSG(k, "%s", e.msg);
    for (size_t i = 0; k && i < ses_json_len(texts); i++) {
        ses_input in = { 0 };
        in.text.p = ses_json_string(ses_json_at(texts, i), &in.text.n);
        ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST, .max_length = max };
        if (CHECK_MSG(ses_encode(k, &in, &o, &e), "%s", e.msg))
            add_seq(w, ses_encode_ctx_result(k)->id, (int64_t)ses_encode_ctx_result(k)->n);
    }
    ses_encode_ctx_free(k);
    ses_tokenizer_free(t);
}

static void test_end_to_end(void)
{
    char path[512];
    ses_err e = { 0 };
    snprintf(path, sizeof path, "%s/golden/e2e/sentence-embeddings.json", check_shared());
    ses_json_doc *doc = ses_json_load(path, 1 << 26, NULL);
    if (!doc) {
        SKIP("no reference sentence embeddings");
        return;
    }
    const ses_json *all = ses_json_root(doc);
    for (size_t i = 0; i < ses_json_len(all); i++) {
        static ses_real got[MOST_SEQS * MOST_WIDTH];
        static double want[MOST_SEQS * MOST_WIDTH];
        words w = { 0 };
        snprintf(path, sizeof path, "%s/golden/e2e/%s", check_shared(), ses_json_key(all, i, NULL));
        ses_sentence *s = ses_sentence_open(path, dev, NULL, &e);
        if (!CHECK_MSG(s, "%s", e.msg)) continue;
        tokenize(path, ses_json_get(ses_json_at(all, i), "sentences"), ses_sentence_max_tokens(s), &w);
        const ses_json *out = ses_json_get(ses_json_at(all, i), "out");
        int64_t width = ses_sentence_width(s), n = 0;
        for (size_t r = 0; r < ses_json_len(out); r++)
            for (size_t c = 0; c < ses_json_len(ses_json_at(out, r)); c++, n++)
                CHECK(ses_json_real(ses_json_at(ses_json_at(out, r), c), &want[n]));
        if (CHECK(n == w.seqs * width && n > 0) && embed(s, &w, NULL, got)) {
            double d = apart(got, want, n);
            CHECK_MSG(d < 2e-5, "%s: off by %g", path, d);
            same_alone(s, &w, NULL, got);
        }
        ses_sentence_free(s);
    }
    ses_json_free(doc);
}

/* ---- options ---- */

/* Pooling by plain loops over the model's hidden states. */
static void mean_of(const char *dir, const char *output, const words *w, bool unit, double *out)
{
    ses_err e = { 0 };
    ses_batch b = batch_of(w);
    ses_outputs o = { 0 };
    ses_model *m = ses_model_open(dir, dev, &(ses_model_options){ .no_head = true }, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    CHECK_MSG(m && ses_model_forward(m, t, &b, &(ses_output_request){ .hidden_states = true }, &o, &e), "%s",
              e.msg);
    const ses_output *states = ses_outputs_find(&o, output);
    if (CHECK(states)) {
        const ses_tensor *x = states->tensor;
        int64_t C = ses_cols(x);
        for (int64_t s = 0; s < w->seqs; s++) {
            double squares = 0;
            for (int64_t c = 0; c < C; c++) {
                double sum = 0;
                for (int32_t k = w->cu[s]; k < w->cu[s + 1]; k++) sum += (double)x->f[k * C + c];
                out[s * C + c] = sum / (w->cu[s + 1] - w->cu[s]);
                squares += out[s * C + c] * out[s * C + c];
            }
            for (int64_t c = 0; unit && c < C; c++) out[s * C + c] /= sqrt(squares);
        }
    }
    ses_tape_free(t);
    ses_model_free(m);
}

static void test_choices(void)
{
    static const struct {
        ses_sentence_options o;
        const char *output;
        bool unit;
    } tries[] = { { { 0 }, "last_hidden_state", false },
                  { { .pooling = "mean", .normalize = SES_NORMALIZE_ON }, "last_hidden_state", true },
                  { { .layer = 2, .normalize = SES_NORMALIZE_OFF }, "hidden_states.2", false },
                  { { .layer = 1 }, "hidden_states.1", false },
                  { { .layer = -2 }, "hidden_states.1", false },
                  { { .layer = -3 }, "hidden_states.0", false } };
    const char *dir = "tests/golden/bert-tag"; /* a head, no pooler, no modules.json */
    static const int32_t ids[] = { 2, 9, 4, 36, 3, 2, 7, 11 };
    words w = { 0 };
    add_seq(&w, ids, 5), add_seq(&w, ids + 5, 3);
    for (size_t i = 0; i < SES_LEN(tries); i++) {
        static ses_real got[MOST_SEQS * MOST_WIDTH];
        static double want[MOST_SEQS * MOST_WIDTH];
        ses_err e = { 0 };
        ses_sentence *s = ses_sentence_open(dir, dev, &tries[i].o, &e);
        if (!CHECK_MSG(s, "%s", e.msg) || !embed(s, &w, NULL, got)) continue;
        mean_of(dir, tries[i].output, &w, tries[i].unit, want);
        double d = apart(got, want, w.seqs * ses_sentence_width(s));
        CHECK_MSG(d < 1e-6, "choice %zu: off by %g", i, d);
        ses_sentence_free(s);
    }
    ses_err e = { 0 };
    CHECK(!ses_sentence_open(dir, dev, &(ses_sentence_options){ .layer = 9 }, &e));
    CHECK_MSG(strstr(e.msg, "layer 9 requested, but the model has"), "%s", e.msg);
    ses_err_clear(&e);
    CHECK(!ses_sentence_open(dir, dev, &(ses_sentence_options){ .pooling = "cls,middle" }, &e));
    CHECK_MSG(strstr(e.msg, "\"middle\" is not supported (supported: cls, max"), "%s", e.msg);
    ses_err_clear(&e);
    ses_sentence *s =
        ses_sentence_open("tests/sentence/old-bin", dev,
                          &(ses_sentence_options){ .normalize = SES_NORMALIZE_OFF, .check_only = true }, &e);
    CHECK(s && ses_sentence_module_count(s) == 3 && !ses_sentence_normalizes(s));
    ses_sentence_free(s);
    s = ses_sentence_open("tests/golden/t5-v1.0", dev, NULL, &e); /* encoder-decoder: the encoder */
    CHECK_MSG(s && !strcmp(ses_model_class_name(ses_sentence_model(s)), "T5EncoderModel"), "%s", e.msg);
    ses_sentence_free(s);
}

/* ---- saving and opening ---- */

static void test_save(const char *from, const ses_sentence_options *o)
{
    static ses_real before[MOST_SEQS * MOST_WIDTH], after[MOST_SEQS * MOST_WIDTH];
    static const int32_t ids[] = { 2, 9, 4, 36, 3, 2, 7, 11 }, prompt[] = { 2, 1 };
    char dir[] = "/tmp/sesame-sentence-XXXXXX", cmd[64], one[160], two[160];
    ses_err e = { 0 };
    words w = { 0 };
    if (!CHECK(mkdtemp(dir))) return;
    add_seq(&w, ids, 5), add_seq(&w, ids + 5, 3);
    ses_sentence *s = ses_sentence_open(from, dev, o, &e), *back = NULL;
    CHECK_MSG(s && ses_sentence_save(s, dir, NULL, &e), "%s", e.msg);
    back = ses_sentence_open(dir, dev, NULL, &e);
    if (CHECK_MSG(s && back, "%s: %s", from, e.msg) && embed(s, &w, prompt, before) &&
        embed(back, &w, prompt, after)) {
        CHECK(!memcmp(before, after, (size_t)(w.seqs * ses_sentence_width(s)) * sizeof *before));
        CHECK(ses_sentence_module_count(s) == ses_sentence_module_count(back));
        for (size_t i = 0; i < ses_sentence_module_count(back); i++)
            CHECK_STR(ses_sentence_describe(back, i, one, sizeof one),
                      ses_sentence_describe(s, i, two, sizeof two));
        CHECK_STR(ses_sentence_similarity(back), ses_sentence_similarity(s));
        CHECK(ses_sentence_max_tokens(back) == ses_sentence_max_tokens(s));
        CHECK(ses_sentence_lower_case(back) == ses_sentence_lower_case(s));
        CHECK(ses_sentence_prompt_count(back) == ses_sentence_prompt_count(s));
        CHECK(!ses_sentence_save(s, dir, NULL, &e) && e.code == SES_EIO); /* already exists */
    }
    ses_sentence_free(back);
    ses_sentence_free(s);
    snprintf(cmd, sizeof cmd, "rm -r %s", dir);
    CHECK(!system(cmd));
}

/* ---- folders written here: pooling of a single token ---- */

static void put(const char *dir, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    if (CHECK(f)) fputs(text, f), fclose(f);
}

#define MODULE(path, type) "{\"idx\": 0, \"name\": \"\", \"path\": \"" path "\", \"type\": \"" type "\"}"
#define ST "sentence_transformers.models."

/* Vectors of sequences whose prompts have no, some or all tokens, with prompts not pooled. */
static int64_t pooled(const char *dir, const char *mode, int64_t layer, ses_real *out)
{
    static const int32_t ids[] = { 2, 9, 4, 36, 3, 2, 7, 11, 5, 6, 8, 3 }, prompt[] = { 0, 2, 3 };
    char config[128];
    words w = { 0 };
    ses_err e = { 0 };
    add_seq(&w, ids, 5), add_seq(&w, ids + 5, 4), add_seq(&w, ids + 9, 3);
    snprintf(config, sizeof config, "{\"pooling_mode\": [%s], \"include_prompt\": false}", mode);
    put(dir, "m/config.json", config);
    ses_sentence *s = ses_sentence_open(dir, dev, &(ses_sentence_options){ .layer = layer }, &e);
    int64_t width = s ? ses_sentence_width(s) : 0;
    if (!CHECK_MSG(s && !ses_sentence_pools_prompt(s), "%s", e.msg) || !embed(s, &w, prompt, out)) width = 0;
    if (width) same_alone(s, &w, prompt, out);
    ses_sentence_free(s);
    return width;
}

/* Such pooling requests only these rows of the model; combined with another mode it needs all rows. */
static void test_one_token(void)
{
    static const char *const mode[] = { "\"cls\"", "\"lasttoken\"" };
    static ses_real one[MOST_SEQS * MOST_WIDTH], two[MOST_SEQS * MOST_WIDTH];
    char dir[] = "/tmp/sesame-token-XXXXXX", cmd[200];
    if (!CHECK(mkdtemp(dir))) return;
    snprintf(cmd, sizeof cmd,
             "cp tests/golden/bert-tag/config.json tests/golden/bert-tag/model.safetensors %s", dir);
    CHECK(!system(cmd));
    snprintf(cmd, sizeof cmd, "mkdir %s/m", dir);
    CHECK(!system(cmd));
    put(dir, "modules.json", "[" MODULE("", ST "Transformer") "," MODULE("m", ST "Pooling") "]");
    for (int64_t i = 0; i < 6; i++) {
        int64_t layer = -(i / 2), C;
        char both[64];
        snprintf(both, sizeof both, "%s, \"max\"", mode[i % 2]);
        C = pooled(dir, mode[i % 2], layer, one);
        CHECK(C && pooled(dir, both, layer, two) == 2 * C);
        for (int64_t s = 0; s < 3; s++)
            CHECK_MSG(!memcmp(one + s * C, two + 2 * s * C, (size_t)C * sizeof *one), "%s, layer %d, text %d",
                      mode[i % 2], (int)layer, (int)s);
    }
    snprintf(cmd, sizeof cmd, "rm -r %s", dir);
    CHECK(!system(cmd));
}

/* ---- invalid folders ---- */

static const struct {
    const char *modules, *config, *message;
} bad[] = {
    { "{}", "", "modules.json: an object, expected an array" },
    { "[]", "", "the first module is not a Transformer" },
    { "[" MODULE("", ST "Pooling") "]", "", "the first module is not a Transformer" },
    { "[" MODULE("", ST "Transformer") "]", "", "no Pooling module: not a sentence encoder" },
    { "[" MODULE("", "mine.Transformer") "]", "", "\"mine.Transformer\": code in the folder is never run" },
    { "[" MODULE("", ST "CNN") "]", "",
      "\"sentence_transformers.models.CNN\" is not supported (supported: Tra" },
    { "[" MODULE("../up", ST "Transformer") "]", "", "\"path\" \"../up\" leaves the folder" },
    { "[" MODULE("a/../../b", ST "Transformer") "]", "", "leaves the folder" },
    { "[" MODULE("/etc", ST "Transformer") "]", "", "leaves the folder" },
    { "[{\"path\": 3, \"type\": \"" ST "Pooling\"}]", "",
      "module 0: key \"path\" must be a string, not an integer" },
    { "[" MODULE("", ST "Transformer") "," MODULE("m", ST "Dense") "]", "",
      "(Dense) precedes the Pooling module" },
    { "[" MODULE("", ST "Transformer") "," MODULE("m", ST "Pooling") "," MODULE("m", ST "Pooling") "]", "",
      "module 2 is a second Pooling" },
    { "[" MODULE("", ST "Transformer") "," MODULE("n", ST "Pooling") "]", "",
      "n/config.json: file not found" },
    { "[" MODULE("", ST "Transformer") "," MODULE("m", ST "Pooling") "]", "{\"pooling_mode\": \"median\"}",
      "m/config.json: pooling \"median\" is not supported" },
    { "[" MODULE("", ST "Transformer") "," MODULE("m", ST "Pooling") "]", "{\"pooling_mode\": []}",
      "key \"pooling_mode\" must be a string or an array of strings, not an array" },
    { "[" MODULE("", ST "Transformer") "," MODULE("m", ST "Pooling") "]", "{\"pooling_mode_cls_token\": 1}",
      "key \"pooling_mode_cls_token\" must be true or false, not an integer" },
    { "[" MODULE("", ST "Transformer") "," MODULE("p", ST "Pooling") "," MODULE("m", ST "Dense") "]", "{}",
      "key \"in_features\" must be an integer, not null" },
    { "[" MODULE("", ST "Transformer") "," MODULE("p", ST "Pooling") "," MODULE("m", ST "Dense") "]",
      "{\"in_features\": 12, \"out_features\": 3, \"activation_function\": \"os.system\"}",
      "activation \"os.system\" is not supported" },
    { "[" MODULE("", ST "Transformer") "," MODULE("p", ST "Pooling") "," MODULE("m", ST "Dense") "]",
      "{\"in_features\": 13, \"out_features\": 3}", "expects vectors of size 13, but its input has 12" },
    { "[" MODULE("", ST "Transformer") "," MODULE("p", ST "Pooling") "," MODULE("m", ST "Dense") "]",
      "{\"in_features\": 12, \"out_features\": 3, \"module_input_name\": \"token_embeddings\"}",
      "only \"sentence_embedding\" is supported" },
    { "[" MODULE("", ST "Transformer") "," MODULE("p", ST "Pooling") "," MODULE("m", ST "Dense") "]",
      "{\"in_features\": 12, \"out_features\": 3}",
      "m: neither model.safetensors nor pytorch_model.bin nor an index of shards nor a TensorFlow checkpoint "
      "found" },
};

static void test_bad(void)
{
    char dir[] = "/tmp/sesame-sentence-XXXXXX", sub[64], cmd[300];
    if (!CHECK(mkdtemp(dir))) return;
    snprintf(sub, sizeof sub, "%s/m", dir), CHECK(!mkdir(sub, 0700));
    snprintf(sub, sizeof sub, "%s/p", dir), CHECK(!mkdir(sub, 0700));
    snprintf(cmd, sizeof cmd,
             "cp tests/sentence/all-pools/*.json tests/sentence/all-pools/model.safetensors %s", dir);
    CHECK(!system(cmd));
    put(dir, "p/config.json", "{}");
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        ses_err e = { 0 };
        put(dir, "modules.json", bad[i].modules);
        put(dir, "m/config.json", bad[i].config);
        ses_sentence *s = ses_sentence_open(dir, dev, NULL, &e);
        CHECK_MSG(!s && strstr(e.msg, bad[i].message), "case %zu: %s", i, e.msg);
        ses_sentence_free(s);
    }
    snprintf(cmd, sizeof cmd, "rm -r %s", dir);
    CHECK(!system(cmd));
}

/* ---- cross-encoders ---- */

static void test_cross(void)
{
    static const struct {
        const char *labels, *config, *about;
        int act; /* -1: rejected */
    } tries[] = {
        { "{\"0\": \"a\"}", "", NULL, SES_ACT_SIGMOID },
        { "{\"0\": \"a\", \"1\": \"b\"}", "", NULL, SES_ACT_NONE },
        { "{\"0\": \"a\"}",
          ", \"sbert_ce_default_activation_function\": \"torch.nn.modules.linear.Identity\"", NULL,
          SES_ACT_NONE },
        { "{\"0\": \"a\"}", ", \"sbert_ce_default_activation_function\": null", NULL, SES_ACT_SIGMOID },
        { "{\"0\": \"a\"}",
          ", \"sentence_transformers\": {\"activation_fn\": \"torch.nn.modules.activation.Tanh\"}", NULL,
          SES_ACT_TANH },
        { "{\"0\": \"a\"}",
          ", \"sentence_transformers\": {\"activation_fn\": \"torch.nn.modules.activation.Tanh\"}",
          "{\"activation_fn\": \"torch.nn.modules.linear.Identity\"}", SES_ACT_NONE },
        { "{\"0\": \"a\"}", ", \"sbert_ce_default_activation_function\": \"mine.Square\"", NULL, -1 },
    };
    char dir[] = "/tmp/sesame-cross-XXXXXX", cmd[64], text[1024];
    if (!CHECK(mkdtemp(dir))) return;
    for (size_t i = 0; i < SES_LEN(tries); i++) {
        ses_err e = { 0 };
        ses_act act = SES_ACT_COUNT;
        int n = snprintf(text, sizeof text,
                         "{\"architectures\": [\"BertForSequenceClassification\"], \"model_type\": \"bert\", "
                         "\"vocab_size\": 37, \"hidden_size\": 20, \"num_hidden_layers\": 1, "
                         "\"num_attention_heads\": 4, \"intermediate_size\": 28, \"initializer_range\": 0.5, "
                         "\"max_position_embeddings\": 16, \"id2label\": %s%s}",
                         tries[i].labels, tries[i].config);
        if (tries[i].about) put(dir, "config_sentence_transformers.json", tries[i].about);
        ses_json_doc *doc = ses_json_parse(text, (size_t)n, &e);
        ses_model *m =
            doc ? ses_model_new(ses_json_root(doc), dev, &(ses_model_options){ .seed = 3 }, &e) : NULL;
        if (CHECK_MSG(m, "%s", e.msg)) {
            bool ok = ses_cross_encoder_activation(m, dir, &act, &e);
            CHECK_MSG(ok ? (int)act == tries[i].act : tries[i].act < 0, "case %zu: %s", i, e.msg);
            ses_tape *t = ses_tape_new(dev, NULL, NULL);
            ses_batch b = fixture_batch(false);
            b.labels = NULL;
            ses_tensor *x = ses_cross_encoder_score(m, SES_ACT_NONE, t, &b, NULL),
                       *y = ses_cross_encoder_score(m, SES_ACT_SIGMOID, t, &b, NULL);
            CHECK(x && y && ses_rows(x) == 3 && ses_cols(x) == ses_model_label_count(m));
            CHECK(x && y && fabs(1 / (1 + exp(-(double)x->f[1])) - (double)y->f[1]) < 1e-6);
            ses_tape_free(t);
        }
        ses_model_free(m);
        ses_json_free(doc);
        snprintf(text, sizeof text, "%s/config_sentence_transformers.json", dir);
        remove(text);
    }
    ses_err e = { 0 };
    ses_act act;
    ses_model *m = ses_model_open("tests/golden/bert-tag", dev, NULL, &e);
    CHECK(m && !ses_cross_encoder_activation(m, dir, &act, &e));
    CHECK_MSG(strstr(e.msg, "BertForTokenClassification has none"), "%s", e.msg);
    ses_model_free(m);
    snprintf(cmd, sizeof cmd, "rm -r %s", dir);
    CHECK(!system(cmd));
}

int main(void)
{
    ses_err e = { 0 };
    dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    CHECK(dev);
    test_case("all-pools",
              "Transformer; Pooling (lasttoken, weightedmean, cls, mean_sqrt_len_tokens, max, mean)");
    test_case("old-bin", "Transformer; Pooling (cls, max, mean, mean_sqrt_len_tokens, weightedmean); "
                         "Dense (60 to 7, gelu); Normalize");
    test_case("prompt-norm", "Transformer; Pooling (cls, weightedmean, without the prompt); Dropout; "
                             "Dense (24 to 12, sigmoid); LayerNorm; Dense (12 to 12, tanh); Normalize");
    test_about();
    test_end_to_end();
    test_choices();
    test_one_token();
    test_save("tests/sentence/all-pools", NULL);
    test_save("tests/sentence/old-bin", NULL);
    test_save("tests/sentence/prompt-norm", NULL);
    test_save("tests/golden/bert-tag",
              &(ses_sentence_options){ .pooling = "max,cls", .normalize = SES_NORMALIZE_ON });
    test_bad();
    test_cross();
    ses_device_free(dev);
    return check_report();
}
