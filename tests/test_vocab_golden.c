/* Tokenizers against published encodings of well-known models (../shared/vocab/golden). */
#define _POSIX_C_SOURCE 200809L
#include "base/str.h"
#include "check.h"
#include "sesame/json.h"
#include "sesame/tokenizer.h"

typedef struct model {
    const char *name;
    ses_tokenizer *t;
    ses_encode_ctx *k;
} model;

static model models[] = { { .name = "bert-base-uncased" },
                          { .name = "bert-base-multilingual-cased" },
                          { .name = "gpt2" },
                          { .name = "t5-base" },
                          { .name = "albert-base-v2" },
                          { .name = "camembert-base" },
                          { .name = "xlnet-base-cased" },
                          { .name = "roberta-base" },
                          { .name = "openai-gpt" },
                          { .name = "xlm-roberta-base-approx" } };

static ses_encode_ctx *open_model(const char *name)
{
    char path[512];
    ses_err e = { 0 };
    for (size_t i = 0; i < SES_LEN(models); i++) {
        model *m = &models[i];
        if (strcmp(m->name, name)) continue;
        snprintf(path, sizeof path, "%s/vocab/%s", check_shared(), name);
        if (!m->t) m->t = ses_tokenizer_open(path, &e);
        if (m->t && !m->k) m->k = ses_encode_ctx_new(m->t, &e);
        CHECK_MSG(m->k, "%s", e.msg);
        return m->k;
    }
    return NULL;
}

static ses_json_doc *load(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/vocab/golden/%s", check_shared(), name);
    return ses_json_load(path, 1 << 28, NULL);
}

/* Compare with the elements of want that mask includes (all if NULL). */
static bool same_ids(ses_encode_ctx *k, const ses_json *text, bool special, const ses_json *want,
                     const ses_json *mask)
{
    ses_err e = { 0 };
    ses_encode_options o = { .no_special = !special };
    ses_input in = { 0 };
    in.text.p = ses_json_string(text, &in.text.n);
    if (!ses_encode(k, &in, &o, &e)) return printf("%s\n", e.msg), false;
    const ses_encoding *x = ses_encode_ctx_result(k);
    size_t n = 0;
    for (size_t i = 0; i < ses_json_len(want); i++) {
        int64_t id = -1, on = 1;
        if (mask) ses_json_int(ses_json_at(mask, i), &on);
        ses_json_int(ses_json_at(want, i), &id);
        if (on && (n == x->n || x->id[n++] != id))
            return printf("differs: %s\n", ses_quoted_of(in.text.p, in.text.n).s), false;
    }
    return n == x->n;
}

static void check_questions(void)
{
    char command[600];
    snprintf(command, sizeof command, "xz -dc '%s/vocab/golden/question_tokens.json.xz' 2>/dev/null",
             check_shared());
    FILE *in = popen(command, "r");
    ses_buf text = { 0 };
    size_t got = 0;
    do {
        ses_buf_reserve(&text, 1 << 20);
        got = in ? fread(text.data + text.len, 1, 1 << 20, in) : 0;
        text.len += got;
    } while (got);
    if (in) pclose(in);
    ses_json_doc *questions = ses_json_parse(text.data, text.len, NULL),
                 *ids = load("tokenized_questions.json");
    ses_encode_ctx *k = open_model("bert-base-uncased");
    int wrong = 0;
    if (!questions || !ids || !k) {
        SKIP("no questions, or no xz");
    } else {
        const ses_json *q = ses_json_root(questions), *want = ses_json_root(ids);
        for (size_t i = 0; i < ses_json_len(q); i++)
            wrong +=
                !same_ids(k, ses_json_get(ses_json_at(q, i), "original"), false, ses_json_at(want, i), NULL);
        CHECK_MSG(ses_json_len(q) == 10570 && !wrong, "%d of %zu questions differ", wrong, ses_json_len(q));
    }
    ses_buf_free(&text);
    ses_json_free(questions);
    ses_json_free(ids);
}

static void check_article(const char *file, const char *name, bool special)
{
    ses_json_doc *doc = load(file);
    ses_encode_ctx *k = open_model(name);
    if (doc && k)
        CHECK(same_ids(k, ses_json_get(ses_json_root(doc), "text"), special,
                       ses_json_get(ses_json_root(doc), "token_ids"), NULL));
    ses_json_free(doc);
}

/* Ids, and the decoded text after clean_up_tokenization. */
static void check_strings(void)
{
    static const char *const names[][2] = { { "bert-base-uncased", "bert-base-uncased" },
                                            { "google-bert/bert-base-uncased", "bert-base-uncased" },
                                            { "distilgpt2", "gpt2" },
                                            { "t5-base", "t5-base" },
                                            { "distilbert/distilbert-base-multilingual-cased",
                                              "bert-base-multilingual-cased" } };
    ses_json_doc *doc = load("tokenizer_tests.json");
    for (size_t m = 0; doc && m < SES_LEN(names); m++) {
        const ses_json *cases = ses_json_get(ses_json_root(doc), names[m][0]);
        ses_encode_ctx *k = open_model(names[m][1]);
        CHECK(ses_json_len(cases) == 18);
        for (size_t i = 0; k && i < ses_json_len(cases); i++) {
            const ses_json *c = ses_json_at(cases, i);
            CHECK(same_ids(k, ses_json_get(c, "input"), true,
                           ses_json_get(ses_json_get(c, "encoded"), "input_ids"), NULL));
            const ses_encoding *x = ses_encode_ctx_result(k);
            const char *text, *want = ses_json_string(ses_json_get(c, "decoded_without_special"), NULL);
            size_t n;
            if (!CHECK(ses_decode(k, x->id, x->n, false, &text, &n, NULL))) continue;
            char *copy = malloc(n + 1);
            memcpy(copy, text, n);
            copy[ses_clean_up_tokenization(copy, n)] = 0;
            CHECK_STR(copy, want);
            free(copy);
        }
    }
    ses_json_free(doc);
}

/* Batches as padded arrays with attention masks. */
static void check_batches(void)
{
    ses_json_doc *doc = load("hf_transformers_expected.json");
    const ses_json *list = doc ? ses_json_get(ses_json_root(doc), "batch") : NULL;
    int seen = 0;
    for (size_t i = 0; i < ses_json_len(list); i++) {
        const ses_json *b = ses_json_at(list, i), *want = ses_json_get(b, "expected");
        const char *name = strchr(ses_json_string(ses_json_get(b, "model"), NULL), '/');
        ses_encode_ctx *k = name ? open_model(name + 1) : NULL;
        const ses_json *texts = ses_json_get(b, "sequences");
        for (size_t j = 0; k && j < ses_json_len(texts); j++, seen++)
            CHECK(same_ids(k, ses_json_at(texts, j), true, ses_json_at(ses_json_get(want, "input_ids"), j),
                           ses_json_at(ses_json_get(want, "attention_mask"), j)));
    }
    CHECK(!doc || seen == 11);
    ses_json_free(doc);
}

/* One string for all models, and two for XLM-R: ids, tokens and decoded text. */
static void check_common(void)
{
    static const char *const names[][2] = { { "albert/albert-base-v1", "albert-base-v2" },
                                            { "google-bert/bert-base-uncased", "bert-base-uncased" },
                                            { "almanach/camembert-base", "camembert-base" },
                                            { "openai-community/gpt2", "gpt2" },
                                            { "openai-community/openai-gpt", "openai-gpt" },
                                            { "FacebookAI/roberta-base", "roberta-base" },
                                            { "google-t5/t5-small", "t5-base" },
                                            { "FacebookAI/xlm-roberta-base", "xlm-roberta-base-approx" },
                                            { "xlnet/xlnet-base-cased", "xlnet-base-cased" } };
    ses_json_doc *doc = load("hf_transformers_expected.json");
    const ses_json *root = doc ? ses_json_root(doc) : NULL, *list = ses_json_get(root, "v5");
    size_t seen = 0;
    for (size_t i = 0; i < ses_json_len(list); i++) {
        const ses_json *c = ses_json_at(list, i), *name = ses_json_get(c, "model"),
                       *ids = ses_json_get(c, "ids");
        const char *called = ses_json_string(ses_json_len(name) ? ses_json_at(name, 0) : name, NULL), *text;
        size_t m = 0, n;
        while (m < SES_LEN(names) && strcmp(names[m][0], called)) m++;
        ses_encode_ctx *k = m < SES_LEN(names) ? open_model(names[m][1]) : NULL;
        if (!k) continue;
        seen++;
        CHECK_MSG(same_ids(k, ses_json_get(root, "v5_input"), false, ids, NULL), "%s", called);
        const ses_encoding *x = ses_encode_ctx_result(k);
        for (size_t j = 0; j < x->n; j++) {
            const char *got = ses_encode_ctx_string(k, x, j, &n);
            size_t len = 0;
            const char *want = ses_json_string(ses_json_at(ses_json_get(c, "tokens"), j), &len);
            CHECK_MSG(want && n == len && !memcmp(got, want, n), "%s: token %zu", called, j);
        }
        CHECK(ses_decode(k, x->id, x->n, true, &text, &n, NULL));
        CHECK_STR(text, ses_json_string(ses_json_get(c, "decoded"), NULL));
    }
    CHECK(!doc || seen == SES_LEN(names));
    list = ses_json_get(root, "symbols");
    for (size_t i = 0; i < ses_json_len(list); i++) {
        ses_encode_ctx *k = open_model("xlm-roberta-base-approx");
        const ses_json *c = ses_json_at(list, i);
        if (k) CHECK(same_ids(k, ses_json_get(c, "text"), true, ses_json_get(c, "ids"), NULL));
    }
    ses_json_free(doc);
}

int main(void)
{
    ses_json_doc *doc = load("tokenizer_tests.json");
    if (!doc) {
        SKIP("no published encodings");
        return check_report();
    }
    ses_json_free(doc);
    check_questions();
    check_article("bert_uncased_encoded.json", "bert-base-uncased", true);
    check_article("distilbert_cased_encoded.json", "bert-base-multilingual-cased", true);
    check_article("gpt2_encoded_tokens.json", "gpt2", false);
    check_article("t5_base_encoded.json", "t5-base", true);
    check_common();
    check_strings();
    check_batches();
    for (size_t i = 0; i < SES_LEN(models); i++) {
        ses_encode_ctx_free(models[i].k);
        ses_tokenizer_free(models[i].t);
    }
    return check_report();
}
