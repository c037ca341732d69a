/* POST /api/embed, /api/embeddings, /api/show, GET /api/tags, /api/ps, /api/version: Ollama's routes for
 * embeddings and models. */
#include "base/alloc.h"
#include "serve/embed_reply.h"
#include "serve/ollama_reply.h"
#include "serve/serve_impl.h"
#include "sesame/base.h"
#include "tensor/device_impl.h"

#include <stdio.h>

static void embed_done(ses_worker *w, ses_job *j)
{
    ses_json_writer *json = ses_reply_begin(w, j, false);
    if (!json) return;
    ses_json_begin_object(json);
    ses_json_member_string(json, "model", j->model->name);
    ses_json_member_array(json, "embeddings");
    for (size_t i = 0; i < j->n; i++) ses_embed_put(json, j, i);
    ses_json_end_array(json);
    ses_ollama_put_durations(json, j);
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

/* "22.6M" */
static const char *size_text(char *text, size_t n, int64_t parameters)
{
    bool billions = parameters >= 1000000000;
    snprintf(text, n, "%.1f%c", (double)parameters / (billions ? 1e9 : 1e6), billions ? 'B' : 'M');
    return text;
}

static void put_details(ses_json_writer *json, const ses_served_model *m)
{
    char size[32];
    ses_json_member_object(json, "details");
    ses_json_member_string(json, "parent_model", "");
    ses_json_member_string(json, "format", "safetensors");
    ses_json_member_string(json, "family", ses_served_model_type(m));
    ses_json_member_list(json, "families", ses_served_model_type(m));
    ses_json_member_string(json, "parameter_size",
                           size_text(size, sizeof size, ses_served_model_parameters(m)));
    ses_json_member_string(json, "quantization_level", ses_served_model_dtype(m));
    ses_json_end_object(json);
}

static void put_model(ses_json_writer *json, const ses_served_model *m, bool loaded)
{
    int64_t bytes = ses_served_model_bytes(m);
    bool host = m->dev->is_host;
    ses_json_begin_object(json);
    ses_json_member_string(json, "name", m->name);
    ses_json_member_string(json, "model", m->name);
    if (!loaded) ses_ollama_put_time(json, "modified_at", (ses_ollama_time){ .seconds = m->created });
    ses_json_member_int(json, "size", bytes);
    if (loaded) ses_json_member_int(json, "size_vram", host ? 0 : bytes);
    put_details(json, m);
    ses_json_end_object(json);
}

/* loaded: the form of /api/ps. */
static bool list_models(ses_worker *w, ses_job *j, bool loaded)
{
    size_t n = 0;
    ses_err e = { 0 };
    ses_served_model **model = ses_registry_list(ses_server_registry(w->server), &n, &e);
    ses_json_writer *json = model ? ses_reply_writer(j) : NULL;
    if (!model) ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    if (json) {
        ses_json_begin_object(json);
        ses_json_member_array(json, "models");
        for (size_t i = 0; i < n; i++) put_model(json, model[i], loaded);
        ses_json_end_array(json);
        ses_json_end_object(json);
    }
    for (size_t i = 0; model && i < n; i++) ses_served_model_release(model[i]);
    ses_free(model);
    if (json) ses_reply_json(w, j, json);
    return json != NULL;
}

static bool tags_handle(ses_worker *w, ses_job *j) { return list_models(w, j, false); }
static bool ps_handle(ses_worker *w, ses_job *j) { return list_models(w, j, true); }

/* "TYPE.KEY": N */
static void put_number(ses_json_writer *json, const ses_served_model *m, const char *key, int64_t x)
{
    char name[128];
    snprintf(name, sizeof name, "%s.%s", ses_served_model_type(m), key);
    ses_json_member_int(json, name, x);
}

static void put_info(ses_json_writer *json, ses_served_model *m)
{
    const ses_served_pipeline *p = ses_served_model_pipeline(m);
    ses_json_member_object(json, "model_info");
    ses_json_member_string(json, "general.architecture", ses_served_model_type(m));
    ses_json_member_int(json, "general.parameter_count", ses_served_model_parameters(m));
    if (m->model) {
        put_number(json, m, "block_count", ses_model_layer_count(m->model));
        put_number(json, m, "vocab_size", ses_model_vocab_size(m->model));
        if (p) put_number(json, m, "context_length", ses_pipeline_max_seq_len(p->compute));
        if (p && ses_pipeline_encoder(p->compute))
            put_number(json, m, "embedding_length", ses_sentence_width(ses_pipeline_encoder(p->compute)));
    }
    ses_json_end_object(json);
}

static bool show_handle(ses_worker *w, ses_job *j)
{
    const char *name = NULL, *key;
    if (!ses_body_either(j, "model", "name", &key) || !ses_body_string(j, j->body, key, &name)) return false;
    if (!name) return ses_body_missing(j, "model");
    if (!*name) return ses_api_fail(&j->error, SES_API_EMPTY, "model", "\"model\" is empty");
    ses_json_writer *json = ses_job_find_model(w, j, name, NULL) ? ses_reply_writer(j) : NULL;
    if (!json) return false;
    const ses_served_model *m = j->model;
    bool generates = ses_served_model_supports(m, ses_task_find("text-generation"));
    bool embeds = ses_served_model_supports(m, ses_task_find("embed"));
    ses_json_begin_object(json);
    ses_json_member_string(json, "modelfile", "");
    ses_json_member_string(json, "parameters", "");
    ses_json_member_string(json, "template", "");
    put_details(json, m);
    put_info(json, j->model);
    ses_json_member_list(json, "capabilities",
                         generates ? (embeds ? "completion, embedding" : "completion")
                         : embeds  ? "embedding"
                                   : "");
    ses_ollama_put_time(json, "modified_at", (ses_ollama_time){ .seconds = m->created });
    ses_json_end_object(json);
    ses_reply_json(w, j, json);
    return true;
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

const ses_route ses_route_ollama_ps = {
    .method = "GET",
    .path = "/api/ps",
    .style = SES_STYLE_PLAIN,
    .handle = ps_handle,
    .tag = "Ollama",
    .summary = "The loaded models, with their memory",
    .response = "{\"type\":\"object\",\"required\":[\"models\"]}",
};

const ses_route ses_route_ollama_show = {
    .method = "POST",
    .path = "/api/show",
    .style = SES_STYLE_PLAIN,
    .handle = show_handle,
    .tag = "Ollama",
    .summary = "A loaded model",
    .request =
        "{\"type\":\"object\",\"anyOf\":[{\"required\":[\"model\"],\"properties\":{\"model\":{\"$ref\":"
        "\"#/components/schemas/ModelName\"},\"name\":{\"type\":\"null\"}}},{\"required\":[\"name\"],"
        "\"properties\":{\"name\":{\"$ref\":\"#/components/schemas/ModelName\"},\"model\":{\"type\":"
        "\"null\"}}}],\"properties\":{\"model\":{\"type\":\"string\"},\"name\":{\"type\":\"string\"}}}",
    .response = "{\"type\":\"object\",\"required\":[\"details\",\"model_info\",\"capabilities\"]}",
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
