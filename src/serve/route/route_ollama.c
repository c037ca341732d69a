/* POST /api/embed, /api/embeddings, GET /api/tags, /api/version: Ollama's routes for embeddings. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/clock.h"
#include "serve/embed_reply.h"
#include "serve/serve_impl.h"
#include "sesame/base.h"

#include <time.h>

static void put_durations(ses_json_writer *json, const ses_job *j)
{
    ses_json_member_uint(json, "total_duration", ses_clock_ns() - ses_http_received_ns(j->x));
    ses_json_member_uint(json, "load_duration", 0);
    ses_json_member_int(json, "prompt_eval_count", j->tokens);
}

static void embed_done(ses_worker *w, ses_job *j)
{
    ses_json_writer *json = ses_reply_begin(w, j, false);
    if (!json) return;
    ses_json_begin_object(json);
    ses_json_member_string(json, "model", j->model->name);
    ses_json_member_array(json, "embeddings");
    for (size_t i = 0; i < j->n; i++) ses_embed_put(json, j, i);
    ses_json_end_array(json);
    put_durations(json, j);
    ses_json_end_object(json);
    ses_reply_json(w, j, json);
}

static void embeddings_done(ses_worker *w, ses_job *j)
{
    ses_json_writer *json = ses_reply_begin(w, j, false);
    if (!json) return;
    ses_json_begin_object(json);
    ses_json_put_key(json, "embedding");
    ses_embed_put(json, j, 0);
    ses_json_end_object(json);
    ses_reply_json(w, j, json);
}

static bool handle(ses_worker *w, ses_job *j, const char *key, ses_job_fn *done)
{
    ses_embed_request *r = ses_job_alloc(j, 1, sizeof *r);
    ses_string *text = NULL;
    size_t n = 0;
    if (!r) return false;
    *r = (ses_embed_request){ .normalize = 1, .truncate = true };
    return ses_body_string(j, j->body, "model", &r->model) &&
           ses_body_bool(j, j->body, "truncate", &r->truncate) &&
           ses_body_int(j, j->body, "dimensions", 1, 1 << 20, &r->dimensions) &&
           ses_body_texts(j, ses_body_get(j->body, key), key, &text, &n, false) &&
           ses_embed_submit(w, j, r, text, n, done);
}

static bool embed_handle(ses_worker *w, ses_job *j) { return handle(w, j, "input", embed_done); }
static bool embeddings_handle(ses_worker *w, ses_job *j)
{
    const ses_json *prompt = ses_body_get(j->body, "prompt"); /* the response has one vector */
    if (prompt && ses_json_type_of(prompt) != SES_JSON_STRING)
        return ses_body_wrong_type(j, "prompt", prompt, "a string");
    return handle(w, j, "prompt", embeddings_done);
}

/* ---- models ---- */

static void put_model(ses_json_writer *json, const ses_served_model *m)
{
    char when[32] = "";
    time_t t = (time_t)m->created;
    struct tm utc;
    if (gmtime_r(&t, &utc)) strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    ses_json_begin_object(json);
    ses_json_member_string(json, "name", m->name);
    ses_json_member_string(json, "model", m->name);
    ses_json_member_string(json, "modified_at", when);
    ses_json_member_object(json, "details");
    ses_json_member_string(json, "format", "safetensors");
    ses_json_member_string(json, "family", ses_served_model_type(m));
    ses_json_member_string(json, "quantization_level", ses_served_model_dtype(m));
    ses_json_end_object(json);
    ses_json_end_object(json);
}

static bool tags_handle(ses_worker *w, ses_job *j)
{
    size_t n = 0;
    ses_err e = { 0 };
    ses_served_model **model = ses_registry_list(ses_server_registry(w->server), &n, &e);
    ses_json_writer *json = model ? ses_reply_writer(j) : NULL;
    if (!model) ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    if (json) {
        ses_json_begin_object(json);
        ses_json_member_array(json, "models");
        for (size_t i = 0; i < n; i++) put_model(json, model[i]);
        ses_json_end_array(json);
        ses_json_end_object(json);
    }
    for (size_t i = 0; model && i < n; i++) ses_served_model_release(model[i]);
    ses_free(model);
    if (json) ses_reply_json(w, j, json);
    return json != NULL;
}

static bool version_handle(ses_worker *w, ses_job *j)
{
    ses_json_writer *json = ses_reply_writer(j);
    if (!json) return false;
    ses_json_begin_object(json);
    ses_json_member_string(json, "version", SES_VERSION);
    ses_json_end_object(json);
    ses_reply_json(w, j, json);
    return true;
}

const ses_route ses_route_ollama_tags = {
    .method = "GET",
    .path = "/api/tags",
    .style = SES_STYLE_PLAIN,
    .handle = tags_handle,
    .tag = "Ollama",
    .summary = "The loaded models",
    .response = "{\"type\":\"object\",\"required\":[\"models\"]}",
};

const ses_route ses_route_ollama_version = {
    .method = "GET",
    .path = "/api/version",
    .style = SES_STYLE_PLAIN,
    .handle = version_handle,
    .tag = "Ollama",
    .summary = "The version of the program",
    .response = "{\"type\":\"object\",\"required\":[\"version\"]}",
};

const ses_route ses_route_ollama_embed = {
    .method = "POST",
    .path = "/api/embed",
    .style = SES_STYLE_PLAIN,
    .inlined = true,
    .handle = embed_handle,
    .tag = "Ollama",
    .summary = "Embeddings of texts",
    .request = "{\"type\":\"object\",\"required\":[\"input\"],"
               "\"allOf\":[{\"$ref\":\"#/components/schemas/Models-ollama\"}],"
               "\"properties\":{\"input\":{\"$ref\":\"#/components/schemas/Texts\"},"
               "\"truncate\":{\"type\":\"boolean\"},\"dimensions\":{\"type\":\"integer\","
               "\"minimum\":1},\"model\":{\"type\":\"string\","
               "\"description\":\"name of a loaded model; default: the first one for the task\"}}}",
    .response = "{\"type\":\"object\",\"required\":[\"embeddings\"]}",
};

const ses_route ses_route_ollama_embeddings = {
    .method = "POST",
    .path = "/api/embeddings",
    .style = SES_STYLE_PLAIN,
    .inlined = true,
    .handle = embeddings_handle,
    .tag = "Ollama",
    .summary = "Embedding of one text (older form)",
    .request = "{\"type\":\"object\",\"required\":[\"prompt\"],"
               "\"allOf\":[{\"$ref\":\"#/components/schemas/Models-ollama\"}],"
               "\"properties\":{\"prompt\":{\"type\":\"string\",\"minLength\":1},"
               "\"truncate\":{\"type\":\"boolean\"},\"dimensions\":{\"type\":\"integer\","
               "\"minimum\":1},\"model\":{\"type\":\"string\","
               "\"description\":\"name of a loaded model; default: the first one for the task\"}}}",
    .response = "{\"type\":\"object\",\"required\":[\"embedding\"]}",
};
