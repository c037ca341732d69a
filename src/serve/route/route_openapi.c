/* GET /openapi.json: the routes, from their own descriptions. */
#include "serve/route.h"
#include "sesame/version.h"

#include <stdio.h>
#include <string.h>

static void put_schema(ses_json_writer *json, const char *key, const char *schema)
{
    ses_json_doc *doc = ses_json_parse(schema, strlen(schema), NULL);
    ses_json_member_object(json, key);
    for (size_t i = 0; i < ses_json_len(ses_json_root(doc)); i++) {
        ses_json_put_key(json, ses_json_key(ses_json_root(doc), i, NULL));
        ses_json_put_value(json, ses_json_at(ses_json_root(doc), i));
    }
    ses_json_end_object(json);
    ses_json_free(doc);
}

static bool is_required(const ses_json *schema, const char *key)
{
    const ses_json *list = ses_json_get(schema, "required");
    for (size_t i = 0; i < ses_json_len(list); i++) {
        const char *s = ses_json_string(ses_json_at(list, i), NULL);
        if (s && !strcmp(s, key)) return true;
    }
    return false;
}

/* The schema of a body: members that are not required may be null. */
static void put_body_schema(ses_json_writer *json, const char *text)
{
    ses_json_doc *doc = ses_json_parse(text, strlen(text), NULL);
    const ses_json *schema = ses_json_root(doc), *members = ses_json_get(schema, "properties");
    ses_json_member_object(json, "schema");
    ses_json_member_string(json, "type", "object");
    if (ses_json_get(schema, "required")) {
        ses_json_put_key(json, "required");
        ses_json_put_value(json, ses_json_get(schema, "required"));
    }
    ses_json_member_object(json, "properties");
    for (size_t i = 0; i < ses_json_len(members); i++) {
        const char *key = ses_json_key(members, i, NULL);
        ses_json_put_key(json, key);
        if (is_required(schema, key)) {
            ses_json_put_value(json, ses_json_at(members, i));
            continue;
        }
        ses_json_begin_object(json);
        ses_json_member_array(json, "anyOf");
        ses_json_put_value(json, ses_json_at(members, i));
        ses_json_begin_object(json);
        ses_json_member_string(json, "type", "null");
        ses_json_end_object(json);
        ses_json_end_array(json);
        ses_json_end_object(json);
    }
    ses_json_end_object(json);
    ses_json_end_object(json);
    ses_json_free(doc);
}

static void put_media(ses_json_writer *json, const char *type, const char *schema)
{
    ses_json_member_object(json, type);
    put_schema(json, "schema", schema);
    ses_json_end_object(json);
}

static void put_response(ses_json_writer *json, int status, const char *what, const char *type,
                         const char *schema)
{
    char code[8];
    snprintf(code, sizeof code, "%d", status);
    ses_json_member_object(json, code);
    ses_json_member_string(json, "description", what);
    if (schema) {
        ses_json_member_object(json, "content");
        put_media(json, type, schema);
        ses_json_end_object(json);
    }
    ses_json_end_object(json);
}

/* HTTP errors, which occur before a route is chosen, have OpenAI's shape. */
static const char *error_schema(ses_error_style style, int status)
{
    if (status == 400)
        return "{\"anyOf\":[{\"$ref\":\"#/components/schemas/OpenAIError\"},{\"$ref\":\"#/components/schemas/"
               "Error\"}]}";
    switch (style) {
    case SES_STYLE_OPENAI: return "{\"$ref\":\"#/components/schemas/OpenAIError\"}";
    case SES_STYLE_TEI: return "{\"$ref\":\"#/components/schemas/TEIError\"}";
    default: return "{\"$ref\":\"#/components/schemas/Error\"}";
    }
}

static void put_errors(ses_json_writer *json, const ses_route *r)
{
    enum { ANY, BODY, NAMED }; /* all routes; routes with a body; routes with a name in their path or body */
    static const struct {
        int status, where;
        const char *what;
    } list[] = { { 400, NAMED, "invalid request" },
                 { 401, ANY, "no valid API key" },
                 { 404, NAMED, "no such model, task or file" },
                 { 413, BODY, "the request is too large" },
                 { 415, BODY, "the body is not JSON" },
                 { 422, BODY, "invalid request" },
                 { 424, BODY, "the computation failed" },
                 { 429, ANY, "overloaded: see Retry-After" },
                 { 500, ANY, "internal error" },
                 { 503, ANY, "not ready" },
                 { 504, BODY, "the deadline has passed" } };
    bool named = r->request || strchr(r->path, '*');
    for (size_t i = 0; i < SES_LEN(list); i++) {
        bool tei = list[i].status == 422 || list[i].status == 424;
        if ((list[i].where == BODY && !r->request) || (list[i].where == NAMED && !named) ||
            (tei && r->style != SES_STYLE_TEI))
            continue;
        put_response(json, list[i].status, list[i].what, "application/json",
                     error_schema(r->style, list[i].status));
    }
}

static void put_parameters(ses_json_writer *json, const char *const name)
{
    ses_json_member_array(json, "parameters");
    ses_json_begin_object(json);
    ses_json_member_string(json, "name", name);
    ses_json_member_string(json, "in", "path");
    ses_json_member_bool(json, "required", true);
    put_schema(json, "schema", "{\"type\":\"string\",\"minLength\":1}");
    ses_json_end_object(json);
    ses_json_end_array(json);
}

/* "post_v1_embeddings", "get_root", "get_ui_name". */
static const char *operation_id(char *id, size_t size, const char *method, const char *path)
{
    size_t n = (size_t)snprintf(id, size, "%s%s", method, path[1] ? "" : "_root");
    for (const char *c = path; path[1] && *c && n + 5 < size; c++) {
        bool word = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9');
        if (*c == '*')
            memcpy(id + n, "name", 4), n += 4;
        else
            id[n++] = word ? *c : '_';
    }
    id[n] = 0;
    return id;
}

static void put_success(ses_json_writer *json, const ses_route *r)
{
    ses_json_member_object(json, "200");
    ses_json_member_string(json, "description", "success");
    ses_json_member_object(json, "content");
    if (r->response) put_media(json, "application/json", r->response);
    if (r->content_type) put_media(json, r->content_type, "{\"type\":\"string\"}");
    ses_json_end_object(json);
    ses_json_end_object(json);
}

static void put_operation(ses_json_writer *json, const ses_route *r)
{
    const char *method = strcmp(r->method, "GET") ? "post" : "get";
    char id[64];
    ses_json_member_object(json, method);
    ses_json_member_string(json, "operationId", operation_id(id, sizeof id, method, r->path));
    ses_json_member_array(json, "tags");
    ses_json_put_string(json, r->tag);
    ses_json_end_array(json);
    ses_json_member_string(json, "summary", r->summary);
    if (strchr(r->path, '*')) put_parameters(json, "name");
    if (r->request) {
        ses_json_member_object(json, "requestBody");
        ses_json_member_bool(json, "required", true);
        ses_json_member_object(json, "content");
        ses_json_member_object(json, "application/json");
        put_body_schema(json, r->request);
        ses_json_end_object(json);
        ses_json_end_object(json);
        ses_json_end_object(json);
    }
    ses_json_member_object(json, "responses");
    put_success(json, r);
    put_errors(json, r);
    ses_json_end_object(json);
    ses_json_end_object(json);
}

/* "/models/" and a name for "/models/" and a star. */
static void put_path(ses_json_writer *json, const char *path)
{
    char text[128];
    size_t n = strlen(path);
    if (path[n - 1] == '*')
        snprintf(text, sizeof text, "%.*s{name}", (int)n - 1, path);
    else
        snprintf(text, sizeof text, "%s", path);
    ses_json_member_object(json, text);
}

#define STRING "{\"type\":\"string\"}"
#define OBJECT(required, properties) \
    "{\"type\":\"object\",\"required\":[" required "],\"properties\":{" properties "}}"

static const struct {
    const char *name, *schema;
} components[] = {
    { "Texts",
      "{\"description\":\"a text or a list of texts\",\"oneOf\":[{\"type\":\"string\",\"minLength\":1},"
      "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"minLength\":1},\"minItems\":1,\"maxItems\":"
      "2048}]}" },
    { "ModelName",
      "{\"type\":[\"string\",\"null\"],\"description\":\"name of a loaded model; default: the first "
      "model for the task\"}" },
    { "AnyTexts",
      "{\"description\":\"a text or a list of texts, which may be empty\",\"oneOf\":[{\"type\":\"string\"},"
      "{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"minItems\":1}]}" },
    { "Vector", "{\"type\":\"array\",\"items\":{\"type\":\"number\"}}" },
    { "Label", OBJECT("\"label\",\"score\"", "\"label\":" STRING ",\"score\":{\"type\":\"number\"}") },
    { "Usage", OBJECT("\"prompt_tokens\",\"total_tokens\"",
                      "\"prompt_tokens\":{\"type\":\"integer\"},\"completion_tokens\":{\"type\":\"integer\"},"
                      "\"total_tokens\":{\"type\":\"integer\"}") },
    { "OpenAIError",
      OBJECT("\"error\"",
             "\"error\":" OBJECT("\"message\",\"type\"",
                                 "\"message\":" STRING ",\"type\":" STRING
                                 ",\"param\":{\"type\":[\"string\",\"null\"]},\"code\":{\"type\":[\"string\","
                                 "\"null\"]}")) },
    { "TEIError", OBJECT("\"error\",\"error_type\"", "\"error\":" STRING ",\"error_type\":" STRING) },
    { "Error", OBJECT("\"error\"", "\"error\":" STRING) },
};

static void put_components(ses_json_writer *json)
{
    ses_json_member_object(json, "components");
    ses_json_member_object(json, "schemas");
    for (size_t i = 0; i < SES_LEN(components); i++)
        put_schema(json, components[i].name, components[i].schema);
    ses_json_end_object(json);
    ses_json_end_object(json);
}

static bool is_first(const ses_route *const *list, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!strcmp(list[k]->path, list[i]->path)) return false;
    return true;
}

static bool handle(ses_worker *w, ses_job *j)
{
    const ses_route *const *list = ses_routes();
    ses_json_writer *json = ses_reply_writer(j);
    if (!json) return false;
    ses_json_begin_object(json);
    ses_json_member_string(json, "openapi", "3.1.0");
    ses_json_member_object(json, "info");
    ses_json_member_string(json, "title", "Sesame");
    ses_json_member_string(json, "description", "Pretrained Transformers over HTTP.");
    ses_json_member_string(json, "version", SES_VERSION);
    ses_json_end_object(json);
    ses_json_member_object(json, "paths");
    for (size_t i = 0; list[i]; i++) {
        if (!is_first(list, i)) continue;
        put_path(json, list[i]->path);
        for (size_t k = i; list[k]; k++)
            if (!strcmp(list[k]->path, list[i]->path)) put_operation(json, list[k]);
        ses_json_end_object(json);
    }
    ses_json_end_object(json);
    put_components(json);
    ses_json_end_object(json);
    ses_reply_json(w, j, json);
    return true;
}

const ses_route ses_route_openapi = {
    .method = "GET",
    .path = "/openapi.json",
    .style = SES_STYLE_TEI,
    .public = true,
    .handle = handle,
    .tag = "Operation",
    .summary = "This description",
    .response = "{\"type\":\"object\"}",
};
