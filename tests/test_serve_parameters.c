/* Parameters of requests: names in errors, labels as a text, truncation, limits of pipelines, ids. */
#define _GNU_SOURCE
#include "serve/serve_impl.h"
#include "serve_fixture.h"

static const char *models[8];

static ses_server_options options(void)
{
    static char encoder[300];
    snprintf(encoder, sizeof encoder, "encoder=%s", tmp_path("encoder"));
    size_t n = 0;
    models[n++] = encoder;
    models[n++] = "mask=tests/pipelines/bert-mask";
    models[n++] = "label=tests/pipelines/bert-label";
    models[n++] = "score=tests/pipelines/bert-score";
    models[n++] = "sesame-gpt";
    return (ses_server_options){ .models = models, .n_models = n };
}

/* ---- names of fields ---- */

static void test_name_fields(void)
{
    static const struct {
        const char *from, *to;
    } list[] = {
        { "--top-k: no", "\"top_k\": no" },
        { "--a", "\"a\"" },
        { "use --min-length 5 or --max-length", "use \"min_length\" 5 or \"max_length\"" },
        { "(--layer)", "(\"layer\")" },
        { "\"--top-k\" stays, --top-k not", "\"--top-k\" stays, \"top_k\" not" },
        { "a--b -- c ---d --", "a--b -- c ---d --" },
        { "--exit: train with 'sesame finetune --exits joint' or '--exits frozen', --top-k",
          "\"exit\": train with 'sesame finetune --exits joint' or '--exits frozen', \"top_k\"" },
        { "the model's --top-k", "the model's \"top_k\"" },
        { "", "" },
    };
    for (size_t i = 0; i < SES_LEN(list); i++) {
        char text[128];
        snprintf(text, sizeof text, "%s", list[i].from);
        ses_api_name_fields(text);
        CHECK_STR(text, list[i].to);
    }
}

/* Errors name the fields of the request, not the options of the command. */
static void test_errors(serving *s)
{
    static const struct {
        const char *path, *body, *key, *part;
        int status;
    } list[] = {
        { "/embed", "{\"inputs\":\"a\",\"prompt_name\":\"poem\"}", "error",
          "\"prompt_name\": the folder has no prompt \"poem\"", 422 },
        { "/models/encoder", "{\"inputs\":\"a\",\"parameters\":{\"prompt\":\"a\",\"prompt_name\":\"query\"}}",
          "error", "\"prompt\" and \"prompt_name\" exclude each other", 400 },
        { "/models/mask", "{\"inputs\":\"a [MASK]\",\"parameters\":{\"top_kk\":5}}", "error",
          "did you mean 'top_k'?", 400 },
        { "/models/mask/pipeline/features", "{\"inputs\":\"a\",\"parameters\":{\"layer\":9}}", "error",
          "\"layers\": 9: the model has layers", 400 },
        { "/models/sesame-gpt",
          "{\"inputs\":\"a\",\"parameters\":{\"min_new_tokens\":9,\"max_new_tokens\":3}}", "error",
          "\"min_new_tokens\" 9 and \"max_new_tokens\" 3 exclude each other", 400 },
        { "/models/sesame-gpt", "{\"inputs\":\"a\",\"parameters\":{\"max_new_tokens\":5000}}", "error",
          "\"max_new_tokens\" is too large: at most 1024", 400 },
        { "/v1/completions", "{\"prompt\":\"a\",\"max_tokens\":5000}", "error/message",
          "\"max_tokens\" is 5000, at most 1024", 400 },
    };
    for (size_t i = 0; i < SES_LEN(list); i++) {
        const ses_json *v = post(s, list[i].path, list[i].body, list[i].status);
        const char *message = text_at(v, list[i].key);
        CHECK_MSG(strstr(message, list[i].part) && !strstr(message, "--"), "%s: \"%s\" lacks \"%s\"",
                  list[i].path, message, list[i].part);
    }
    const ses_json *v =
        post(s, "/models/sesame-gpt",
             "{\"inputs\":[\"a\",\"b\"],\"parameters\":{\"min_new_tokens\":9,\"max_new_tokens\":3}}", 200);
    CHECK_MSG(strstr(text_at(v, "1/error"), "\"min_new_tokens\" 9"), "%s", text_at(v, "1/error"));
}

/* ---- labels ---- */

static void test_labels(serving *s)
{
#define LABELS(x) "{\"inputs\":\"The bell rings.\",\"parameters\":{\"candidate_labels\":" x "}}"
    char list[512];
    const char *path = "/models/label/pipeline/zero-shot-classification";
    post(s, path, LABELS("[\"plums\",\"a bell\"]"), 200);
    snprintf(list, sizeof list, "%.*s", (int)s->a.body.n, s->a.body.p);
    post(s, path, LABELS("\" plums ,a bell\\n,, \""), 200);
    CHECK_MSG(body_is(s, list), "%.*s instead of %s", (int)s->a.body.n, s->a.body.p, list);
    const ses_json *v = post(s, path, LABELS("\"plums\""), 200);
    CHECK(ses_json_len(v) == 1);
    CHECK_STR(text_at(v, "0/label"), "plums");
    v = post(s, path, LABELS("[\"plums, a bell\"]"), 200); /* one label */
    CHECK(ses_json_len(v) == 1);
    CHECK_STR(text_at(v, "0/label"), "plums, a bell");
    v = post(s, path, LABELS("\" , \""), 400);
    CHECK(strstr(text_at(v, "error"), "\"candidate_labels\""));
    post(s, path, LABELS("5"), 400);
}

/* ---- truncation ---- */

/* The limit is 48 tokens; bodies have n words. */
static void test_truncate(serving *s)
{
    static const struct {
        const char *path, *before, *after;
    } list[] = {
        { "/predict", "{\"inputs\":\"", "\"" },
        { "/rerank", "{\"query\":\"plums\",\"texts\":[\"", "\"]" },
        { "/similarity", "{\"inputs\":{\"source_sentence\":\"plums\",\"sentences\":[\"", "\"]}" },
    };
    for (size_t i = 0; i < SES_LEN(list); i++) {
        char after[64];
        bool nested = !strcmp(list[i].path, "/similarity");
        for (int truncate = 0; truncate < 2; truncate++) {
            snprintf(after, sizeof after, "%s,%s\"truncate\":%s%s}", list[i].after,
                     nested ? "\"parameters\":{" : "", truncate ? "true" : "false", nested ? "}" : "");
            char *large = body_of(list[i].before, 60, " plums", "", after);
            char *small = body_of(list[i].before, 10, " plums", "", after);
            const ses_json *v = post(s, list[i].path, large, truncate ? 200 : 422);
            if (truncate)
                CHECK(header_number(s, "x-truncated-tokens") > 0);
            else
                CHECK_MSG(strstr(text_at(v, "error"), "set \"truncate\" to true"), "%s", text_at(v, "error"));
            post(s, list[i].path, small, 200);
            free(large);
            free(small);
        }
    }
    post(s, "/predict", "{\"inputs\":\"a\",\"truncate\":5}", 422);
}

/* A document counts up to the given number of its tokens; the response has it whole. */
static void test_document_tokens(serving *s)
{
#define RERANK(document, more) \
    "{\"query\":\"plums\",\"return_documents\":true,\"documents\":[\"" document "\"]" more "}"
    const char *path = "/v2/rerank";
    double whole =
        number_at(post(s, path, RERANK("The bell rings plums", ""), 200), "results/0/relevance_score");
    double part = number_at(post(s, path, RERANK("The bell", ""), 200), "results/0/relevance_score");
    CHECK(whole != part);
    const ses_json *v = post(s, path, RERANK("The bell rings plums", ",\"max_tokens_per_doc\":2"), 200);
    CHECK(number_at(v, "results/0/relevance_score") == part);
    CHECK_STR(text_at(v, "results/0/document/text"), "The bell rings plums");
    CHECK(header_number(s, "x-truncated-tokens") > 0);
    v = post(s, path, RERANK("The bell rings plums", ",\"max_tokens_per_doc\":4096"), 200);
    CHECK(number_at(v, "results/0/relevance_score") == whole);
    CHECK(header_number(s, "x-truncated-tokens") == -1);
    v = post(s, path, RERANK("The bell", ",\"max_tokens_per_doc\":0"), 400);
    CHECK(strstr(text_at(v, "message"), "\"max_tokens_per_doc\""));
}

static void test_ids(serving *s)
{
    char first[64];
    const char *body = "{\"query\":\"plums\",\"documents\":[\"plums\"]}";
    snprintf(first, sizeof first, "%s", text_at(post(s, "/v1/rerank", body, 200), "id"));
    const char *second = text_at(post(s, "/v1/rerank", body, 200), "id");
    CHECK(!strncmp(first, "rerank-", 7) && !strncmp(second, "rerank-", 7) && strcmp(first, second));
}

/* ---- scores ---- */

/* A query is encoded once for all documents, and scores are in their order. */
static void test_scores(serving *s)
{
    static const char *const model[] = { "score", "encoder" };
    static const char *const document[] = { "The bell rings.", "plums", "a bell", "he rings the bell" };
    for (int i = 0; i < 2; i++) {
        double alone[4];
        long tokens = 0, query = 0;
        char body[512];
        for (int k = 0; k < 4; k++) {
            snprintf(body, sizeof body, "{\"model\":\"%s\",\"queries\":\"bells\",\"documents\":\"%s\"}",
                     model[i], document[k]);
            alone[k] = number_at(post(s, "/score", body, 200), "data/0/score");
            tokens += header_number(s, "x-compute-tokens");
        }
        snprintf(body, sizeof body, "{\"model\":\"encoder\",\"inputs\":\"bells\"}");
        post(s, "/embed", body, 200);
        if (i) query = 3 * header_number(s, "x-compute-tokens"); /* a cross-encoder reads it with each text */
        snprintf(body, sizeof body,
                 "{\"model\":\"%s\",\"queries\":\"bells\",\"documents\":[\"%s\",\"%s\",\"%s\",\"%s\"]}",
                 model[i], document[0], document[1], document[2], document[3]);
        const ses_json *v = post(s, "/score", body, 200);
        CHECK(ses_json_len(member(v, "data")) == 4);
        CHECK_MSG(header_number(s, "x-compute-tokens") == tokens - query, "%ld of %ld tokens",
                  header_number(s, "x-compute-tokens"), tokens);
        for (int k = 0; k < 4; k++) {
            char path[32];
            snprintf(path, sizeof path, "data/%d/score", k);
            CHECK(number_at(v, path) == alone[k]);
            snprintf(path, sizeof path, "data/%d/index", k);
            CHECK(number_at(v, path) == k);
        }
    }
}

/* ---- penalties ---- */

static void complete(serving *s, const char *options, char *text, size_t size)
{
    char body[256];
    snprintf(body, sizeof body, "{\"prompt\":\"The\",\"max_tokens\":100,\"temperature\":0,%s}", options);
    snprintf(text, size, "%s", text_at(post(s, "/v1/completions", body, 200), "choices/0/text"));
}

/* Each penalty changes a text of greedy decoding, 0 does not. */
static void test_penalties(serving *s)
{
    char plain[1024], zero[1024], presence[1024], frequency[1024];
    complete(s, "\"repetition_penalty\":1", plain, sizeof plain);
    complete(s, "\"repetition_penalty\":1,\"presence_penalty\":0,\"frequency_penalty\":0.0", zero,
             sizeof zero);
    complete(s, "\"repetition_penalty\":1,\"presence_penalty\":2", presence, sizeof presence);
    complete(s, "\"repetition_penalty\":1,\"frequency_penalty\":2", frequency, sizeof frequency);
    CHECK_STR(zero, plain);
    CHECK_MSG(strcmp(presence, plain) && strcmp(frequency, plain) && strcmp(frequency, presence),
              "plain: %s\npresence: %s\nfrequency: %s", plain, presence, frequency);
    complete(s, "\"repetition_penalty\":1,\"n\":2,\"num_beams\":2,\"presence_penalty\":-2", zero,
             sizeof zero);
    CHECK(*zero);
}

/* ---- settings ---- */

/* The I/O thread opens no pipeline: the first request of its kind goes to a worker, which prepares the
 * next ones. */
static void test_io_thread(serving *s)
{
    int io = ses_server_get_options(s->server)->workers;
    ses_served_model *m = ses_registry_find(ses_server_registry(s->server), "encoder", NULL);
    const ses_task_entry *embed = ses_task_find("embed");
    ses_setting settings[] = { { "no-normalize", "true" }, { "truncation-side", "left" }, { 0 } };
    ses_served_pipeline *p = ses_served_pipeline_find(m, embed, settings, io);
    CHECK(!p);
    ses_job j = { .model = m }; /* as in the I/O thread */
    CHECK(!ses_job_open(&(ses_worker){ .server = s->server, .index = io }, &j, NULL, embed, settings));
    CHECK(j.needs_worker && !j.pipeline && !j.error.code);
    ses_worker worker = { .server = s->server, .pool = (struct ses_workers *)(void *)&j, .index = 0 };
    CHECK(ses_job_open(&worker, &j, NULL, embed, settings) && j.pipeline);
    ses_served_pipeline_release(j.pipeline);
    p = ses_served_pipeline_find(m, embed, settings, io);
    CHECK(p);
    ses_served_pipeline_release(p);
    ses_served_model_release(m);
}

/* A clone does not read files of the folder. */
static void test_clone(void)
{
    ses_err e = { 0 };
    char path[300];
    copy_files("tests/pipelines/bert-label", tmp_path("clone"), model_files);
    snprintf(path, sizeof path, "%s/tokenizer_config.json", tmp_path("clone"));
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    ses_pipeline *p = dev ? ses_pipeline_open("text-classification", tmp_path("clone"), dev, NULL, &e) : NULL;
    if (!CHECK_MSG(p, "%s", e.msg)) return;
    write_string(path, "not JSON");
    ses_pipeline *c = ses_pipeline_clone(p, &e);
    CHECK_MSG(c && !memcmp(&c->tokenizer_config, &p->tokenizer_config, sizeof c->tokenizer_config), "%s",
              e.msg);
    ses_pipeline_free(c);
    ses_pipeline_free(p);
    ses_device_free(dev);
}

/* All pipelines of a model are in use: the request may come again later. */
static void test_full(serving *s)
{
    enum { MORE = 64 };
    ses_served_pipeline *held[MORE];
    ses_served_model *m = ses_registry_find(ses_server_registry(s->server), "encoder", NULL);
    size_t n = 0;
    bool full = false;
    ses_err e = { 0 };
    for (int quiet = 0; n < MORE && quiet < 5; quiet = full ? quiet + 1 : 0) {
        if (quiet) sleep_ms(20); /* an answered request may still hold its pipeline */
        char prompt[16];
        snprintf(prompt, sizeof prompt, "%zu ", n);
        held[n] = ses_served_pipeline_get(m, ses_task_find("embed"),
                                          (ses_setting[]){ { "prompt", prompt }, { 0 } }, &full, &e);
        n += held[n] != NULL;
    }
    CHECK(full && n > 8 && n < MORE);
    const char *body = "{\"inputs\":\"a\",\"parameters\":{\"prompt\":\"other \"}}";
    const ses_json *v = post(s, "/models/encoder", body, 429);
    CHECK(strstr(text_at(v, "error"), "combinations of \"parameters\""));
    CHECK(header_number(s, "retry-after") >= 1);
    v = post(s, "/embed", "{\"inputs\":\"a\",\"prompt_name\":\"query\"}", 429);
    CHECK_STR(text_at(v, "error_type"), "Overloaded");
    ses_served_pipeline_release(held[--n]);
    post(s, "/models/encoder", body, 200);
    while (n) ses_served_pipeline_release(held[--n]);
    ses_served_model_release(m);
}

/* Settings of the pipeline and fields of embeddings beside each other. */
static void test_embed(serving *s)
{
    const ses_json *v = post(s, "/models/encoder",
                             "{\"inputs\":[\"plums\",\"a bell\"],\"parameters\":{\"pooling\":\"cls\","
                             "\"dimensions\":4,\"normalize\":true}}",
                             200);
    CHECK(ses_json_len(v) == 2 && ses_json_len(member(v, "1")) == 4);
    v = post(s, "/models/encoder", "{\"inputs\":\"plums\",\"dimensions\":3,\"parameters\":{\"layer\":1}}",
             200);
    CHECK(ses_json_len(v) == 3);
    char *large = body_of("{\"inputs\":\"", 60, " plums", "",
                          "\",\"parameters\":{\"truncate\":false,\"pooling\":\"max\"}}");
    v = post(s, "/models/encoder", large, 400);
    CHECK(strstr(text_at(v, "error"), "\"truncate\""));
    free(large);
    post(s, "/models/encoder", "{\"inputs\":\"plums\",\"parameters\":{\"poling\":\"max\"}}", 400);
    /* null is absent, whatever its name */
    post(s, "/models/encoder", "{\"inputs\":\"plums\",\"parameters\":{\"poling\":null}}", 200);
    post(s, "/analyze",
         "{\"analysis\":\"explain\",\"inputs\":\"plums\",\"model\":\"label\",\"parameters\":{\"method\":"
         "\"occlude\",\"steps\":null,\"nothing\":null}}",
         200);
}

int main(void)
{
    serving s;
    test_name_fields();
    make_models();
    test_clone();
    ses_server_options o = options();
    serving_start(&s, &o);
    test_errors(&s);
    test_labels(&s);
    test_truncate(&s);
    test_document_tokens(&s);
    test_ids(&s);
    test_scores(&s);
    test_penalties(&s);
    test_io_thread(&s);
    test_full(&s);
    test_embed(&s);
    serving_stop(&s);
    remove_models();
    return check_report();
}
