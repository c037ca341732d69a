/* GET /openapi.json: the routes, from their own descriptions. */
#include "serve/route.h"
#include "sesame/version.h"

#include <stdio.h>
#include <string.h>

static void put_schema(ses_json_writer *json, const char *schema)
{
    ses_json_doc *doc = ses_json_parse(schema, strlen(schema), NULL);
    ses_json_member_object(json, "schema");
    for (size_t i = 0; i < ses_json_len(ses_json_root(doc)); i++) {
        ses_json_put_key(json, ses_json_key(ses_json_root(doc), i, NULL));
        ses_json_put_value(json, ses_json_at(ses_json_root(doc), i));
    }
    ses_json_end_object(json);
    ses_json_free(doc);
}

static void put_content(ses_json_writer *json, const char *type, const char *schema)
{
    ses_json_member_object(json, "content");
    ses_json_member_object(json, type);
    put_schema(json, schema);
    ses_json_end_object(json);
    ses_json_end_object(json);
}

static void put_response(ses_json_writer *json, int status, const char *what, const char *type,
                         const char *schema)
{
    char code[8];
    snprintf(code, sizeof code, "%d", status);
    ses_json_member_object(json, code);
    ses_json_member_string(json, "description", what);
    if (schema) put_content(json, type, schema);
    ses_json_end_object(json);
}

static void put_errors(ses_json_writer *json, const ses_route *r)
{
    static const struct {
        int status;
        const char *what;
    } list[] = { { 400, "invalid request" },
                 { 401, "no valid API key" },
                 { 404, "no such model" },
                 { 405, "wrong method" },
                 { 413, "the request is too large" },
                 { 415, "the body is not JSON" },
                 { 422, "invalid request" },
                 { 424, "the computation failed" },
                 { 429, "overloaded: see Retry-After" },
                 { 500, "internal error" },
                 { 503, "not ready" },
                 { 504, "the deadline has passed" } };
    for (size_t i = 0; i < SES_LEN(list); i++)
        put_response(json, list[i].status, list[i].what, "application/json",
                     r->request ? "{\"type\":\"object\"}" : NULL);
}

static void put_parameters(ses_json_writer *json, const char *const name)
{
    ses_json_member_array(json, "parameters");
    ses_json_begin_object(json);
    ses_json_member_string(json, "name", name);
    ses_json_member_string(json, "in", "path");
    ses_json_member_bool(json, "required", true);
    put_schema(json, "{\"type\":\"string\"}");
    ses_json_end_object(json);
    ses_json_end_array(json);
}

static void put_operation(ses_json_writer *json, const ses_route *r)
{
    char id[64];
    size_t n = 0;
    for (const char *c = r->path; *c && n + 1 < sizeof id; c++)
        id[n++] = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') ? *c : '_';
    id[n] = 0;
    ses_json_member_object(json, strcmp(r->method, "GET") ? "post" : "get");
    ses_json_member_string(json, "operationId", id);
    ses_json_member_array(json, "tags");
    ses_json_put_string(json, r->tag);
    ses_json_end_array(json);
    ses_json_member_string(json, "summary", r->summary);
    if (strchr(r->path, '*')) put_parameters(json, "name");
    if (r->request) {
        ses_json_member_object(json, "requestBody");
        ses_json_member_bool(json, "required", true);
        put_content(json, "application/json", r->request);
        ses_json_end_object(json);
    }
    ses_json_member_object(json, "responses");
    put_response(json, 200, "success", r->response ? "application/json" : r->content_type,
                 r->response ? r->response : "{\"type\":\"string\"}");
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
