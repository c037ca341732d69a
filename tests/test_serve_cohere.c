/* The routes of Cohere's client, and moderation: the values of other routes, and bad input. */
#define _GNU_SOURCE
#include "base/base64.h"
#include "serve/registry.h"
#include "serve_fixture.h"

#include <math.h>

static const char *models[8];

/* The classifier of the tests with a label that is harmless. */
static void make_moderator(void)
{
    char dir[256], path[320];
    size_t n = 0;
    snprintf(dir, sizeof dir, "%s", tmp_path("moderator"));
    copy_files("tests/pipelines/bert-label", dir, model_files);
    snprintf(path, sizeof path, "%s/config.json", dir);
    char *config = read_all(path, &n);
    config[n] = 0;
    char *at = strstr(config, "\"id2label\""), *open = strchr(at, '{'), *close = strchr(at, '}');
    ses_buf b = { 0 };
    ses_buf_append(&b, config, (size_t)(open - config));
    ses_buf_appendf(&b, "{\"0\":\"non-toxic\",\"1\":\"toxic\",\"2\":\"threat\"%s", close);
    write_text(path, b.data, b.len);
    ses_buf_free(&b);
    free(config);
}

static ses_server_options options(void)
{
    static char encoder[300], moderator[300];
    snprintf(encoder, sizeof encoder, "encoder=%s", tmp_path("encoder"));
    snprintf(moderator, sizeof moderator, "moderator=%s", tmp_path("moderator"));
    size_t n = 0;
    models[n++] = "label=tests/pipelines/bert-label";
    models[n++] = encoder;
    models[n++] = "multi=tests/pipelines/roberta-multi";
    models[n++] = moderator;
    models[n++] = "mask=tests/pipelines/bert-mask";
    return (ses_server_options){ .models = models, .n_models = n };
}

/* ---- vectors ---- */

static void test_vectors(serving *s)
{
    double x[16];
    char path[64];
    const ses_json *v = post(s, "/v1/embeddings", "{\"input\":\"plums\",\"model\":\"encoder\"}", 200);
    for (int i = 0; i < 16; i++) {
        snprintf(path, sizeof path, "data/0/embedding/%d", i);
        x[i] = number_at(v, path);
    }
    v = post(
        s, "/v2/embed",
        "{\"texts\":[\"plums\"],\"model\":\"encoder\",\"embedding_types\":[\"ubinary\",\"base64\",\"binary\","
        "\"float\"]}",
        200);
    CHECK_STR(text_at(v, "response_type"), "embeddings_by_type");
    CHECK_STR(text_at(v, "texts/0"), "plums");
    int bits[2] = { 0, 0 };
    for (int i = 0; i < 16; i++) {
        snprintf(path, sizeof path, "embeddings/float/0/%d", i);
        CHECK(number_at(v, path) == x[i]);
        if (x[i] > 0) bits[i / 8] |= 128 >> i % 8;
    }
    CHECK(number_at(v, "embeddings/ubinary/0/0") == bits[0] &&
          number_at(v, "embeddings/ubinary/0/1") == bits[1]);
    CHECK(number_at(v, "embeddings/binary/0/0") == bits[0] - 128);
    float decoded[16];
    size_t n = 0, length = 0;
    const char *text = ses_json_string(member(v, "embeddings/base64/0"), &length);
    CHECK(text && ses_base64_decode(text, length, decoded, &n, NULL) && n == sizeof decoded &&
          decoded[3] == (float)x[3]);
    v = post(s, "/v1/embed", "{\"texts\":[\"plums\",\"a bell\"],\"model\":\"encoder\"}", 200);
    CHECK_STR(text_at(v, "response_type"), "embeddings_floats");
    CHECK(number_at(v, "embeddings/0/0") == x[0] && ses_json_len(member(v, "embeddings")) == 2);
    CHECK(number_at(v, "meta/billed_units/input_tokens") > 3);
    v = post(s, "/v2/embed",
             "{\"inputs\":[{\"content\":[{\"type\":\"text\",\"text\":\"plums\"}]}],\"model\":\"encoder\"}",
             200);
    CHECK(number_at(v, "embeddings/float/0/0") == x[0]);
    /* the encoder has the prompt "query": "plums: " */
    v = post(s, "/v2/embed", "{\"texts\":[\"bell\"],\"model\":\"encoder\",\"input_type\":\"search_query\"}",
             200);
    double first = number_at(v, "embeddings/float/0/0");
    v = post(s, "/v2/embed", "{\"texts\":[\"plums: bell\"],\"model\":\"encoder\"}", 200);
    CHECK(first == number_at(v, "embeddings/float/0/0"));
    v = post(s, "/v2/embed",
             "{\"texts\":[\"bell\"],\"model\":\"encoder\",\"input_type\":\"search_document\"}", 200);
    CHECK(first != number_at(v, "embeddings/float/0/0"));
    v = post(s, "/v2/embed", "{\"texts\":[\"plums plums bell\"],\"model\":\"encoder\",\"max_tokens\":1}",
             200);
    CHECK(number_at(v, "embeddings/float/0/0") == x[0] && header_number(s, "x-truncated-tokens") == 2);
}

/* ---- classification ---- */

static void test_labels(serving *s)
{
    char path[64];
    const ses_json *v = post(s, "/predict", "{\"inputs\":\"plums\"}", 200);
    double best = number_at(v, "0/score");
    snprintf(path, sizeof path, "%s", text_at(v, "0/label"));
    v = post(s, "/v1/classify", "{\"inputs\":[\"plums\",\"a bell\"]}", 200);
    CHECK_STR(text_at(v, "classifications/0/prediction"), path);
    CHECK_STR(text_at(v, "classifications/0/input"), "plums");
    CHECK_STR(text_at(v, "classifications/0/classification_type"), "single-label");
    CHECK((float)number_at(v, "classifications/0/confidence") == (float)best);
    CHECK(ses_json_len(member(v, "classifications")) == 2 &&
          ses_json_len(member(v, "classifications/1/labels")) == 3);
    v = post(s, "/v1/classify", "{\"inputs\":\"plums\",\"model\":\"multi\"}", 200);
    CHECK_STR(text_at(v, "classifications/0/classification_type"), "multi-label");
    CHECK(!member(v, "classifications/0/prediction"));
    size_t n = 0;
    const ses_json *labels = member(v, "classifications/0/labels");
    for (size_t i = 0; i < ses_json_len(labels); i++)
        n += number_at(ses_json_at(labels, i), "confidence") > 0.5;
    CHECK(ses_json_len(member(v, "classifications/0/predictions")) == n);
}

#define EXAMPLES                                                                                             \
    "\"examples\":[{\"text\":\"plums\",\"label\":\"fruit\"},{\"text\":\"plums plums\",\"label\":\"fruit\"}," \
    "{\"text\":\"It rains.\",\"label\":\"rain\"},{\"text\":\"rains rains\",\"label\":\"rain\"}]"

static void test_examples(serving *s)
{
    const ses_json *v = post(s, "/v1/classify", "{\"inputs\":[\"plums\",\"It rains.\"]," EXAMPLES "}", 200);
    CHECK_STR(text_at(v, "classifications/0/prediction"), "fruit");
    CHECK_STR(text_at(v, "classifications/1/prediction"), "rain");
    double sum = number_at(v, "classifications/0/labels/fruit/confidence") +
                 number_at(v, "classifications/0/labels/rain/confidence");
    CHECK(fabs(sum - 1) < 1e-12 && number_at(v, "classifications/0/confidence") > 0.5);
    v = post(s, "/v1/classify",
             "{\"inputs\":[\"a bell\"],\"examples\":[{\"text\":\"plums\",\"label\":\"one\"}]}", 200);
    CHECK(number_at(v, "classifications/0/confidence") == 1);
}

/* ---- moderation ---- */

static void test_moderation(serving *s)
{
    const ses_json *v = post(s, "/v1/moderations", "{\"input\":\"plums\"}", 200);
    CHECK_STR(text_at(v, "model"), "multi"); /* the first that can moderate */
    const ses_json *scores = member(v, "results/0/category_scores"),
                   *flags = member(v, "results/0/categories");
    bool any = false, flagged, flag;
    for (size_t i = 0; i < ses_json_len(scores); i++) {
        double x = 0;
        CHECK(ses_json_real(ses_json_at(scores, i), &x) && ses_json_bool(ses_json_at(flags, i), &flag) &&
              flag == (x > 0.5));
        any |= x > 0.5;
    }
    CHECK(ses_json_bool(member(v, "results/0/flagged"), &flagged) && flagged == any);
    const char *label =
        text_at(post(s, "/predict", "{\"inputs\":\"plums\",\"model\":\"moderator\"}", 200), "0/label");
    bool harmless = !strcmp(label, "non-toxic");
    v = post(s, "/v1/moderations",
             "{\"input\":[{\"type\":\"text\",\"text\":\"plums\"},{\"type\":\"text\",\"text\":\"a "
             "bell\"}],\"model\":"
             "\"moderator\"}",
             200);
    CHECK(ses_json_len(member(v, "results")) == 2 && ses_json_len(member(v, "results/0/categories")) == 2);
    CHECK(!member(v, "results/0/categories/non-toxic") && member(v, "results/0/category_scores/toxic"));
    CHECK(ses_json_bool(member(v, "results/0/flagged"), &flagged) && flagged == !harmless);
    CHECK_STR(text_at(v, "results/0/category_applied_input_types/threat/0"), "text");
}

static void test_harmless(void)
{
    static const char *const yes[] = { "safe",          "OK",     "non-toxic", "Not_Hate", "nontoxic",
                                       "not offensive", "no_hate" };
    static const char *const no[] = { "neutral", "not_entailment", "positive", "toxic", "no",
                                      "non",     "notable",        "" };
    for (size_t i = 0; i < SES_LEN(yes); i++) CHECK_MSG(ses_label_is_harmless(ses_str(yes[i])), "%s", yes[i]);
    for (size_t i = 0; i < SES_LEN(no); i++) CHECK_MSG(!ses_label_is_harmless(ses_str(no[i])), "%s", no[i]);
}

/* ---- bad input ---- */

static void test_errors(serving *s)
{
    static const struct {
        const char *path, *body;
        int status;
        const char *part;
    } list[] = {
        { "/v2/embed", "{}", 400, "\"texts\" is missing" },
        { "/v2/embed", "{\"texts\":[]}", 400, "empty" },
        { "/v2/embed", "{\"texts\":[\"a\"],\"inputs\":[]}", 400, "exclude each other" },
        { "/v2/embed", "{\"inputs\":[{\"content\":[{\"type\":\"image_url\"}]}]}", 400, "input 0" },
        { "/v2/embed", "{\"inputs\":[{\"content\":\"a\"}]}", 400, "input 0" },
        { "/v2/embed", "{\"inputs\":\"a\"}", 400, "must be a list" },
        { "/v2/embed", "{\"texts\":[\"a\"],\"images\":[\"data:\"]}", 400, "not supported" },
        { "/v2/embed", "{\"texts\":[\"a\"],\"embedding_types\":[\"int8\"]}", 400, "int8" },
        { "/v2/embed", "{\"texts\":[\"a\"],\"embedding_types\":[]}", 400, "not empty" },
        { "/v2/embed", "{\"texts\":[\"a\"],\"embedding_types\":[5]}", 400, "embedding_types" },
        { "/v2/embed", "{\"texts\":[\"a\"],\"input_type\":\"image\"}", 400, "must be one of" },
        { "/v2/embed", "{\"texts\":[\"a\"],\"truncate\":\"LEFT\"}", 400, "must be one of" },
        { "/v2/embed", "{\"texts\":[\"a\"],\"truncate\":\"NONE\",\"max_tokens\":3}", 400, "\"END\"" },
        { "/v2/embed", "{\"texts\":[\"a\"],\"output_dimension\":17}", 400, "\"dimensions\" is 17" },
        { "/v1/embed", "{\"texts\":[\"a\"],\"model\":\"none\"}", 404, "no model" },
        { "/v1/classify", "{\"inputs\":[]}", 400, "empty" },
        { "/v1/classify", "{\"inputs\":[\"a\"],\"examples\":5}", 400, "must be a list" },
        { "/v1/classify", "{\"inputs\":[\"a\"],\"examples\":[{\"text\":\"a\"}]}", 400, "example 0" },
        { "/v1/classify", "{\"inputs\":[\"a\"],\"examples\":[{\"text\":\"\",\"label\":\"a\"}]}", 400,
          "example 0" },
        { "/v1/classify", "{\"inputs\":[\"a\"],\"truncate\":\"START\"}", 400, "\"truncate\"" },
        { "/v1/classify", "{\"inputs\":[\"a\"],\"model\":\"mask\"}", 400, "does not support" },
        { "/v1/moderations", "{}", 400, "\"input\" is missing" },
        { "/v1/moderations", "{\"input\":[{\"type\":\"image_url\"}]}", 400, "element 0" },
        { "/v1/moderations", "{\"input\":\"a\",\"model\":\"label\"}", 400, "label cannot moderate" },
        { "/v1/moderations", "{\"input\":\"a\",\"model\":\"mask\"}", 400, "mask cannot moderate" },
        { "/v1/moderations", "{\"input\":\"a\",\"model\":\"none\"}", 404, "no model" },
    };
    for (size_t i = 0; i < SES_LEN(list); i++) {
        const ses_json *v = post(s, list[i].path, list[i].body, list[i].status);
        const char *message =
            text_at(v, strcmp(list[i].path, "/v1/moderations") ? "message" : "error/message");
        CHECK_MSG(strstr(message, list[i].part), "%s %s: \"%s\" lacks \"%s\"", list[i].path, list[i].body,
                  message, list[i].part);
    }
    ses_buf many = { 0 };
    ses_buf_puts(&many, "{\"inputs\":\"a\",\"examples\":[{\"text\":\"a\",\"label\":\"b\"}");
    for (int i = 0; i < 1024; i++) ses_buf_puts(&many, ",{\"text\":\"a\",\"label\":\"b\"}");
    ses_buf_puts(&many, "]}");
    CHECK(strstr(text_at(post(s, "/v1/classify", many.data, 400), "message"), "1024 examples"));
    ses_buf_free(&many);
}

int main(void)
{
    serving s;
    make_models();
    make_moderator();
    ses_server_options o = options();
    serving_start(&s, &o);
    test_vectors(&s);
    test_labels(&s);
    test_examples(&s);
    test_moderation(&s);
    test_harmless();
    test_errors(&s);
    serving_stop(&s);
    models[0] = "mask=tests/pipelines/bert-mask", o.n_models = 1; /* none can moderate */
    serving_start(&s, &o);
    CHECK(strstr(text_at(post(&s, "/v1/moderations", "{\"input\":\"a\"}", 404), "error/message"),
                 "can moderate"));
    serving_stop(&s);
    remove_models();
    return check_report();
}
