/* Requests that the server rejects: invalid bodies, keys and limits, in the style of each route. */
#define _GNU_SOURCE
#include "serve/route.h"
#include "serve_fixture.h"

static const char *models[8];

static ses_server_options options(void)
{
    static char encoder[300], rewriter[300];
    snprintf(encoder, sizeof encoder, "encoder=%s", tmp_path("encoder"));
    snprintf(rewriter, sizeof rewriter, "rewriter=%s", tmp_path("rewriter"));
    size_t n = 0;
    models[n++] = encoder;
    models[n++] = "mask=tests/pipelines/bert-mask";
    models[n++] = "label=tests/pipelines/bert-label";
    models[n++] = "qa=tests/pipelines/bert-qa";
    models[n++] = "score=tests/pipelines/bert-score";
    models[n++] = "sesame-gpt";
    models[n++] = rewriter;
    return (ses_server_options){ .models = models, .n_models = n };
}

/* ---- bodies ---- */

/* Checks the structure of an error body, and that its message has a text. */
static void check_error(serving *s, const ses_json *v, ses_error_style style, const char *part)
{
    static const char *const shapes[] = { [SES_STYLE_OPENAI] = "{error:{message:s,type:s,param:",
                                          [SES_STYLE_TEI] = "{error:s,error_type:s}",
                                          [SES_STYLE_COHERE] = "{message:s}",
                                          [SES_STYLE_PLAIN] = "{error:s}" };
    const char *shape = shape_of(s, v), *want = shapes[style];
    CHECK_MSG(style == SES_STYLE_OPENAI ? !strncmp(shape, want, strlen(want)) : !strcmp(shape, want),
              "%s, wanted %s", shape, want);
    const char *message = text_at(v, style == SES_STYLE_OPENAI   ? "error/message"
                                     : style == SES_STYLE_COHERE ? "message"
                                                                 : "error");
    CHECK_MSG(strstr(message, part) && !strchr(message, '\n'), "\"%s\" lacks \"%s\"", message, part);
}

enum { O = SES_STYLE_OPENAI, T = SES_STYLE_TEI, C = SES_STYLE_COHERE, P = SES_STYLE_PLAIN };

static const struct {
    const char *path, *body;
    int status, style;
    const char *part;
} cases[] = {
    /* not JSON, not an object, no input */
    { "/v1/embeddings", "{", 400, O, "not valid JSON" },
    { "/embed", "{\"inputs\":}", 422, T, "not valid JSON" },
    { "/api/embed", "", 400, P, "not valid JSON" },
    { "/embed", "[\"a\"]", 422, T, "must be a JSON object, not an array" },
    { "/v1/embeddings", "{\"input\":\"\xff\"}", 400, O, "not valid JSON" },
    { "/v1/embeddings", "{}", 400, O, "\"input\" is missing" },
    { "/v1/embeddings", "{\"input\":null}", 400, O, "\"input\" is missing" },
    { "/v1/embeddings", "{\"input\":[]}", 400, O, "is empty" },
    { "/v1/embeddings", "{\"input\":\"\"}", 400, O, "empty" },
    { "/v1/embeddings", "{\"input\":[\"a\",\"\"]}", 400, O, "element 1" },
    { "/embed", "{\"inputs\":\"\"}", 400, T, "empty" },
    { "/classify", "{\"input\":[\"plums\",\"\"]}", 400, O, "element 1 is empty" },
    { "/predict", "{\"inputs\":\"\"}", 400, T, "empty" },
    { "/rerank", "{\"query\":\"\",\"texts\":[\"a\"]}", 400, T, "empty" },
    { "/attention", "{\"inputs\":\"\"}", 400, T, "empty" },
    { "/models/encoder", "{\"inputs\":\"a\",\"parameters\":[null]}", 400, P, "must be an object" },
    { "/models/label", "{\"inputs\":\"a\",\"parameters\":[1]}", 400, P, "must be an object" },
    { "/v1/completions", "{\"prompt\":\"\"}", 400, O, "empty" },
    { "/api/embeddings", "{\"prompt\":\"\"}", 400, P, "empty" },
    { "/embed", "{\"inputs\":[]}", 400, T, "is empty" },
    { "/embed_all", "{}", 422, T, "missing" },
    { "/embed_sparse", "{}", 422, T, "missing" },
    { "/predict", "{}", 422, T, "missing" },
    { "/predict", "{\"inputs\":[]}", 400, T, "empty" },
    { "/classify", "{}", 400, O, "missing" },
    { "/rerank", "{\"texts\":[\"a\"]}", 422, T, "\"query\" is missing" },
    { "/rerank", "{\"query\":\"a\"}", 422, T, "\"texts\" is missing" },
    { "/rerank", "{\"query\":\"a\",\"texts\":[]}", 400, T, "empty" },
    { "/v1/rerank", "{\"query\":\"a\",\"documents\":[]}", 400, C, "empty" },
    { "/score", "{\"queries\":\"a\"}", 400, O, "\"documents\" is missing" },
    { "/similarity", "{}", 422, T, "missing" },
    { "/similarity", "{\"inputs\":{\"source_sentence\":\"a\",\"sentences\":[]}}", 400, T, "empty" },
    { "/tokenize", "{}", 422, T, "missing" },
    { "/decode", "{}", 422, T, "missing" },
    { "/detokenize", "{}", 400, P, "missing" },
    { "/api/embed", "{}", 400, P, "missing" },
    { "/api/embeddings", "{}", 400, P, "missing" },
    { "/v1/completions", "{}", 400, O, "missing" },
    { "/models/mask", "{}", 400, P, "missing" },
    { "/models/mask", "{\"inputs\":[]}", 400, P, "empty" },
    { "/attention", "{}", 422, T, "\"inputs\"" },
    { "/analyze", "{\"inputs\":\"a\"}", 422, T, "analysis" },
    { "/analyze", "{\"analysis\":\"none\",\"inputs\":\"a\"}", 422, T, "is not an analysis" },
    { "/analyze", "{\"analysis\":\"geometry\",\"inputs\":\"a\"}", 422, T, "works on files" },
    { "/analyze", "{\"analysis\":\"explain\",\"inputs\":\"\"}", 400, T, "empty" },
    { "/analyze", "{\"analysis\":\"explain\",\"inputs\":\"a\",\"parameters\":{\"influence\":\"x\"}}", 422, T,
      "file" },
    { "/analyze", "{\"analysis\":\"explain\",\"inputs\":\"a\",\"parameters\":{\"stepz\":1}}", 422, T,
      "stepz" },
    /* wrong types */
    { "/v1/embeddings", "{\"input\":5}", 400, O, "must be a string or a list of strings" },
    { "/v1/embeddings", "{\"input\":{\"a\":\"b\"}}", 400, O, "must be" },
    { "/v1/embeddings", "{\"input\":[\"a\",5]}", 400, O, "element 1" },
    { "/v1/embeddings", "{\"input\":\"a\",\"model\":5}", 400, O, "\"model\" must be a string" },
    { "/v1/embeddings", "{\"input\":\"a\",\"model\":\"encoder\\u0000x\"}", 400, O, "NUL" },
    { "/v1/embeddings", "{\"input\":\"a\",\"dimensions\":\"4\"}", 400, O, "an integer" },
    { "/v1/embeddings", "{\"input\":\"a\",\"dimensions\":0}", 400, O, "from 1" },
    { "/v1/embeddings", "{\"input\":\"a\",\"dimensions\":17}", 400, O, "16" },
    { "/v1/embeddings", "{\"input\":\"a\",\"dimensions\":1.5}", 400, O, "an integer" },
    { "/v1/embeddings", "{\"input\":\"a\",\"encoding_format\":\"hex\"}", 400, O, "one of" },
    { "/v1/embeddings", "{\"input\":\"a\",\"encoding_format\":1}", 400, O, "a string" },
    { "/v1/embeddings", "{\"input\":[62,124]}", 400, O, "check_embedding_ctx_length=False" },
    { "/v1/embeddings", "{\"input\":[[62,124]]}", 400, O, "token ids" },
    { "/embed", "{\"inputs\":{}}", 422, T, "must be" },
    { "/embed", "{\"inputs\":\"a\",\"normalize\":\"yes\"}", 422, T, "true or false" },
    { "/embed", "{\"inputs\":\"a\",\"truncate\":1}", 422, T, "true or false" },
    { "/embed", "{\"inputs\":\"a\",\"truncation_direction\":\"Up\"}", 422, T, "\"Left\", \"Right\"" },
    { "/embed", "{\"inputs\":\"a\",\"prompt_name\":\"poem\"}", 422, T, "poem" },
    { "/embed", "{\"inputs\":\"a\",\"prompt_name\":[]}", 422, T, "a string" },
    { "/embed_all", "{\"inputs\":[[\"a\"]]}", 422, T, "element 0" },
    { "/embed_sparse", "{\"inputs\":true}", 422, T, "must be" },
    { "/embed_sparse", "{\"inputs\":\"a\",\"model\":\"qa\"}", 422, T, "does not support" },
    { "/predict", "{\"inputs\":5}", 422, T, "must be" },
    { "/predict", "{\"inputs\":[\"a\",\"b\",\"c\"]}", 422, T, "pair" },
    { "/predict", "{\"inputs\":[[\"a\"],\"b\",5]}", 422, T, "must be" },
    { "/predict", "{\"inputs\":[[\"a\"],[]]}", 422, T, "must be" },
    { "/predict", "{\"inputs\":\"a\",\"raw_scores\":0}", 422, T, "true or false" },
    { "/classify", "{\"input\":[5]}", 400, O, "element 0" },
    { "/rerank", "{\"query\":[\"a\"],\"texts\":[\"a\"]}", 422, T, "\"query\" must be a string" },
    { "/rerank", "{\"query\":\"a\",\"texts\":[5]}", 422, T, "element 0" },
    { "/rerank", "{\"query\":\"a\",\"texts\":[\"a\"],\"top_n\":0}", 422, T, "from 1" },
    { "/rerank", "{\"query\":\"a\",\"texts\":[\"a\"],\"return_text\":\"a\"}", 422, T, "true or false" },
    { "/v1/rerank", "{\"query\":\"a\",\"documents\":\"a\"}", 400, C, "a list" },
    { "/v1/rerank", "{\"query\":\"a\",\"documents\":[{\"txt\":\"a\"}]}", 400, C, "document 0" },
    { "/v2/rerank", "{\"query\":\"a\",\"documents\":[\"a\"],\"top_n\":\"1\"}", 400, C, "an integer" },
    { "/score", "{\"queries\":[\"a\",\"b\"],\"documents\":[\"a\",\"b\",\"c\"]}", 400, O, "not 2" },
    { "/similarity", "{\"inputs\":\"a\"}", 422, T, "an object" },
    { "/similarity", "{\"inputs\":{\"source_sentence\":5,\"sentences\":[\"a\"]}}", 422, T, "a string" },
    { "/similarity", "{\"inputs\":{\"source_sentence\":\"a\",\"sentences\":[5]}}", 422, T, "element 0" },
    { "/tokenize", "{\"inputs\":5}", 422, T, "must be" },
    { "/tokenize", "{\"inputs\":\"a\",\"add_special_tokens\":5}", 422, T, "true or false" },
    { "/tokenize", "{\"content\":\"a\",\"with_pieces\":5}", 422, T, "true or false" },
    { "/decode", "{\"ids\":5}", 422, T, "a list" },
    { "/decode", "{\"ids\":[\"a\"]}", 422, T, "element 0" },
    { "/decode", "{\"ids\":[999]}", 422, T, "vocabulary" },
    { "/decode", "{\"ids\":[-1]}", 422, T, "vocabulary" },
    { "/detokenize", "{\"tokens\":[1.5]}", 400, P, "element 0" },
    { "/api/embed", "{\"input\":5}", 400, P, "must be" },
    { "/api/embed", "{\"input\":\"a\",\"truncate\":5}", 400, P, "true or false" },
    { "/attention", "{\"inputs\":\"a\",\"layer\":-1}", 422, T, "from 0" },
    { "/attention", "{\"inputs\":\"a\",\"pair\":5}", 422, T, "\"pair\" must be a string" },
    { "/attention", "{\"inputs\":\"a\",\"words\":5}", 422, T, "\"words\"" },
    { "/similarity",
      "{\"inputs\":{\"source_sentence\":\"a\",\"sentences\":\"b\"},\"parameters\":[null,null]}", 422, T,
      "\"parameters\" must be an object" },
    { "/tokenize", "{\"content\":[\"a\",\"b\"]}", 422, T, "\"content\" must be a string" },
    { "/tokenize", "{\"content\":\"a\",\"inputs\":\"b\"}", 422, T, "exclude each other" },
    { "/tokenize", "{\"inputs\":\"a\",\"add_special\":5}", 422, T, "true or false" },
    { "/api/embeddings", "{\"prompt\":[\"a\",\"b\"]}", 400, P, "\"prompt\" must be a string" },
    { "/rerank", "{\"query\":\"a\",\"texts\":[\"a\"],\"documents\":[\"b\"]}", 422, T, "exclude each other" },
    { "/rerank", "{\"query\":\"a\",\"texts\":[\"a\"],\"return_documents\":5}", 422, T, "true or false" },
    { "/score", "{\"queries\":\"a\",\"text_1\":\"a\",\"documents\":\"b\"}", 400, O, "exclude each other" },
    { "/score", "{\"queries\":\"a\",\"text_2\":\"b\"}", 400, O, "\"text_1\" is missing" },
    { "/predict", "{\"inputs\":[\"\",\"\"]}", 400, T, "empty" },
    { "/predict", "{\"inputs\":[\"\"]}", 400, T, "empty" },
    { "/score", "{\"queries\":\"\",\"documents\":\"a\"}", 400, O, "\"queries\" is empty" },
    { "/analyze", "{\"analysis\":\"explain\",\"inputs\":\"a\\u0000b\"}", 422, T, "NUL" },
    { "/models/label", "{\"inputs\":\"\"}", 400, P, "empty" },
    { "/models/label", "{\"inputs\":{\"text\":\"\",\"text_pair\":\"a\"}}", 400, P, "empty" },
    { "/models/qa", "{\"inputs\":{\"question\":\"a\",\"context\":\"\"}}", 400, P, "empty" },
    { "/models/encoder", "{\"inputs\":\"a\",\"stream\":[]}", 400, P, "true or false" },
    { "/models/mask", "{\"inputs\":\"[MASK]\",\"parameters\":{\"top_k\":[5]}}", 400, P,
      "an integer or \"all\"" },
    { "/models/mask", "{\"inputs\":\"[MASK]\",\"parameters\":{\"top_k\":\"5\"}}", 400, P,
      "an integer or \"all\"" },
    { "/models/mask", "{\"inputs\":[\"[MASK]\"],\"parameters\":{\"top_k\":-5}}", 400, P, "out of range" },
    { "/models/mask", "{\"inputs\":\"[MASK]\",\"parameters\":{\"do_sample\":\"true\"}}", 400, P,
      "true or false" },
    { "/models/sesame-gpt", "{\"inputs\":\"a\",\"parameters\":{\"do_sample\":1}}", 400, P,
      "\"do_sample\" must be one of false, true, not an integer" },
    /* generation */
    { "/v1/completions", "{\"prompt\":5}", 400, O, "must be" },
    { "/v1/completions", "{\"prompt\":\"a\",\"max_tokens\":-1}", 400, O, "from 0" },
    { "/v1/completions", "{\"prompt\":\"a\",\"max_tokens\":5000}", 400, O, "at most 1024" },
    { "/v1/completions", "{\"prompt\":\"a\",\"max_tokens\":0}", 400, O, "echo" },
    { "/v1/completions", "{\"prompt\":\"a\",\"n\":0}", 400, O, "from 1" },
    { "/v1/completions", "{\"prompt\":\"a\",\"n\":65}", 400, O, "from 1" },
    { "/v1/completions", "{\"prompt\":\"a\",\"logprobs\":21}", 400, O, "from 0" },
    { "/v1/completions", "{\"prompt\":\"a\",\"temperature\":-1}", 400, O, "from 0" },
    { "/v1/completions", "{\"prompt\":\"a\",\"top_p\":2}", 400, O, "top" },
    { "/v1/completions", "{\"prompt\":\"a\",\"seed\":\"x\"}", 400, O, "seed" },
    { "/v1/completions", "{\"prompt\":\"a\",\"stop\":5}", 400, O, "\"stop\"" },
    { "/v1/completions", "{\"prompt\":\"a\",\"stop\":[\"\"]}", 400, O, "\"stop\"" },
    { "/v1/completions", "{\"prompt\":\"a\",\"stream\":\"x\"}", 400, O, "true or false" },
    { "/v1/completions", "{\"prompt\":\"a\",\"stream\":true,\"echo\":true}", 400, O, "excludes" },
    { "/v1/completions", "{\"prompt\":\"a\",\"stop\":[\"\"]}", 400, O, "stop" },
    { "/v1/chat/completions", "{\"messages\":[]}", 400, O, "has no chat template" },
    { "/v1/completions", "{\"prompt\":\"a\",\"stream_options\":5}", 400, O, "an object" },
    { "/v1/completions", "{\"prompt\":\"a\",\"suffix\":\"b\"}", 400, O, "suffix" },
    { "/v1/completions", "{\"prompt\":\"a\",\"logit_bias\":{\"999999\":2}}", 400, O, "logit_bias" },
    { "/v1/completions", "{\"prompt\":\"a\",\"presence_penalty\":2.5}", 400, O,
      "\"presence_penalty\" must be from -2 to 2" },
    { "/v1/completions", "{\"prompt\":\"a\",\"frequency_penalty\":\"x\"}", 400, O, "frequency_penalty" },
    { "/v1/completions", "{\"prompt\":\"a\",\"best_of\":3,\"n\":2}", 400, O,
      "\"best_of\" must be from 1 to 2" },
    { "/v1/completions", "{\"prompt\":\"a\",\"temperature\":0,\"n\":2}", 400, O, "temperature" },
    { "/v1/completions", "{\"prompt\":\"a\",\"num_beams\":65}", 400, O, "from 1 to 64" },
    { "/v1/completions", "{\"prompt\":\"a\",\"model\":\"mask\"}", 400, O, "does not support" },
    { "/models/sesame-gpt", "{\"inputs\":\"a\",\"parameters\":{\"num_beams\":65}}", 400, P, "65 sequences" },
    { "/models/sesame-gpt", "{\"inputs\":\"a\",\"parameters\":{\"template\":\"/etc/passwd\"}}", 400, P,
      "requests cannot read files" },
    { "/models/rewriter/pipeline/summarization",
      "{\"inputs\":\"w5\",\"parameters\":{\"generate_parameters\":{\"template\":\"none\"}}}", 400, P,
      "requests cannot read files" },
    { "/models/sesame-gpt", "{\"inputs\":\"a\",\"stream\":5}", 400, P, "true or false" },
    { "/models/sesame-gpt", "{\"inputs\":[\"a\",\"b\"],\"stream\":true}", 400, P, "one input" },
    { "/models/sesame-gpt", "{\"inputs\":\"a\",\"parameters\":{\"max_new_tokens\":5000}}", 400, P,
      "at most 1024" },
    { "/models/sesame-gpt", "{\"inputs\":\"a\",\"parameters\":{\"min_length\":5000}}", 400, P,
      "\"min_length\" is 5000, which is too large: at most 1024 new tokens" },
    { "/models/sesame-gpt", "{\"inputs\":\"a\",\"parameters\":{\"temperature\":\"x\"}}", 400, P,
      "temperature" },
    /* pipelines */
    { "/models/mask", "{\"inputs\":\"no mask\"}", 400, P, "[MASK]" },
    { "/models/mask", "{\"inputs\":5}", 400, P, "" },
    { "/models/mask", "{\"inputs\":\"[MASK]\",\"parameters\":[]}", 400, P, "an object" },
    { "/models/mask", "{\"inputs\":\"[MASK]\",\"parameters\":{\"top_q\":5}}", 400, P, "top" },
    { "/models/mask", "{\"inputs\":\"[MASK]\",\"parameters\":{\"top_k\":{}}}", 400, P, "top_k" },
    { "/models/mask", "{\"inputs\":\"[MASK]\",\"parameters\":{\"top_k\":-5}}", 400, P, "top" },
    { "/models/qa", "{\"inputs\":\"a\"}", 400, P, "" },
    { "/models/qa", "{\"inputs\":{\"question\":\"a\"}}", 400, P, "context" },
    { "/models/qa/pipeline/fill-mask", "{\"inputs\":\"a [MASK]\"}", 400, P, "does not support" },
    { "/models/qa/pipeline/poetry", "{\"inputs\":\"a\"}", 404, P, "no task" },
    { "/models/label/pipeline/zero-shot-classification", "{\"inputs\":\"a\"}", 400, P, "label" },
    { "/models/label/pipeline/zero-shot-classification",
      "{\"inputs\":\"a\",\"parameters\":{\"candidate_labels\":[]}}", 400, P, "empty" },
    /* unknown models and routes */
    { "/v1/embeddings", "{\"input\":\"a\",\"model\":\"none\"}", 404, O, "no model \"none\"" },
    { "/embed", "{\"inputs\":\"a\",\"model\":\"none\"}", 404, T, "no model" },
    { "/rerank", "{\"query\":\"a\",\"texts\":[\"a\"],\"model\":\"none\"}", 404, T, "no model" },
    { "/score", "{\"queries\":\"a\",\"documents\":[\"a\"],\"model\":\"none\"}", 404, O, "no model" },
    { "/tokenize", "{\"inputs\":\"a\",\"model\":\"none\"}", 404, T, "no model" },
    { "/models/none", "{\"inputs\":\"a\"}", 404, P, "no model" },
    { "/models/", "{\"inputs\":\"a\"}", 404, P, "no model" },
    { "/v1/models/none", NULL, 404, O, "no model" },
    { "/ui/none.js", NULL, 404, P, "no such file" },
    { "/nothing", NULL, 404, P, "/openapi.json" },
    { "/nothing", "{}", 404, P, "/openapi.json" },
    { "/embed", NULL, 405, T, "POST" },
    { "/health", "{}", 405, T, "GET" },
    { "/admin/models/mask/reload", "{}", 404, P, "no route" },
};

static void test_bodies(serving *s)
{
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        const ses_json *v = cases[i].body ? post(s, cases[i].path, cases[i].body, cases[i].status)
                                          : get(s, cases[i].path, cases[i].status);
        if (s->a.status == cases[i].status) check_error(s, v, (ses_error_style)cases[i].style, cases[i].part);
        if (check_failed > 40) return;
    }
    /* the server answers as before */
    post(s, "/embed", "{\"inputs\":\"a\"}", 200);
}

/* ---- error codes ---- */

static void test_codes(serving *s)
{
    const ses_json *v = post(s, "/v1/embeddings", "{\"input\":\"a\",\"model\":\"none\"}", 404);
    CHECK_STR(text_at(v, "error/code"), "model_not_found");
    CHECK_STR(text_at(v, "error/param"), "model");
    CHECK_STR(text_at(v, "error/type"), "not_found_error");
    v = post(s, "/v1/embeddings", "{\"input\":5}", 400);
    CHECK_STR(text_at(v, "error/type"), "invalid_request_error");
    CHECK_STR(text_at(v, "error/param"), "input");
    v = post(s, "/embed", "{\"inputs\":[]}", 400);
    CHECK_STR(text_at(v, "error_type"), "Empty");
    v = post(s, "/embed", "{\"inputs\":5}", 422);
    CHECK_STR(text_at(v, "error_type"), "Validation");
    v = post_with(s, "Content-Type: text/plain\r\n", "/embed", "{\"inputs\":\"a\"}", 415);
    CHECK(strstr(text_at(v, "error"), "text/plain"));
    post_with(s, "Content-Type: application/json; charset=utf-8\r\n", "/embed", "{\"inputs\":\"a\"}", 200);
    post_with(s, "Content-Type: application/jsonl\r\n", "/embed", "{\"inputs\":\"a\"}", 415);
    post_with(s, "Content-Type: Application/JSON\r\n", "/embed", "{\"inputs\":\"a\"}", 200);
    post_with(s, NULL, "/embed", "{\"inputs\":\"a\"}", 200);
    get(s, "/embed", 405);
    ses_string allow = ses_http_response_header(&s->a, "allow");
    CHECK(ses_equal(allow.p, allow.n, "POST"));
    ask(s, &(ses_http_request){ .method = "HEAD", .target = "/health" }, 200);
    CHECK(s->a.body.n == 0 && header_number(s, "content-length") > 0);
    ask(s, &(ses_http_request){ .method = "HEAD", .target = "/embed" }, 405);
    ask(s, &(ses_http_request){ .method = "OPTIONS", .target = "/embed" }, 405);
    ask(s, &(ses_http_request){ .method = "DELETE", .target = "/v1/models/mask" }, 405);
    /* no origin is allowed to read responses across sites */
    CHECK(!ses_http_response_header(&s->a, "access-control-allow-origin").p);
}

/* Texts that may be empty: one of a pair, and documents. */
static void test_empty_texts(serving *s)
{
    static const struct {
        const char *path, *body;
    } list[] = {
        { "/predict", "{\"inputs\":[\"a\",\"\"]}" },
        { "/predict", "{\"inputs\":[[\"\",\"a\"],[\"a\"]]}" },
        { "/score", "{\"queries\":\"a\",\"documents\":[\"a\",\"\"]}" },
        { "/v1/score", "{\"text_1\":\"a\",\"text_2\":\"\"}" },
        { "/models/label", "{\"inputs\":{\"text\":\"a\",\"text_pair\":\"\"}}" },
        { "/models/score", "{\"inputs\":{\"query\":\"a\",\"texts\":[\"a\",\"\"]}}" },
    };
    for (size_t i = 0; i < SES_LEN(list); i++) post(s, list[i].path, list[i].body, 200);
}

/* The limit of a text to analyze is in bytes. */
static void test_analysis_limit(serving *s)
{
    char *body =
        body_of("{\"analysis\":\"explain\",\"model\":\"label\",\"inputs\":\"", 2049, "\xc3\xa9", "", "\"}");
    check_error(s, post(s, "/analyze", body, 422), SES_STYLE_TEI, "4098 bytes; 4096 are the limit");
    free(body);
}

static void test_limits(serving *s)
{
    static const struct {
        const char *path, *before, *after;
    } lists[] = { { "/v1/embeddings", "{\"input\":[", "]}" },
                  { "/embed", "{\"inputs\":[", "]}" },
                  { "/classify", "{\"input\":[", "]}" },
                  { "/rerank", "{\"query\":\"a\",\"texts\":[", "]}" },
                  { "/v1/rerank", "{\"query\":\"a\",\"documents\":[", "]}" },
                  { "/similarity", "{\"inputs\":{\"source_sentence\":\"a\",\"sentences\":[", "]}}" },
                  { "/models/label", "{\"inputs\":[", "]}" } };
    for (size_t i = 0; i < SES_LEN(lists); i++) {
        char *body = body_of(lists[i].before, 2049, "a", "\"", lists[i].after);
        post(s, lists[i].path, body, 413);
        free(body);
    }
    char *full = body_of("{\"inputs\":[", 2048, "a", "\"", "]}");
    CHECK(ses_json_len(post(s, "/embed", full, 200)) == 2048);
    free(full);
    char *body = body_of("{\"inputs\":\"a ", 60, "plums ", "", "\",\"truncate\":false}");
    check_error(s, post(s, "/embed", body, 422), SES_STYLE_TEI, "63 tokens");
    check_error(s, post(s, "/embed_all", body, 422), SES_STYLE_TEI, "too long");
    free(body);
}

/* A small body can ask for much memory. */
static void test_amplification(serving *s)
{
    char *text = body_of("{\"inputs\":{\"question\":\"he\",\"context\":\"he", 190000, " he", "",
                         "\"},\"parameters\":{\"doc_stride\":43}}");
    const ses_json *v = post(s, "/models/qa", text, 400);
    CHECK_MSG(strstr(text_at(v, "error"), "smaller stride"), "%s", text_at(v, "error"));
    free(text);
    ses_buf b = { 0 };
    ses_buf_puts(&b, "{\"prompt\":\"a\",\"max_tokens\":1,\"logit_bias\":{\"0\":1");
    for (int i = 1; i < 1024; i++) ses_buf_appendf(&b, ",\"%d\":1", i);
    size_t n = b.len;
    ses_buf_puts(&b, "}}");
    post(s, "/v1/completions", b.data, 200);
    b.len = n;
    ses_buf_puts(&b, ",\"1024\":1}}");
    v = post(s, "/v1/completions", b.data, 400);
    CHECK(strstr(text_at(v, "error/message"), "at most 1024"));
    ses_buf_free(&b);
}

static void test_headers(serving *s)
{
    static const char input[] = "{\"inputs\":\"a\"}";
    check_error(s, post_with(s, "x-deadline-ms: 0.0001\r\n", "/embed", input, 504), SES_STYLE_TEI,
                "deadline");
    check_error(s, post_with(s, "x-deadline-ms: 0.0001\r\n", "/v1/completions", "{\"prompt\":\"a\"}", 504),
                SES_STYLE_OPENAI, "deadline");
    static const char analysis[] = "{\"analysis\":\"explain\",\"inputs\":\"a\",\"model\":\"label\"}";
    for (int i = 0; i < 2; i++) { /* an analysis that ended early leaves room for the next one */
        check_error(s, post_with(s, "x-deadline-ms: 0.0001\r\n", "/analyze", analysis, 504), SES_STYLE_TEI,
                    "deadline");
        check_error(s, post_with(s, "x-deadline-ms: 0.0001\r\n", "/attention", input, 504), SES_STYLE_TEI,
                    "deadline");
        post_with(s, "x-deadline-ms: 60000\r\n", "/analyze", analysis, 200);
    }
    post_with(s, "x-deadline-ms: 60000\r\n", "/embed", input, 200);
    static const char *const bad[] = { "0", "-5", "soon", "5s", "nan", "inf", "1e30" };
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        char header[64];
        snprintf(header, sizeof header, "x-deadline-ms: %s\r\n", bad[i]);
        check_error(s, post_with(s, header, "/embed", input, 422), SES_STYLE_TEI, "x-deadline-ms");
    }
    post_with(s, "x-priority: bulk\r\n", "/embed", input, 200);
    post_with(s, "x-priority: interactive\r\n", "/embed", input, 200);
    check_error(s, post_with(s, "x-priority: high\r\n", "/embed", input, 422), SES_STYLE_TEI, "x-priority");
    check_error(s, post_with(s, "x-priority: high\r\n", "/v1/embeddings", "{\"input\":\"a\"}", 400),
                SES_STYLE_OPENAI, "x-priority");
}

/* ---- errors of items ---- */

static void test_items(serving *s)
{
    const ses_json *v =
        post(s, "/models/mask", "{\"inputs\":[\"a [MASK]\",\"no mask\",\"the [MASK]\"]}", 200);
    CHECK(ses_json_len(v) == 3 && ses_json_len(member(v, "0")) == 5 && ses_json_len(member(v, "2")) == 5);
    CHECK(strstr(text_at(v, "1/error"), "mask"));
    v = post(s, "/models/qa",
             "{\"inputs\":[{\"question\":\"Who?\",\"context\":\"\"},{\"question\":\"Who?\",\"context\":"
             "\"The keeper.\"}]}",
             200);
    CHECK_STR(shape_of(s, member(v, "1")), "{score:n,start:n,end:n,answer:s}");
}

/* ---- keys ---- */

static void test_keys(void)
{
    serving s;
    write_string(tmp_path("keys"), "# keys\n\nfirst-key-1\nsecond-key-2  \r\n");
    ses_server_options o = options();
    char path[300];
    snprintf(path, sizeof path, "%s", tmp_path("keys"));
    o.api_key_file = path;
    o.n_models = 1;
    serving_start(&s, &o);
    static const char input[] = "{\"inputs\":\"a\"}";
    check_error(&s, post(&s, "/embed", input, 401), SES_STYLE_TEI, "API key");
    ses_string challenge = ses_http_response_header(&s.a, "www-authenticate");
    CHECK(ses_equal(challenge.p, challenge.n, "Bearer"));
    check_error(&s, post(&s, "/v1/embeddings", "{\"input\":\"a\"}", 401), SES_STYLE_OPENAI, "API key");
    check_error(&s, post(&s, "/api/embed", "{\"input\":\"a\"}", 401), SES_STYLE_PLAIN, "API key");
    static const char *const wrong[] = { "Authorization: Bearer first-key-\r\n",
                                         "Authorization: Bearer first-key-11\r\n",
                                         "Authorization: Bearer first-key-1first-key-1\r\n",
                                         "Authorization: Bearer \r\n",
                                         "Authorization: Basic first-key-1\r\n",
                                         "Authorization: Bearer # keys\r\n",
                                         "Authorization: first-key-1\r\n" };
    for (size_t i = 0; i < SES_LEN(wrong); i++) post_with(&s, wrong[i], "/embed", input, 401);
    post_with(&s, "Authorization: Bearer first-key-1\r\n", "/embed", input, 200);
    post_with(&s, "authorization: bearer second-key-2\r\n", "/embed", input, 200);
    get(&s, "/stats", 401);
    get(&s, "/v1/models", 401);
    get(&s, "/nothing", 401);
    get(&s, "/health", 200);
    get(&s, "/health/ready", 200);
    get(&s, "/metrics", 200);
    get(&s, "/", 200);
    get(&s, "/openapi.json", 200);
    serving_stop(&s);
}

static void test_body_limit(void)
{
    serving s;
    ses_server_options o = options();
    o.n_models = 1, o.max_inputs = 3;
    o.http.limits.max_body_bytes = 2048;
    serving_start(&s, &o);
    char *body = body_of("{\"inputs\":\"", 400, "plums ", "", "\"}");
    ask(&s, &(ses_http_request){ .method = "POST", .target = "/embed", .body = body, .n = strlen(body) },
        413);
    free(body);
    post(&s, "/embed", "{\"inputs\":[\"a\",\"b\",\"c\",\"d\"]}", 413);
    post(&s, "/embed", "{\"inputs\":[\"a\",\"b\",\"c\"]}", 200);
    CHECK(number_at(get(&s, "/info", 200), "max_client_batch_size") == 3);
    serving_stop(&s);
}

/* The server shortens a default length above its limit, and refuses a least length above it. */
static void test_least_length(void)
{
    static const struct {
        const char *parameters, *part;
    } list[] = {
        { "{}", NULL },
        { "{\"min_new_tokens\":4}", NULL },
        { "{\"min_new_tokens\":5}", "\"min_new_tokens\" is 5, which is too large: at most 4 new tokens" },
        { "{\"min_length\":40}", "\"min_length\" is 40, which is too large: at most 4 new tokens" },
    };
    serving s;
    ses_server_options o = options();
    o.max_new_tokens = 4;
    serving_start(&s, &o);
    for (size_t i = 0; i < SES_LEN(list); i++) {
        char body[256];
        snprintf(body, sizeof body, "{\"inputs\":\"a\",\"parameters\":%s}", list[i].parameters);
        const ses_json *v = post(&s, "/models/sesame-gpt", body, list[i].part ? 400 : 200);
        if (list[i].part) check_error(&s, v, SES_STYLE_PLAIN, list[i].part);
    }
    const ses_json *v =
        post(&s, "/models/rewriter/pipeline/summarization",
             "{\"inputs\":\"w5\",\"parameters\":{\"generate_parameters\":{\"min_new_tokens\":9}}}", 400);
    check_error(&s, v, SES_STYLE_PLAIN, "\"min_new_tokens\" is 9");
    serving_stop(&s);
}

/* ---- weights that give NaN ---- */

static void test_nan(void)
{
    serving s;
    static char spec[6][300];
    static const char *const from[] = { "tests/pipelines/bert-mask", "tests/pipelines/bert-label",
                                        "tests/pipelines/bert-tag",  "tests/pipelines/bert-qa",
                                        "tests/golden/gpt2-lm",      "tests/golden/bart-lm" };
    const char *list[7] = { 0 };
    for (int i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "nan%d", i);
        if (strstr(from[i], "golden"))
            make_generator(from[i], name);
        else
            copy_files(from[i], tmp_path(name), model_files);
        make_nan(name);
        snprintf(spec[i], sizeof spec[i], "%s", tmp_path(name));
        list[i] = spec[i];
    }
    list[6] = "good=tests/pipelines/bert-label";
    serving_start(&s, &(ses_server_options){ .models = list, .n_models = 7 });
    static const struct {
        const char *path, *body;
    } request[] = {
        { "/v1/embeddings", "{\"input\":\"a\",\"model\":\"nan0\"}" },
        { "/v1/embeddings", "{\"input\":\"a\",\"model\":\"nan0\",\"encoding_format\":\"base64\"}" },
        { "/embed", "{\"inputs\":\"a\",\"model\":\"nan0\"}" },
        { "/embed_all", "{\"inputs\":\"a\",\"model\":\"nan0\"}" },
        { "/embed_sparse", "{\"inputs\":\"a\",\"model\":\"nan0\"}" },
        { "/similarity",
          "{\"inputs\":{\"source_sentence\":\"a\",\"sentences\":[\"b\"]},\"model\":\"nan0\"}" },
        { "/models/nan0", "{\"inputs\":\"a [MASK]\"}" },
        { "/predict", "{\"inputs\":\"a\",\"model\":\"nan1\"}" },
        { "/classify", "{\"input\":\"a\",\"model\":\"nan1\"}" },
        { "/models/nan1", "{\"inputs\":\"a\"}" },
        { "/models/nan2", "{\"inputs\":\"a\"}" },
        { "/models/nan3", "{\"inputs\":{\"question\":\"Who?\",\"context\":\"The keeper.\"}}" },
        { "/attention", "{\"inputs\":\"a\",\"model\":\"nan0\"}" },
        { "/v1/completions", "{\"prompt\":\"w5\",\"model\":\"nan4\",\"max_tokens\":3}" },
        { "/v1/completions", "{\"prompt\":\"w5\",\"model\":\"nan4\",\"max_tokens\":3,\"stream\":true}" },
        { "/models/nan4", "{\"inputs\":\"w5\",\"parameters\":{\"max_new_tokens\":3}}" },
        { "/models/nan5", "{\"inputs\":\"w5\",\"parameters\":{\"max_new_tokens\":3}}" },
    };
    for (size_t i = 0; i < SES_LEN(request); i++) {
        const ses_json *v = post(&s, request[i].path, request[i].body, 500);
        const char *message = text_at(v, "error");
        if (!strcmp(message, "(none)")) message = text_at(v, "error/message");
        CHECK_MSG(strstr(message, "NaN"), "%s: %s", request[i].path, message);
    }
    const ses_json *v = post(&s, "/classify", "{\"input\":[\"a\",\"b\"],\"model\":\"nan1\"}", 200);
    CHECK(strstr(text_at(v, "data/0/error"), "NaN") && strstr(text_at(v, "data/1/error"), "NaN"));
    post(&s, "/predict", "{\"inputs\":\"a\",\"model\":\"good\"}", 200);
    serving_stop(&s);
}

int main(void)
{
    serving s;
    make_models();
    ses_server_options o = options();
    serving_start(&s, &o);
    test_bodies(&s);
    test_codes(&s);
    test_empty_texts(&s);
    test_analysis_limit(&s);
    test_limits(&s);
    test_amplification(&s);
    test_headers(&s);
    test_items(&s);
    serving_stop(&s);
    test_keys();
    test_body_limit();
    test_least_length();
    test_nan();
    remove_models();
    return check_report();
}
