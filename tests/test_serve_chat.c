/* Chat templates against jinja2, and POST /v1/chat/completions. */
#define _GNU_SOURCE
#include "serve_fixture.h"
#include "task/chat/chat_template.h"

/* ---- templates ---- */

/* The fixture has templates, variables and texts of jinja2; null: it refuses. */
static void test_templates(void)
{
    size_t n = 0;
    char *text = read_all("tests/fixtures/chat_templates.json", &n);
    ses_json_doc *doc = ses_json_parse(text, n, NULL);
    const ses_json *list = ses_json_root(doc);
    CHECK(ses_json_len(list) > 90);
    for (size_t i = 0; i < ses_json_len(list); i++) {
        const ses_json *x = ses_json_at(list, i);
        ses_string source = { 0 };
        source.p = ses_json_string(ses_json_get(x, "template"), &source.n);
        size_t length = 0;
        const char *want = ses_json_string(ses_json_get(x, "text"), &length);
        ses_buf b = { 0 };
        ses_err e = { 0 };
        bool ok = ses_chat_template_render(source, ses_json_get(x, "variables"), &b, &e);
        CHECK_MSG(ok == (want != NULL), "%s: %s", source.p, e.msg);
        CHECK_MSG(!ok || (b.len == length && !memcmp(b.data ? b.data : "", want, length)),
                  "%s\n%.*s\nwanted\n%s", source.p, (int)b.len, b.data, want);
        ses_buf_free(&b);
    }
    ses_json_free(doc);
    free(text);
}

static void test_refused(void)
{
    static const struct {
        const char *source, *part;
    } list[] = { { "{{ messages | map('x') }}", "map" },
                 { "{% macro x() %}{% endmacro %}", "macro" },
                 { "{{ strftime_now('%d') }}", "strftime_now()" },
                 { "{% if x %}", "does not end" },
                 { "{{ x", "expected }}" },
                 { "{{ 'x }}", "does not end" },
                 { "{# x", "does not end" },
                 { "{% for x in 5 %}{% endfor %}", "needs a list" },
                 { "{{ raise_exception('no') }}", "refuses the messages: no" },
                 { "{{ x.y }}", "undefined" },
                 { "{{ 'a' + 1 }}", "adds a text and an integer" },
                 { "{{ messages }}", "writes a list" },
                 { "{{ messages[::2] }}", "step" },
                 { "{{ {'a': 1} }}", "expected a name" },
                 { "{% for m in messages if true %}{% endfor %}", "a loop with a condition" },
                 { "{{ '\\u00e4' }}", "an escape" },
                 { "{{ 'a' | replace('a', 1) }}", "replace" },
                 { "{{ ['a'] | join(1) }}", "join" },
                 { "{% set s = namespace(x=999999999) %}{% for a in [1,1,1,1,1,1,1,1] %}{% for b in "
                   "[1,1,1,1,1,1,1,1] %}{% set s.x = s.x + s.x %}{% endfor %}{% endfor %}",
                   "a number is too large" },
                 { "{% set s = namespace(x='abcdefgh') %}{% for a in [1,1,1,1,1,1,1,1] %}{% for b in "
                   "[1,1,1,1,1,1,1,1] %}{% set s.x = s.x ~ s.x %}{% endfor %}{% endfor %}",
                   "limit" },
                 { "{{ "
                   "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1))))))))))))))))))))))"
                   ")))))))))))))))))))))))))))))))))))))))))))) }}",
                   "nested" } };
    ses_json_doc *doc = ses_json_parse("{\"messages\":[1]}", 16, NULL);
    for (size_t i = 0; i < SES_LEN(list); i++) {
        ses_buf b = { 0 };
        ses_err e = { 0 };
        bool ok = ses_chat_template_render(ses_str(list[i].source), ses_json_root(doc), &b, &e);
        CHECK_MSG(!ok && strstr(e.msg, list[i].part), "%s: %s", list[i].source, e.msg);
        ses_buf_free(&b);
    }
    ses_json_free(doc);
}

/* ---- the route ---- */

/* The bundled generator with a template. */
static void make_chat(void)
{
    static const char *const files[] = { "config.json", "generation_config.json", "model.sesame-int8",
                                         "tokenizer.json", NULL };
    char dir[256], path[320];
    snprintf(dir, sizeof dir, "%s", tmp_path("chat"));
    copy_files("models/sesame-gpt", dir, files);
    snprintf(path, sizeof path, "%s/tokenizer_config.json", dir);
    write_string(path,
                 "{\"chat_template\": \"{% for m in messages %}{% if m.role == 'tool' %}{{ "
                 "raise_exception('no tools') }}"
                 "{% endif %}{{ m.content }}{% endfor %}{% if add_generation_prompt %} went{% endif %}\"}");
}

static void test_chat(serving *s)
{
    char whole[512];
    const ses_json *v =
        post(s, "/v1/completions",
             "{\"prompt\":\"The old man went\",\"max_tokens\":9,\"temperature\":0,\"model\":\"chat\"}", 200);
    snprintf(whole, sizeof whole, "%s", text_at(v, "choices/0/text"));
#define CHAT                                                \
    "\"messages\":[{\"role\":\"system\",\"content\":\"The " \
    "\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"old man\"}]}]"
    v = post(s, "/v1/chat/completions",
             "{" CHAT ",\"max_completion_tokens\":9,\"temperature\":0,\"tools\":[]}", 200);
    CHECK_STR(text_at(v, "choices/0/message/content"), whole);
    CHECK_STR(shape_of(s, v),
              "{id:s,object:s,created:n,model:s,choices:[{index:n,message:{role:s,content:s},logprobs:0,"
              "finish_reason:s}],usage:{prompt_tokens:n,completion_tokens:n,total_tokens:n}}");
    CHECK_STR(text_at(v, "object"), "chat.completion");
    CHECK_STR(text_at(v, "model"), "chat");
    post(s, "/v1/chat/completions", "{" CHAT ",\"max_tokens\":9,\"temperature\":0,\"stream\":true}", 200);
    CHECK(memmem(s->a.body.p, s->a.body.n, "\"delta\":{\"role\":\"assistant\",", 28));
    CHECK(memmem(s->a.body.p, s->a.body.n, "\"object\":\"chat.completion.chunk\"", 31));
    CHECK(s->a.body.n > 14 && !memcmp(s->a.body.p + s->a.body.n - 14, "data: [DONE]\n\n", 14));
}

/* Ollama's form of the same. */
static void test_ollama(serving *s)
{
    char whole[512];
    const ses_json *v = post(s, "/v1/chat/completions", "{" CHAT ",\"max_tokens\":9,\"temperature\":0}", 200);
    snprintf(whole, sizeof whole, "%s", text_at(v, "choices/0/message/content"));
    v = post(s, "/api/chat", "{" CHAT ",\"stream\":false,\"options\":{\"num_predict\":9,\"temperature\":0}}",
             200);
    CHECK_STR(text_at(v, "message/content"), whole);
    CHECK_STR(text_at(v, "message/role"), "assistant");
    CHECK_STR(text_at(v, "done_reason"), "length");
    post(s, "/api/chat", "{" CHAT ",\"options\":{\"num_predict\":9}}", 200);
    ses_string type = ses_http_response_header(&s->a, "content-type");
    CHECK(ses_equal(type.p, type.n, "application/x-ndjson"));
    v = post(s, "/api/chat", "{" CHAT ",\"model\":\"sesame-gpt\"}", 400);
    CHECK(strstr(text_at(v, "error"), "sesame-gpt has no chat template"));
    CHECK(strstr(text_at(post(s, "/api/chat", "{" CHAT ",\"tools\":[{}]}", 400), "error"), "\"tools\""));
    post(s, "/api/chat", "{}", 400);
}

static void test_errors(serving *s)
{
    static const struct {
        const char *body;
        int status;
        const char *part;
    } list[] = {
        { "{}", 400, "\"messages\" is missing" },
        { "{\"messages\":[]}", 400, "empty" },
        { "{\"messages\":\"a\"}", 400, "must be a list" },
        { "{\"messages\":[{\"role\":\"user\"}]}", 400, "message 0" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]}", 400, "message 0" },
        { "{\"messages\":[{\"role\":\"tool\",\"content\":\"a\"}]}", 400, "refuses the messages: no tools" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"a\",\"images\":[\"x\"]}]}", 400,
          "\"images\" of messages" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"a\",\"tool_calls\":[{}]}]}", 400,
          "\"tool_calls\" of" },
        { "{" CHAT ",\"model\":\"sesame-gpt\"}", 400, "sesame-gpt has no chat template" },
        { "{" CHAT ",\"model\":\"none\"}", 404, "no model" },
        { "{" CHAT ",\"tools\":[{}]}", 400, "\"tools\" is not supported" },
        { "{" CHAT ",\"logprobs\":true}", 400, "\"logprobs\" is not supported" },
        { "{" CHAT ",\"response_format\":{\"type\":\"json_object\"}}", 400, "response_format" },
        { "{" CHAT ",\"max_tokens\":5,\"max_completion_tokens\":5}", 400, "exclude each other" },
        { "{" CHAT ",\"max_tokens\":5000}", 400, "at most 1024" },
    };
    for (size_t i = 0; i < SES_LEN(list); i++) {
        const ses_json *v = post(s, "/v1/chat/completions", list[i].body, list[i].status);
        CHECK_MSG(strstr(text_at(v, "error/message"), list[i].part), "%s: %s", list[i].body,
                  text_at(v, "error/message"));
    }
}

int main(void)
{
    static char chat[300];
    static const char *models[] = { "sesame-gpt", chat };
    serving s;
    test_templates();
    test_refused();
    make_models();
    make_chat();
    snprintf(chat, sizeof chat, "chat=%s", tmp_path("chat"));
    serving_start(&s, &(ses_server_options){ .models = models, .n_models = 2 });
    test_chat(&s);
    test_ollama(&s);
    test_errors(&s);
    serving_stop(&s);
    serving_start(&s, &(ses_server_options){ .models = models, .n_models = 1 });
    CHECK(strstr(text_at(post(&s, "/v1/chat/completions", "{" CHAT "}", 400), "error/message"),
                 "no chat template"));
    serving_stop(&s);
    remove_models();
    return check_report();
}
