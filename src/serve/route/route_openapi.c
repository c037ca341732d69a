/* GET /openapi.json: the routes, from their own descriptions. */
#include "base/alloc.h"
#include "base/str.h"
#include "serve/route.h"
#include "serve/serve_impl.h"
#include "serve/task_schema.h"
#include "serve/web_files.h"
#include "sesame/base.h"

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

/* The schema of a body: members that are not required may be null. without_parameters: it has no
 * "parameters". */
static void put_body_schema(ses_json_writer *json, const char *text, bool without_parameters)
{
    ses_json_doc *doc = ses_json_parse(text, strlen(text), NULL);
    const ses_json *schema = ses_json_root(doc), *members = ses_json_get(schema, "properties");
    ses_json_begin_object(json);
    for (size_t i = 0; i < ses_json_len(schema); i++) {
        const char *key = ses_json_key(schema, i, NULL);
        if (!strcmp(key, "properties")) continue;
        ses_json_put_key(json, key);
        ses_json_put_value(json, ses_json_at(schema, i));
    }
    ses_json_member_object(json, "properties");
    if (without_parameters) {
        ses_json_member_object(json, "parameters");
        ses_json_member_string(json, "type", "null");
        ses_json_end_object(json);
    }
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
    if (status == 400 && style == SES_STYLE_COHERE)
        return "{\"anyOf\":[{\"$ref\":\"#/components/schemas/OpenAIError\"},{\"$ref\":\"#/components/schemas/"
               "CohereError\"}]}";
    if (status == 400)
        return "{\"anyOf\":[{\"$ref\":\"#/components/schemas/OpenAIError\"},{\"$ref\":\"#/components/schemas/"
               "Error\"}]}";
    switch (style) {
    case SES_STYLE_OPENAI: return "{\"$ref\":\"#/components/schemas/OpenAIError\"}";
    case SES_STYLE_TEI: return "{\"$ref\":\"#/components/schemas/TEIError\"}";
    case SES_STYLE_COHERE: return "{\"$ref\":\"#/components/schemas/CohereError\"}";
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

/* The last part of a path: the name of a model, or of a file of the page. */
static void put_parameters(const ses_schema_context *x, const ses_route *r)
{
    ses_json_writer *json = x->json;
    size_t n = strlen(r->path) - 1;
    ses_json_member_array(json, "parameters");
    ses_json_begin_object(json);
    ses_json_member_string(json, "name", "name");
    ses_json_member_string(json, "in", "path");
    ses_json_member_bool(json, "required", true);
    ses_json_member_object(json, "schema");
    ses_json_member_string(json, "type", "string");
    if (r->request || r->content_type == NULL)
        ses_model_names_put(x);
    else {
        ses_json_member_array(json, "enum");
        for (const ses_web_file *f = ses_web_files; f->path; f++)
            if (!strncmp(f->path, r->path, n) && f->path[n]) ses_json_put_string(json, f->path + n);
        ses_json_end_array(json);
    }
    ses_json_end_object(json);
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
    const char *type;
    size_t n;
    for (size_t i = 0; r->content_type && ses_list_at(r->content_type, i, &type, &n); i++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)n, type);
        bool events = ses_equal(type, n, "text/event-stream") || ses_equal(type, n, "application/x-ndjson");
        put_media(json, name, events ? "{}" : "{\"type\":\"string\"}");
    }
    ses_json_end_object(json);
    ses_json_end_object(json);
}

/* POST /: the task of the first model, in its own shape without parameters. */
static void put_root_body(const ses_schema_context *x)
{
    ses_served_model *m = x->model[0];
    const ses_route *own = ses_route_of_root(m->own_task);
    ses_json_begin_object(x->json);
    ses_json_member_array(x->json, "anyOf");
    if (own) put_body_schema(x->json, own->request, true);
    ses_task_schema_put(x, m, m->own_task, own != NULL);
    ses_json_end_array(x->json);
    ses_json_end_object(x->json);
}

static void put_body(const ses_schema_context *x, const ses_route *r, ses_served_model *m,
                     const ses_task_entry *task)
{
    ses_json_writer *json = x->json;
    ses_json_member_object(json, "requestBody");
    ses_json_member_bool(json, "required", true);
    ses_json_member_object(json, "content");
    ses_json_member_object(json, "application/json");
    ses_json_put_key(json, "schema");
    if (m)
        ses_task_schema_put(x, m, task, false);
    else if (r == &ses_route_root && x->names_models && x->n && x->model[0]->own_task)
        put_root_body(x);
    else
        put_body_schema(json, r->request, false);
    ses_json_end_object(json);
    ses_json_end_object(json);
    ses_json_end_object(json);
}

/* path: of the operation, that of the route or one with a model and its task. */
static void put_operation(const ses_schema_context *x, const ses_route *r, const char *path,
                          ses_served_model *m, const ses_task_entry *task)
{
    ses_json_writer *json = x->json;
    const char *method = strcmp(r->method, "GET") ? "post" : "get";
    char id[256];
    ses_json_member_object(json, method);
    ses_json_member_string(json, "operationId", operation_id(id, sizeof id, method, path));
    ses_json_member_array(json, "tags");
    ses_json_put_string(json, r->tag);
    ses_json_end_array(json);
    ses_json_member_string(json, "summary", task ? task->summary : r->summary);
    if (strchr(path, '*')) put_parameters(x, r);
    if (r->request) put_body(x, r, m, task);
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
    { "CohereError", OBJECT("\"message\"", "\"message\":" STRING) },
    { "Error", OBJECT("\"error\"", "\"error\":" STRING) },
};

static void put_components(const ses_schema_context *x)
{
    ses_json_writer *json = x->json;
    ses_json_member_object(json, "components");
    ses_json_member_object(json, "schemas");
    for (size_t i = 0; i < SES_LEN(components); i++)
        put_schema(json, components[i].name, components[i].schema);
    ses_model_schemas_put(x);
    ses_analysis_schema_put(x);
    ses_json_end_object(json);
    ses_json_end_object(json);
}

static bool is_first(const ses_route *const *list, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!strcmp(list[k]->path, list[i]->path)) return false;
    return true;
}

static void put_task_path(const ses_schema_context *x, const ses_route *r, ses_served_model *m,
                          const ses_task_entry *task, bool named)
{
    char path[256];
    snprintf(path, sizeof path, "/models/%s%s%s", m->name, named ? "/pipeline/" : "",
             named ? task->name : "");
    ses_json_member_object(x->json, path);
    put_operation(x, r, path, m, task);
    ses_json_end_object(x->json);
}

/* The paths of POST /models/NAME: the requests depend on the model and the task. The description omits
 * prefer: it needs texts of at least two tokens, which no schema can express. */
static void put_model_paths(const ses_schema_context *x, const ses_route *r)
{
    for (size_t i = 0; i < x->n; i++) {
        ses_served_model *m = x->model[i];
        if (m->own_task) put_task_path(x, r, m, m->own_task, false);
        for (const ses_task_entry *t = ses_task_entries(); t->name; t++)
            if (t->summary && t->task != &ses_task_prefer && ses_served_model_supports(m, t))
                put_task_path(x, r, m, t, true);
    }
}

static void put_paths(const ses_schema_context *x)
{
    const ses_route *const *list = ses_routes();
    ses_json_member_object(x->json, "paths");
    for (size_t i = 0; list[i]; i++) {
        if (!ses_model_route_is_of_use(x, list[i]->request)) continue;
        if (!is_first(list, i) || (list[i]->admin && !x->o->admin)) continue;
        if (list[i] == &ses_route_models && x->names_models) {
            put_model_paths(x, list[i]);
            continue;
        }
        put_path(x->json, list[i]->path);
        for (size_t k = i; list[k]; k++)
            if (!strcmp(list[k]->path, list[i]->path)) put_operation(x, list[k], list[k]->path, NULL, NULL);
        ses_json_end_object(x->json);
    }
    ses_json_end_object(x->json);
}

static void put_description(const ses_schema_context *x)
{
    ses_json_writer *json = x->json;
    ses_json_begin_object(json);
    ses_json_member_string(json, "openapi", "3.1.0");
    ses_json_member_object(json, "info");
    ses_json_member_string(json, "title", "Sesame");
    ses_json_member_string(json, "description", "Pretrained Transformers over HTTP.");
    ses_json_member_string(json, "version", SES_VERSION);
    ses_json_end_object(json);
    put_paths(x);
    put_components(x);
    ses_json_end_object(json);
}

/* The names of the models need a key if the server has keys. */
static bool handle(ses_worker *w, ses_job *j)
{
    ses_err e = { 0 };
    ses_schema_context x = { .json = ses_reply_writer(j), .o = ses_server_get_options(w->server) };
    if (!x.json) return false;
    x.registry = ses_server_registry(w->server);
    x.names_models = ses_server_has_key(w->server, j->x);
    x.model = ses_registry_list(ses_server_registry(w->server), &x.n, &e);
    if (!x.model) {
        ses_json_writer_free(x.json);
        return ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    }
    put_description(&x);
    for (size_t i = 0; i < x.n; i++) ses_served_model_release(x.model[i]);
    ses_free(x.model);
    ses_reply_json(w, j, x.json);
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
