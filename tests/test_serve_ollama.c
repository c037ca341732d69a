/* The routes of Ollama's client: texts at once and as lines, models, and bad input. */
#define _GNU_SOURCE
#include "serve_fixture.h"

static const char *models[] = { "sesame-gpt", "label=tests/pipelines/bert-label",
                                "multi=tests/pipelines/roberta-multi" };

#define COUNTS                                                                                             \
    "context:[],total_duration:n,load_duration:n,prompt_eval_count:n,prompt_eval_duration:n,eval_count:n," \
    "eval_duration:n}"

/* ---- text ---- */

static void test_text(serving *s)
{
    char whole[512];
    const ses_json *v =
        post(s, "/v1/completions", "{\"prompt\":\"The town\",\"max_tokens\":12,\"temperature\":0}", 200);
    snprintf(whole, sizeof whole, "%s", text_at(v, "choices/0/text"));
    v = post(
        s, "/api/generate",
        "{\"model\":\"sesame-gpt\",\"prompt\":\"The town\",\"stream\":false,\"system\":\"\",\"images\":[],"
        "\"keep_alive\":\"5m\",\"options\":{\"num_predict\":12,\"temperature\":0,\"num_ctx\":2048}}",
        200);
    CHECK_STR(text_at(v, "response"), whole);
    CHECK_STR(text_at(v, "done_reason"), "length");
    CHECK(number_at(v, "eval_count") == 12 && number_at(v, "prompt_eval_count") > 0);
    CHECK_STR(shape_of(s, v), "{model:s,created_at:s,response:s,done:b,done_reason:s," COUNTS);
    v = post(s, "/api/generate",
             "{\"prompt\":\"The "
             "town\",\"stream\":false,\"options\":{\"num_predict\":40,\"temperature\":0,\"stop\":[\" a\"]}}",
             200);
    CHECK_STR(text_at(v, "done_reason"), "stop");
    CHECK(!strstr(text_at(v, "response"), " a"));
    v = post(s, "/api/generate", "{\"model\":\"sesame-gpt\"}", 200);
    CHECK_STR(text_at(v, "done_reason"), "load");
    CHECK_STR(shape_of(s, v), "{model:s,created_at:s,response:s,done:b,done_reason:s}");
}

/* Lines are the default. */
static void test_lines(serving *s)
{
    char whole[512] = "";
    ses_buf text = { 0 };
    const ses_json *v =
        post(s, "/api/generate",
             "{\"prompt\":\"The "
             "town\",\"stream\":false,\"options\":{\"num_predict\":12,\"seed\":3,\"temperature\":0.8}}",
             200);
    snprintf(whole, sizeof whole, "%s", text_at(v, "response"));
    post(s, "/api/generate",
         "{\"prompt\":\"The town\",\"options\":{\"num_predict\":12,\"seed\":3,\"temperature\":0.8}}", 200);
    ses_string type = ses_http_response_header(&s->a, "content-type"), body = s->a.body;
    CHECK(ses_equal(type.p, type.n, "application/x-ndjson"));
    size_t lines = 0;
    for (size_t at = 0; at < body.n;) {
        const char *end = memchr(body.p + at, '\n', body.n - at);
        size_t n = end ? (size_t)(end - body.p) - at : 0;
        ses_json_doc *doc = ses_json_parse(body.p + at, n, NULL);
        if (!CHECK(end && doc)) break;
        v = ses_json_root(doc);
        bool last = at + n + 1 == body.n;
        CHECK_STR(shape_of(s, v), last ? "{model:s,created_at:s,response:s,done:b,done_reason:s," COUNTS
                                       : "{model:s,created_at:s,response:s,done:b}");
        ses_buf_puts(&text, text_at(v, "response"));
        ses_json_free(doc);
        at += n + 1, lines++;
    }
    CHECK(lines > 4);
    CHECK_STR(text.data, whole);
    ses_buf_free(&text);
}

/* ---- models ---- */

static void test_models(serving *s)
{
    const ses_json *v = post(s, "/api/show", "{\"model\":\"sesame-gpt\"}", 200);
    CHECK_STR(text_at(v, "model_info/general.architecture"), "gpt2");
    double parameters = number_at(v, "model_info/general.parameter_count");
    CHECK(parameters == number_at(get(s, "/v1/models/sesame-gpt", 200), "parameters"));
    v = post(s, "/api/show", "{\"name\":\"sesame-gpt\"}", 200);
    CHECK_STR(text_at(v, "capabilities/0"), "completion");
    CHECK_STR(text_at(v, "details/parameter_size"), "2.6M");
    v = get(s, "/api/ps", 200);
    CHECK(ses_json_len(member(v, "models")) == 3 && number_at(v, "models/0/size") >= parameters);
    CHECK_STR(text_at(v, "models/1/name"), "label");
    v = get(s, "/api/tags", 200);
    CHECK_STR(text_at(v, "models/0/details/families/0"), "gpt2");
}

static void test_errors(serving *s)
{
    static const struct {
        const char *path, *body;
        int status;
        const char *part;
    } list[] = {
        { "/api/generate", "{\"prompt\":5}", 400, "\"prompt\" must be a string" },
        { "/api/generate", "{\"prompt\":\"a\",\"system\":\"b\"}", 400, "\"system\" is not supported" },
        { "/api/generate", "{\"prompt\":\"a\",\"images\":[\"b\"]}", 400, "\"images\" is not supported" },
        { "/api/generate", "{\"prompt\":\"a\",\"format\":\"json\"}", 400, "\"format\" is not supported" },
        { "/api/generate", "{\"prompt\":\"a\",\"think\":true}", 400, "\"think\" is not supported" },
        { "/api/generate", "{\"prompt\":\"a\",\"stream\":\"no\"}", 400, "true or false" },
        { "/api/generate", "{\"prompt\":\"a\",\"options\":[]}", 400, "an object" },
        { "/api/generate", "{\"prompt\":\"a\",\"options\":{\"num_predict\":0}}", 400, "num_predict" },
        { "/api/generate", "{\"prompt\":\"a\",\"options\":{\"num_predict\":5000}}", 400, "at most 1024" },
        { "/api/generate", "{\"prompt\":\"a\",\"options\":{\"top_p\":2}}", 400, "top_p" },
        { "/api/generate", "{\"prompt\":\"a\",\"options\":{\"temperature\":-1}}", 400, "temperature" },
        { "/api/generate", "{\"prompt\":\"a\",\"options\":{\"stop\":[5]}}", 400, "\"stop\"" },
        { "/api/generate", "{\"prompt\":\"a\",\"model\":\"label\"}", 400, "does not support" },
        { "/api/generate", "{\"prompt\":\"a\",\"model\":\"none\"}", 404, "no model" },
        { "/api/show", "{}", 400, "\"model\" is missing" },
        { "/api/show", "{\"model\":\"\"}", 400, "empty" },
        { "/api/show", "{\"model\":\"none\"}", 404, "no model" },
        { "/api/show", "{\"model\":\"label\",\"name\":\"label\"}", 400, "exclude each other" },
    };
    for (size_t i = 0; i < SES_LEN(list); i++) {
        const ses_json *v = post(s, list[i].path, list[i].body, list[i].status);
        CHECK_STR(shape_of(s, v), "{error:s}");
        CHECK_MSG(strstr(text_at(v, "error"), list[i].part), "%s %s: \"%s\" lacks \"%s\"", list[i].path,
                  list[i].body, text_at(v, "error"), list[i].part);
    }
}

int main(void)
{
    serving s;
    ses_server_options o = { .models = models, .n_models = SES_LEN(models) };
    serving_start(&s, &o);
    test_text(&s);
    test_lines(&s);
    test_models(&s);
    test_errors(&s);
    serving_stop(&s);
    return check_report();
}
