/* Requests of clients for other servers: names of their models, bodies without a type, ranking without a
 * cross-encoder, and the shape of errors outside of the routes. */
#define _GNU_SOURCE
#include "serve/tiktoken.h"
#include "serve_fixture.h"

static const char *models[4], *aliases[] = { "text-embedding-3-small=encoder", "gpt/3.5=sesame-gpt" };

static ses_server_options options(void)
{
    static char encoder[300];
    snprintf(encoder, sizeof encoder, "encoder=%s", tmp_path("encoder"));
    size_t n = 0;
    models[n++] = "mask=tests/pipelines/bert-mask";
    models[n++] = encoder;
    models[n++] = "sesame-gpt";
    return (ses_server_options){
        .models = models, .n_models = n, .aliases = aliases, .n_aliases = SES_LEN(aliases)
    };
}

static void check_text(serving *s, const ses_json *v, const char *path, const char *part)
{
    CHECK_MSG(strstr(text_at(v, path), part), "%.*s lacks %s", (int)s->a.body.n, s->a.body.p, part);
}

/* ---- names ---- */

static void test_aliases(serving *s)
{
    char own[4096];
    post(s, "/v1/embeddings", "{\"input\":\"plums\",\"model\":\"encoder\"}", 200);
    snprintf(own, sizeof own, "%.*s", (int)s->a.body.n, s->a.body.p);
    post(s, "/v1/embeddings", "{\"input\":\"plums\",\"model\":\"text-embedding-3-small\"}", 200);
    CHECK(body_is(s, own));
    post(s, "/models/text-embedding-3-small", "{\"inputs\":\"plums\"}", 200);
    post(s, "/models/gpt/3.5/pipeline/text-generation", "{\"inputs\":\"The\"}", 200);
    const ses_json *v = get(s, "/v1/models/text-embedding-3-small", 200);
    CHECK_STR(text_at(v, "id"), "encoder");
    CHECK_STR(text_at(v, "aliases/0"), "text-embedding-3-small");
    check_text(s, post(s, "/v1/embeddings", "{\"input\":\"a\",\"model\":\"text-embedding-3-large\"}", 404),
               "error/message", "text-embedding-3-large");
}

static void test_wrong_aliases(void)
{
    static const struct {
        const char *alias, *part;
    } list[] = { { "x", "NAME=MODEL" },
                 { "=encoder", "NAME=MODEL" },
                 { "x=", "NAME=MODEL" },
                 { "x=nothing", "no model \"nothing\" is loaded" },
                 { "mask=encoder", "the name mask is taken" } };
    for (size_t i = 0; i < SES_LEN(list); i++) {
        ses_err e = { 0 };
        ses_server_options o = options();
        o.aliases = &list[i].alias, o.n_aliases = 1;
        o.dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
        ses_server *server = ses_server_new(&o, &e);
        CHECK_MSG(!server && strstr(e.msg, list[i].part), "%s: %s", list[i].alias, e.msg);
        ses_server_free(server);
        ses_device_free(o.dev);
    }
}

/* An unknown name means the only model made for the task, never one of several. */
static void test_any_model(void)
{
    serving s;
    ses_server_options o = options();
    o.any_model = true;
    serving_start(&s, &o);
    const ses_json *v = post(&s, "/v1/embeddings", "{\"input\":\"plums\",\"model\":\"ada\"}", 200);
    CHECK_STR(text_at(v, "model"), "encoder");
    v = post(&s, "/v1/completions", "{\"prompt\":\"The\",\"model\":\"davinci\"}", 200);
    CHECK_STR(text_at(v, "model"), "sesame-gpt");
    v = post(&s, "/v2/rerank", "{\"query\":\"a\",\"documents\":[\"b\"],\"model\":\"rerank-v3.5\"}", 200);
    CHECK_STR(text_at(v, "model"), "encoder");
    post(&s, "/predict", "{\"inputs\":\"plums\",\"model\":\"ada\"}", 404);
    get(&s, "/v1/models/ada", 404);
    post(&s, "/models/ada", "{\"inputs\":\"plums\"}", 404);
    serving_stop(&s);
    models[0] = models[1]; /* two encoders */
    models[1] = "mask=tests/pipelines/bert-mask", models[3] = "again=tests/pipelines/bert-mask";
    o.models = models + 1, o.n_models = 3, o.n_aliases = 0;
    serving_start(&s, &o);
    check_text(&s, post(&s, "/embed", "{\"inputs\":\"plums\",\"model\":\"ada\"}", 404), "error",
               "not exactly one for embed");
    serving_stop(&s);
}

/* ---- types of bodies ---- */

static void test_types(serving *s)
{
    static const char form[] = "Content-Type: application/x-www-form-urlencoded\r\n";
    const char *body = "{\"inputs\":\"a\"}";
    char headers[256];
    post_with(s, NULL, "/embed", body, 200);
    post_with(s, form, "/embed", body, 200); /* curl -d */
    post_with(s, "Content-Type: application/x-www-form-urlencoded; charset=utf-8\r\n", "/embed", body, 200);
    post_with(s, form, "/embed", "inputs=a", 422);
    post_with(s, "Content-Type: multipart/form-data\r\n", "/embed", body, 415);
    snprintf(headers, sizeof headers, "%sOrigin: http://127.0.0.1:%d\r\n", form, s->port);
    post_with(s, headers, "/embed", body, 200);
    snprintf(headers, sizeof headers, "%sOrigin: http://elsewhere.example\r\n", form);
    post_with(s, headers, "/embed", body, 415); /* a form of another site */
}

/* ---- token ids ---- */

/* Ids of a small vocabulary: "pl", "ums", " ", and two bytes of which only the first begins a character. */
static void test_tiktoken(void)
{
    static const struct {
        const char *text, *part;
    } wrong[] = { { "", "1 to" },           { "cGw=\n", "line 1" },
                  { "cGw= 1\n", "line 1" }, { "cGw= 0\ncGw= 0\n", "line 2" },
                  { "c?w= 0\n", "line 1" }, { " 0\n", "line 1" },
                  { "cGw= 0x\n", "line 1" } };
    for (size_t i = 0; i < SES_LEN(wrong); i++) {
        ses_err e = { 0 };
        ses_tiktoken *t = ses_tiktoken_parse(wrong[i].text, strlen(wrong[i].text), &e);
        CHECK_MSG(!t && strstr(e.msg, wrong[i].part), "%s: %s", wrong[i].text, e.msg);
        ses_tiktoken_free(t);
    }
    serving s;
    char own[4096];
    ses_server_options o = options();
    write_string(tmp_path("small.tiktoken"), "cGw= 0\ndW1z 1\r\nIA== 2\nw6nD 3\nqQ== 4");
    o.tiktoken = tmp_path("small.tiktoken");
    serving_start(&s, &o);
    post(&s, "/v1/embeddings", "{\"input\":[\"plums plums\",\"plums\"]}", 200);
    snprintf(own, sizeof own, "%.*s", (int)s.a.body.n, s.a.body.p);
    post(&s, "/v1/embeddings", "{\"input\":[[0,1,2,0,1],[0,1]]}", 200);
    CHECK(body_is(&s, own));
    post(&s, "/v1/embeddings", "{\"input\":[0,1,3,4]}", 200);
    check_text(&s, post(&s, "/v1/embeddings", "{\"input\":[0,5]}", 400), "error/message", "element 1");
    check_text(&s, post(&s, "/v1/embeddings", "{\"input\":[0,-1]}", 400), "error/message", "element 1");
    serving_stop(&s);
    ses_err e = { 0 };
    ses_json_doc *doc =
        ses_json_parse("[3,3,4]", 7, NULL); /* an e with an accent, half a one, and a whole one */
    ses_tiktoken *t = ses_tiktoken_open(o.tiktoken, &e);
    ses_buf b = { 0 };
    CHECK(t && ses_tiktoken_decode(t, ses_json_root(doc), &b, &e));
    CHECK(b.len == 9 && !memcmp(b.data, "\xc3\xa9\xef\xbf\xbd\xc3\xa9\xc3\xa9", 9));
    ses_buf_free(&b);
    ses_tiktoken_free(t);
    ses_json_free(doc);
}

/* ---- ranking ---- */

static void test_cosines(serving *s)
{
    static const char warning[] = "encoder is not a cross-encoder: scores are cosines of embeddings";
    const ses_json *v =
        post(s, "/similarity",
             "{\"inputs\":{\"source_sentence\":\"plums\",\"sentences\":[\"It rains.\",\"plums\",\"a bell\"]},"
             "\"model\":\"encoder\"}",
             200);
    double cosine[3];
    char path[64];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%d", i);
        cosine[i] = number_at(v, path);
    }
    v = post(s, "/v2/rerank",
             "{\"query\":\"plums\",\"documents\":[\"It rains.\",{\"text\":\"plums\"},\"a bell\"]}", 200);
    CHECK_STR(text_at(v, "model"), "encoder"); /* not the first that has vectors, but the one made for them */
    CHECK_STR(text_at(v, "meta/warnings/0"), warning);
    CHECK(number_at(v, "results/0/index") == 1);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "results/%d/index", i);
        int at = (int)number_at(v, path);
        snprintf(path, sizeof path, "results/%d/relevance_score", i);
        CHECK(at >= 0 && at < 3 && number_at(v, path) == cosine[at]);
        CHECK(!i || number_at(v, path) <= 1);
    }
    v = post(s, "/rerank", "{\"query\":\"plums\",\"texts\":[\"a bell\",\"plums\"],\"return_text\":true}",
             200);
    CHECK_STR(text_at(v, "0/text"), "plums");
    ses_string header = ses_http_response_header(&s->a, "x-warning");
    CHECK(ses_equal(header.p, header.n, warning));
    v = post(s, "/v1/rerank", "{\"query\":\"plums\",\"documents\":[\"a bell\",\"plums\"],\"top_n\":1}", 200);
    CHECK(ses_json_len(member(v, "results")) == 1 && number_at(v, "results/0/index") == 1);
    /* a model made for another task ranks nothing */
    check_text(s, post(s, "/v2/rerank", "{\"query\":\"a\",\"documents\":[\"b\"],\"model\":\"mask\"}", 400),
               "message", "mask does not support rerank");
}

/* ---- errors ---- */

static void test_errors(serving *s)
{
    CHECK_STR(shape_of(s, get(s, "/v1/nothing", 404)), "{error:{message:s,type:s,param:0,code:s}}");
    CHECK_STR(shape_of(s, get(s, "/v2/nothing", 404)), "{message:s}");
    CHECK_STR(shape_of(s, get(s, "/v2/rerank", 405)), "{message:s}");
    CHECK_STR(shape_of(s, get(s, "/v1/embeddings", 405)), "{error:{message:s,type:s,param:0,code:0}}");
    CHECK_STR(shape_of(s, get(s, "/predict", 405)), "{error:s,error_type:s}");
    CHECK_STR(shape_of(s, get(s, "/api/nothing", 404)), "{error:s}");
    CHECK_STR(shape_of(s, post(s, "/v1/rerank", "{\"query\":\"a\",\"documents\":5}", 400)), "{message:s}");
}

int main(void)
{
    serving s;
    make_models();
    ses_server_options o = options();
    serving_start(&s, &o);
    test_aliases(&s);
    test_types(&s);
    test_cosines(&s);
    test_errors(&s);
    serving_stop(&s);
    test_wrong_aliases();
    test_any_model();
    test_tiktoken();
    remove_models();
    return check_report();
}
