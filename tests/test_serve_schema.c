/* /openapi.json and the routes agree: each member of valid requests is replaced by values of all types, and a
 * route must accept what the schema allows and refuse what it forbids. tools/serve-openapi is the long form,
 * with schemathesis. */
#define _GNU_SOURCE
#include "base/alloc.h"
#include "base/json/json_helpers.h"
#include "base/unicode/utf8.h"
#include "serve_fixture.h"

#include <math.h>
#include <regex.h>

static const char *models[8];

static ses_server_options options(void)
{
    static char encoder[300];
    snprintf(encoder, sizeof encoder, "encoder=%s", tmp_path("encoder"));
    size_t n = 0;
    models[n++] = encoder;
    models[n++] = "mask=tests/pipelines/bert-mask";
    models[n++] = "label=tests/pipelines/bert-label";
    models[n++] = "tag=tests/pipelines/bert-tag";
    models[n++] = "qa=tests/pipelines/bert-qa";
    models[n++] = "score=tests/pipelines/bert-score";
    models[n++] = "sesame-gpt";
    models[n++] = "multi=tests/pipelines/roberta-multi";
    return (ses_server_options){ .models = models, .n_models = n, .max_inputs = 4, .max_new_tokens = 4 };
}

/* ---- JSON Schema: the keywords that the description uses ---- */

static bool is_valid(const ses_json *root, const ses_json *schema, const ses_json *v);

static bool has_type(const char *name, const ses_json *v)
{
    double x;
    switch (ses_json_type_of(v)) {
    case SES_JSON_NULL: return !strcmp(name, "null");
    case SES_JSON_BOOL: return !strcmp(name, "boolean");
    case SES_JSON_STRING: return !strcmp(name, "string");
    case SES_JSON_ARRAY: return !strcmp(name, "array");
    case SES_JSON_OBJECT: return !strcmp(name, "object");
    default:
        return !strcmp(name, "number") || (!strcmp(name, "integer") && ses_json_real(v, &x) && x == trunc(x));
    }
}

static bool type_is_valid(const ses_json *types, const ses_json *v)
{
    if (ses_json_type_of(types) == SES_JSON_STRING) return has_type(ses_json_string(types, NULL), v);
    for (size_t i = 0; i < ses_json_len(types); i++)
        if (has_type(ses_json_string(ses_json_at(types, i), NULL), v)) return true;
    return false;
}

static bool is_equal(const ses_json *a, const ses_json *b)
{
    double x, y;
    bool p, q;
    size_t n, m;
    if (ses_json_real(a, &x) && ses_json_real(b, &y)) return x == y;
    if (ses_json_type_of(a) != ses_json_type_of(b)) return false;
    if (ses_json_bool(a, &p) && ses_json_bool(b, &q)) return p == q;
    const char *s = ses_json_string(a, &n), *t = ses_json_string(b, &m);
    return s && t ? n == m && !memcmp(s, t, n) : ses_json_type_of(a) == SES_JSON_NULL;
}

static bool is_among(const ses_json *list, const ses_json *v)
{
    for (size_t i = 0; i < ses_json_len(list); i++)
        if (is_equal(ses_json_at(list, i), v)) return true;
    return false;
}

static bool matches(const char *pattern, const char *s, size_t n)
{
    regex_t r;
    if (!strncmp(pattern, "^[^", 3) && strlen(pattern) < 7) return !memchr(s, 0, n); /* ^[^NUL]*$ */
    if (!strcmp(pattern, "[^,\\s]")) pattern = "[^, \t\r\n]";
    if (regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB)) return !CHECK_MSG(false, "pattern %s", pattern);
    bool found = !regexec(&r, s, 0, NULL, 0);
    regfree(&r);
    return found;
}

static bool keyword_is_valid(const ses_json *root, const char *key, const ses_json *x, const ses_json *schema,
                             const ses_json *v)
{
    double limit, number;
    size_t n = 0, valid = 0;
    const char *s = ses_json_string(v, &n);
    bool list = ses_json_type_of(v) == SES_JSON_ARRAY, object = ses_json_type_of(v) == SES_JSON_OBJECT;
    bool any = !strcmp(key, "anyOf"), one = !strcmp(key, "oneOf");
    if (!strcmp(key, "type")) return type_is_valid(x, v);
    if (!strcmp(key, "enum")) return is_among(x, v);
    if (!strcmp(key, "const")) return is_equal(x, v);
    if (!strcmp(key, "pattern")) return !s || matches(ses_json_string(x, NULL), s, n);
    if (!strcmp(key, "not")) return !is_valid(root, x, v);
    if (any || one || !strcmp(key, "allOf")) {
        for (size_t i = 0; i < ses_json_len(x); i++) valid += is_valid(root, ses_json_at(x, i), v);
        return any ? valid > 0 : one ? valid == 1 : valid == ses_json_len(x);
    }
    if (!strcmp(key, "required")) {
        for (size_t i = 0; object && i < ses_json_len(x); i++)
            if (!ses_json_get(v, ses_json_string(ses_json_at(x, i), NULL))) return false;
        return true;
    }
    if (!strcmp(key, "properties")) {
        for (size_t i = 0; object && i < ses_json_len(v); i++) {
            const ses_json *p = ses_json_get(x, ses_json_key(v, i, NULL));
            if (p && !is_valid(root, p, ses_json_at(v, i))) return false;
        }
        return true;
    }
    if (!strcmp(key, "additionalProperties")) {
        for (size_t i = 0; object && i < ses_json_len(v); i++)
            if (!ses_json_get(ses_json_get(schema, "properties"), ses_json_key(v, i, NULL)) &&
                !is_valid(root, x, ses_json_at(v, i)))
                return false;
        return true;
    }
    if (!strcmp(key, "items")) {
        for (size_t i = 0; list && i < ses_json_len(v); i++)
            if (!is_valid(root, x, ses_json_at(v, i))) return false;
        return true;
    }
    if (!strcmp(key, "contains")) {
        for (size_t i = 0; list && i < ses_json_len(v); i++)
            if (is_valid(root, x, ses_json_at(v, i))) return true;
        return !list;
    }
    if (!ses_json_real(x, &limit)) return true; /* description, default */
    if (!strcmp(key, "minItems")) return !list || (double)ses_json_len(v) >= limit;
    if (!strcmp(key, "maxItems")) return !list || (double)ses_json_len(v) <= limit;
    if (!strcmp(key, "minLength")) return !s || (double)ses_utf8_count(s, n) >= limit;
    if (!strcmp(key, "maxLength")) return !s || (double)ses_utf8_count(s, n) <= limit;
    if (!ses_json_real(v, &number)) return true;
    if (!strcmp(key, "minimum")) return number >= limit;
    if (!strcmp(key, "maximum")) return number <= limit;
    if (!strcmp(key, "exclusiveMinimum")) return number > limit;
    CHECK_MSG(!strcmp(key, "default"), "keyword %s is not known to this test", key);
    return true;
}

static bool is_valid(const ses_json *root, const ses_json *schema, const ses_json *v)
{
    static const char prefix[] = "#/components/schemas/";
    const char *ref = ses_json_string(ses_json_get(schema, "$ref"), NULL);
    const ses_json *schemas = ses_json_get(ses_json_get(root, "components"), "schemas");
    if (ref && !is_valid(root, ses_json_get(schemas, ref + sizeof prefix - 1), v)) return false;
    for (size_t i = 0; i < ses_json_len(schema); i++)
        if (!keyword_is_valid(root, ses_json_key(schema, i, NULL), ses_json_at(schema, i), schema, v))
            return false;
    return true;
}

/* ---- requests ---- */

static const struct {
    const char *path, *body;
} valid[] = {
    { "/", "{\"inputs\":\"plums\"}" },
    { "/v1/embeddings", "{\"input\":\"plums\"}" },
    { "/embeddings", "{\"input\":[\"plums\"],\"model\":\"mask\"}" },
    { "/v1/completions", "{\"prompt\":\"The\"}" },
    { "/v1/completions", "{\"prompt\":\"The\",\"max_tokens\":0,\"echo\":true}" },
    { "/embed", "{\"inputs\":\"plums\"}" },
    { "/embed_all", "{\"inputs\":\"plums\"}" },
    { "/embed_sparse", "{\"inputs\":\"plums\"}" },
    { "/predict", "{\"inputs\":\"plums\"}" },
    { "/classify", "{\"input\":\"plums\"}" },
    { "/rerank", "{\"query\":\"plums\",\"texts\":[\"plums\"]}" },
    { "/v1/rerank", "{\"query\":\"plums\",\"documents\":[\"plums\",{\"text\":\"rain\"}]}" },
    { "/v2/rerank", "{\"query\":\"plums\",\"texts\":[\"plums\"]}" },
    { "/score", "{\"queries\":\"plums\",\"documents\":[\"plums\",\"rain\"]}" },
    { "/v1/score", "{\"text_1\":[\"plums\",\"a\"],\"text_2\":[\"plums\",\"rain\"]}" },
    { "/v1/score", "{\"text_1\":\"plums\",\"text_2\":[\"a\",\"rain\"],\"model\":\"sesame-gpt\"}" },
    { "/v1/embed", "{\"texts\":[\"plums\"]}" },
    { "/v1/embed", "{\"texts\":[\"plums\"],\"max_tokens\":1}" },
    { "/v2/embed", "{\"texts\":\"plums\",\"model\":\"encoder\"}" },
    { "/v2/embed", "{\"inputs\":[{\"content\":[{\"type\":\"text\",\"text\":\"plums\"}]}]}" },
    { "/v1/classify", "{\"inputs\":[\"plums\"]}" },
    { "/v1/classify", "{\"inputs\":[\"plums\"],\"examples\":[{\"text\":\"a\",\"label\":\"b\"}]}" },
    { "/v1/moderations", "{\"input\":[\"plums\"]}" },
    { "/v1/moderations", "{\"input\":[{\"type\":\"text\",\"text\":\"plums\"}],\"model\":\"multi\"}" },
    { "/similarity", "{\"inputs\":{\"source_sentence\":\"plums\",\"sentences\":[\"a\"]},\"parameters\":{}}" },
    { "/tokenize", "{\"inputs\":\"plums\"}" },
    { "/tokenize", "{\"content\":\"plums\"}" },
    { "/decode", "{\"ids\":[62]}" },
    { "/detokenize", "{\"tokens\":[62]}" },
    { "/api/embed", "{\"input\":\"plums\"}" },
    { "/api/embeddings", "{\"prompt\":\"plums\"}" },
    { "/api/generate", "{\"prompt\":\"The\",\"stream\":false,\"options\":{\"num_predict\":1}}" },
    { "/api/show", "{\"model\":\"label\"}" },
    { "/api/show", "{\"name\":\"label\"}" },
    { "/map", "{\"vectors\":[[1,2],[2,1],[0,5],[3,3]]}" },
    { "/map", "{\"vectors\":[[1,2],[2,1],[0,5],[3,3]],\"method\":\"umap\"}" },
    { "/attention", "{\"inputs\":\"plums\"}" },
    { "/analyze",
      "{\"analysis\":\"explain\",\"inputs\":\"plums\",\"model\":\"label\",\"parameters\":{\"method\":"
      "\"occlude\"}}" },
    { "/models/encoder", "{\"inputs\":\"plums\"}" },
    { "/models/mask", "{\"inputs\":\"The [MASK] rings.\",\"parameters\":{}}" },
    { "/models/label", "{\"inputs\":\"plums\",\"parameters\":{}}" },
    { "/models/label/pipeline/zero-shot-classification",
      "{\"inputs\":\"plums\",\"parameters\":{\"candidate_labels\":[\"a\",\"b\"]}}" },
    { "/models/tag", "{\"inputs\":\"plums\",\"parameters\":{}}" },
    { "/models/qa", "{\"inputs\":{\"question\":\"Who?\",\"context\":\"The keeper.\"},\"parameters\":{}}" },
    { "/models/score", "{\"inputs\":{\"query\":\"Who?\",\"texts\":[\"The keeper.\"]},\"parameters\":{}}" },
    { "/models/sesame-gpt", "{\"inputs\":\"The\",\"parameters\":{}}" },
    { "/models/sesame-gpt/pipeline/features", "{\"inputs\":\"The\",\"parameters\":{}}" },
    { "/analyze",
      "{\"analysis\":\"explain\",\"inputs\":\"The\",\"model\":\"sesame-gpt\",\"parameters\":{}}" },
};

/* Values that a model does not have. */
static const struct {
    const char *path, *body;
} refused[] = {
    { "/analyze",
      "{\"analysis\":\"explain\",\"inputs\":\"The\",\"model\":\"sesame-gpt\",\"parameters\":{\"baseline\":"
      "\"unk\"}}" },
    { "/analyze",
      "{\"analysis\":\"explain\",\"inputs\":\"The\",\"model\":\"sesame-gpt\",\"parameters\":{\"baseline\":"
      "\"mask\",\"method\":\"occlude\"}}" },
};

static const char *const probes[] = { "null",
                                      "true",
                                      "false",
                                      "-1",
                                      "0",
                                      "1",
                                      "2.0",
                                      "1.5",
                                      "5000",
                                      "1e30",
                                      "1e400",
                                      "123456789012345678901234567890",
                                      "\"\"",
                                      "\"x\"",
                                      "\"0\"",
                                      "\"all\"",
                                      "\"cls\"",
                                      "\"mean\"",
                                      "\"mask\"",
                                      "\"unk\"",
                                      "[]",
                                      "[null]",
                                      "[null,null]",
                                      "[\"x\"]",
                                      "[\"x\",\"\"]",
                                      "[\"\",\"\"]",
                                      "[[\"\",\"x\"]]",
                                      "[\"x\",\"y\",\"z\",\"x\",\"y\"]",
                                      "[[\"x\"]]",
                                      "[[\"x\",\"y\"],[\"x\"]]",
                                      "[[[]]]",
                                      "[0]",
                                      "[1.0,1]",
                                      "[-1]",
                                      "[[0],[1]]",
                                      "[99999999]",
                                      "{}",
                                      "{\"x\":1}",
                                      "{\"text\":\"x\"}",
                                      "[{\"text\":\"x\"}]",
                                      "[{\"text\":\"x\",\"label\":\"y\"}]",
                                      "[{\"type\":\"text\",\"text\":\"x\"}]",
                                      "[{\"content\":[]}]",
                                      "\"END\"",
                                      "\"START\"",
                                      "[\"float\"]",
                                      "[\"int8\"]" };

static const ses_json *schema_of(const ses_json *root, const char *path)
{
    const ses_json *post = ses_json_get(ses_json_get(ses_json_get(root, "paths"), path), "post");
    return ses_json_get(ses_json_get(member(post, "requestBody/content"), "application/json"), "schema");
}

/* The body with one member, or one member of its member `inside`, replaced by the text of a value. */
static char *replaced(const ses_json *body, const char *inside, const char *key, const char *value)
{
    ses_json_doc *doc = ses_json_parse(value, strlen(value), NULL);
    ses_json_writer *w = ses_json_writer_new(-1, NULL);
    if (!doc) { /* 1e400 is valid JSON, but no number of this parser */
        ses_json_writer_free(w);
        return NULL;
    }
    ses_json_begin_object(w);
    for (size_t i = 0; i < ses_json_len(body); i++) {
        const char *name = ses_json_key(body, i, NULL);
        if (!strcmp(name, inside ? inside : key)) continue;
        ses_json_put_key(w, name);
        ses_json_put_value(w, ses_json_at(body, i));
    }
    if (inside) {
        const ses_json *old = ses_json_get(body, inside);
        ses_json_member_object(w, inside);
        for (size_t i = 0; i < ses_json_len(old); i++) {
            if (!strcmp(ses_json_key(old, i, NULL), key)) continue;
            ses_json_put_key(w, ses_json_key(old, i, NULL));
            ses_json_put_value(w, ses_json_at(old, i));
        }
    }
    ses_json_put_key(w, key);
    ses_json_put_value(w, ses_json_root(doc));
    if (inside) ses_json_end_object(w);
    ses_json_end_object(w);
    char *text = ses_json_writer_take(w, NULL, NULL);
    ses_json_writer_free(w);
    ses_json_free(doc);
    return text;
}

static int status_of(serving *s, const char *path, const char *body)
{
    ses_err e = { 0 };
    ses_http_request r = { .method = "POST",
                           .target = path,
                           .headers = "Content-Type: application/json\r\n",
                           .body = body,
                           .n = strlen(body) };
    s->a = (ses_http_response){ 0 };
    if (!CHECK_MSG(ses_http_client_request(s->client, &r, &s->a, &e), "%s %s: %s", path, body, e.msg))
        return 0;
    return s->a.status;
}

/* A list in the value is longer than the server allows. */
static bool has_long_list(const ses_json *v)
{
    bool list = ses_json_type_of(v) == SES_JSON_ARRAY;
    if (list && ses_json_len(v) > 4) return true;
    if (!list && ses_json_type_of(v) != SES_JSON_OBJECT) return false;
    for (size_t i = 0; i < ses_json_len(v); i++)
        if (has_long_list(ses_json_at(v, i))) return true;
    return false;
}

static void check(serving *s, const ses_json *root, const char *path, const ses_json *schema, char *body)
{
    ses_json_doc *doc = body ? ses_json_parse(body, strlen(body), NULL) : NULL;
    if (doc) {
        bool allowed = is_valid(root, schema, ses_json_root(doc));
        int status = status_of(s, path, body);
        CHECK_MSG(status == 200 || status == 400 || status == 404 || status == 422 ||
                      (status == 413 && has_long_list(ses_json_root(doc))),
                  "%s %s: %d", path, body, status);
        CHECK_MSG(allowed == (status == 200), "%s %s: %s by the schema, status %d", path, body,
                  allowed ? "allowed" : "forbidden", status);
    }
    ses_json_free(doc);
    ses_free(body);
}

/* Replaces each member that a schema names, here or in a part of it. */
static void check_members(serving *s, const ses_json *root, const char *path, const ses_json *schema,
                          const ses_json *part, const ses_json *body, const char *inside)
{
    const ses_json *members = ses_json_get(part, "properties"), *any = ses_json_get(part, "anyOf");
    for (size_t i = 0; i < ses_json_len(members); i++)
        for (size_t k = 0; k < SES_LEN(probes); k++)
            check(s, root, path, schema, replaced(body, inside, ses_json_key(members, i, NULL), probes[k]));
    for (size_t i = 0; i < ses_json_len(any); i++)
        if (!members || inside) check_members(s, root, path, schema, ses_json_at(any, i), body, inside);
    const ses_json *parameters = ses_json_get(members, "parameters");
    if (!inside && ses_json_get(body, "parameters"))
        check_members(s, root, path, schema, parameters, body, "parameters");
    const char *options = ses_json_string(
        ses_json_get(ses_json_at(ses_json_get(ses_json_get(members, "options"), "anyOf"), 0), "$ref"), NULL);
    if (!inside && options && ses_json_get(body, "options")) {
        const ses_json *schemas = ses_json_get(ses_json_get(root, "components"), "schemas");
        check_members(s, root, path, schema, ses_json_get(schemas, strrchr(options, '/') + 1), body,
                      "options");
    }
}

/* start: of the paths to test. */
static void test_members(serving *s, const ses_json *root, const char *start)
{
    for (size_t i = 0; i < SES_LEN(valid); i++) {
        if (strncmp(valid[i].path, start, strlen(start))) continue;
        const ses_json *schema = schema_of(root, valid[i].path);
        ses_json_doc *doc = ses_json_parse(valid[i].body, strlen(valid[i].body), NULL);
        if (CHECK_MSG(schema && doc, "%s is not described", valid[i].path)) {
            CHECK_MSG(is_valid(root, schema, ses_json_root(doc)), "%s %s", valid[i].path, valid[i].body);
            check(s, root, valid[i].path, schema, ses_strdup(valid[i].body, NULL));
            check(s, root, valid[i].path, schema, ses_strdup("{}", NULL));
            check_members(s, root, valid[i].path, schema, schema, ses_json_root(doc), NULL);
        }
        ses_json_free(doc);
    }
}

static void test_refused(serving *s, const ses_json *root)
{
    for (size_t i = 0; i < SES_LEN(refused); i++) {
        const ses_json *schema = schema_of(root, refused[i].path);
        check(s, root, refused[i].path, schema, ses_strdup(refused[i].body, NULL));
    }
}

/* The names of the models are for requests with a key. */
static void test_keys(void)
{
    serving s;
    ses_server_options o = options();
    write_string(tmp_path("keys"), "right-key\n");
    CHECK(!chmod(tmp_path("keys"), 0600));
    o.n_models = 1, o.api_key_file = tmp_path("keys");
    serving_start(&s, &o);
    const ses_json *v = get(&s, "/openapi.json", 200);
    CHECK(ses_json_get(member(v, "paths"), "/models/{name}"));
    CHECK(!memmem(s.a.body.p, s.a.body.n, "\"encoder\"", 9));
    ses_http_request r = { .target = "/openapi.json", .headers = "Authorization: Bearer right-key\r\n" };
    v = ask(&s, &r, 200);
    CHECK(ses_json_get(member(v, "paths"), "/models/encoder"));
    serving_stop(&s);
}

static void test_server(const ses_server_options *o, const char *const *starts)
{
    serving s;
    serving_start(&s, o);
    get(&s, "/openapi.json", 200);
    ses_json_doc *doc = ses_json_parse(s.a.body.p, s.a.body.n, NULL);
    for (; *starts; starts++) test_members(&s, ses_json_root(doc), *starts);
    test_refused(&s, ses_json_root(doc));
    ses_json_free(doc);
    serving_stop(&s);
}

/* Embedders rank, and all names are valid for the only model of a task. */
static void test_names(void)
{
    static const char *const starts[] = {
        "/rerank", "/v2/rerank", "/embed", "/v1/completions", "/score", NULL
    };
    static const char *few[3], *alias[] = { "x=encoder" };
    ses_server_options o = options();
    few[0] = "mask=tests/pipelines/bert-mask", few[1] = models[0], few[2] = "sesame-gpt";
    o.models = few, o.n_models = 3, o.aliases = alias, o.n_aliases = 1;
    test_server(&o, starts);
    o.any_model = true;
    test_server(&o, starts);
}

int main(void)
{
    make_models();
    ses_server_options o = options();
    test_server(&o, (const char *const[]){ "", NULL });
    test_names();
    test_keys();
    remove_models();
    return check_report();
}
