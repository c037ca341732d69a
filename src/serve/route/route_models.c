/* POST /models/NAME and /models/NAME/pipeline/TASK: the requests of huggingface_hub.InferenceClient,
 * {"inputs": ..., "parameters": {...}}. POST /: the same for the first model, unless the body has the shape
 * of text-embeddings-inference. */
#include "serve/embed_reply.h"
#include "serve/generate_reply.h"
#include "serve/route.h"
#include "serve/serve_impl.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

typedef struct state {
    bool batch; /* inputs is a list */
    const struct shape *shape;
} state;

/* Differences from the pipeline's own form. */
typedef struct shape {
    const char *task;        /* the client's name */
    const char *name;        /* name of the pipeline; NULL: the same */
    const char *defaults[2]; /* a setting that differs from the command's default */
    bool nested;             /* a single result is in a list */
    void (*put)(ses_json_writer *json, const ses_result *r); /* NULL: ses_result_write_json */
} shape;

static void put_labels(ses_json_writer *json, const ses_result *r)
{
    ses_json_begin_array(json);
    for (size_t i = 0; i < r->n; i++) {
        ses_json_begin_object(json);
        ses_json_member_stringn(json, "label", r->row[i].label.p, r->row[i].label.n);
        ses_json_put_key(json, "score");
        ses_json_put_float(json, (float)r->row[i].score);
        if (r->row[i].layers) ses_json_member_int(json, "layers", r->row[i].layers); /* texts leave early */
        ses_json_end_object(json);
    }
    ses_json_end_array(json);
}

static const shape shapes[] = {
    { "text-classification", NULL, { "top_k", "all" }, true, put_labels },
    { "sentiment-analysis", "text-classification", { "top_k", "all" }, true, put_labels },
    { "token-classification", NULL, { "aggregation_strategy", "simple" }, false, NULL },
    { "ner", "token-classification", { "aggregation_strategy", "simple" }, false, NULL },
    { "zero-shot-classification", NULL, { NULL, NULL }, false, put_labels },
    { "sentence-similarity", "similarity", { NULL, NULL }, false, NULL },
};

/* ---- the path ---- */

/* Clients that have the address of a model send no task; the members of the request may show it. */
static const char *guess_task(const ses_job *j)
{
    static const struct {
        const char *key, *member, *task;
    } list[] = { { "parameters", "candidate_labels", "zero-shot-classification" },
                 { "parameters", "tgt_lang", "translation" },
                 { "inputs", "source_sentence", "sentence-similarity" },
                 { "inputs", "question", "question-answering" } };
    for (size_t i = 0; i < SES_LEN(list); i++) {
        const ses_json *v = ses_body_get(j->body, list[i].key);
        if (ses_json_type_of(v) == SES_JSON_OBJECT && ses_body_get(v, list[i].member)) return list[i].task;
    }
    return j->model->own_task->name;
}

static const ses_task_entry *find_task(const ses_job *j, const char *name, const shape **s)
{
    const char *own = name ? name : guess_task(j);
    static const shape plain = { 0 };
    *s = &plain;
    for (size_t i = 0; i < SES_LEN(shapes); i++)
        if (!strcmp(shapes[i].task, own)) *s = &shapes[i];
    /* sentence encoders answer with one vector for each text */
    if (j->model->is_sentence_encoder && !strcmp(own, "feature-extraction")) return ses_task_find("embed");
    return ses_task_find((*s)->name ? (*s)->name : own);
}

/* NAME or NAME/pipeline/TASK: *task NULL without one. */
static bool split_path(ses_job *j, const char **model, const char **task)
{
    static const char middle[] = "/pipeline/";
    ses_string rest = ses_job_copy(j, j->path_rest.p, j->path_rest.n);
    if (!rest.p) return false;
    char *s = (char *)(uintptr_t)rest.p, *at = strstr(s, middle);
    *task = NULL;
    if (at) *at = 0, *task = at + sizeof middle - 1;
    *model = s;
    return *s || ses_api_fail(&j->error, SES_API_NOT_FOUND, "model", "the path has no model: /models/NAME");
}

/* ---- settings ---- */

/* Parameters that are not settings of a pipeline: read elsewhere, or without effect. */
static const char *const ignored[] = {
    "stop",
    "details",
    "decoder_input_details",
    "watermark",
    "best_of",
    "truncation",
    "adapter_id",
    "clean_up_tokenization_spaces",
    "generate_parameters",
    "return_type",
    "candidate_labels",
    "normalize",
    "prompt_name",
    "stream",
};

static bool is_ignored(const ses_task *task, const char *parameter)
{
    for (size_t i = 0; i < SES_LEN(ignored); i++)
        if (!strcmp(ignored[i], parameter)) return true;
    return task == &ses_task_embed && ses_embed_reads(parameter);
}

static bool add_parameters(ses_job *j, const ses_json *p, const ses_task *task, ses_body_settings *out)
{
    for (size_t i = 0; i < ses_json_len(p); i++) {
        const ses_json *v = ses_json_at(p, i);
        const char *name = ses_json_key(p, i, NULL);
        if (ses_json_type_of(v) == SES_JSON_NULL || is_ignored(task, name)) continue;
        if (!ses_settings_add_json(j, out, task, name, v)) return false;
    }
    return true;
}

static bool read_parameters(ses_job *j, const shape *s, const ses_task_entry *task, ses_body_settings *out)
{
    const ses_json *p = ses_body_get(j->body, "parameters");
    const ses_json *generate = NULL; /* sent by summarization() and translation() */
    if (!ses_body_object(j, p, "generate_parameters", &generate) ||
        !ses_settings_begin(j, out, ses_json_len(p) + ses_json_len(generate) + 4))
        return false;
    if (s->defaults[0] && !ses_body_get(p, s->defaults[0]))
        ses_settings_add(out, task->task, s->defaults[0], s->defaults[1]);
    if (task->task->generates && !ses_generate_read(j, out, task->task, p)) return false;
    return add_parameters(j, p, task->task, out) && add_parameters(j, generate, task->task, out);
}

/* ---- inputs ---- */

/* "travel, food": the labels of a text, without blanks around them. */
static bool split_labels(ses_job *j, ses_string text, ses_string **list, size_t *n)
{
    size_t max = 1;
    for (size_t i = 0; i < text.n; i++) max += text.p[i] == ',';
    *list = ses_job_alloc(j, max, sizeof **list);
    *n = 0;
    for (size_t at = 0; *list && at <= text.n;) {
        const char *comma = at < text.n ? memchr(text.p + at, ',', text.n - at) : NULL;
        size_t end = comma ? (size_t)(comma - text.p) : text.n;
        ses_string s = ses_trim((ses_string){ text.p + at, end - at });
        if (s.n) (*list)[(*n)++] = s;
        at = end + 1;
    }
    return *list && (*n || ses_api_fail(&j->error, SES_API_EMPTY, "candidate_labels",
                                        "\"candidate_labels\" has no label"));
}

/* candidate_labels of the parameters are the list of every item: a list, or a text with commas. */
static bool read_labels(ses_job *j, ses_string **list, size_t *n)
{
    const ses_json *v = ses_body_get(ses_body_get(j->body, "parameters"), "candidate_labels");
    ses_string text = ses_body_text(v);
    if (text.p) return split_labels(j, text, list, n);
    return !v || ses_body_texts(j, v, "candidate_labels", list, n, false);
}

/* The text of a request with one input, and the second one if the task needs two, as on the other routes; in
 * a list each input has its own result. */
static bool check_filled(ses_job *j, const ses_item *item)
{
    bool pair = j->pipeline->task->task->item_schema.requires_pair;
    bool empty = (item->text.p && !item->text.n) || (pair && item->pair.p && !item->pair.n);
    return !empty || ses_api_fail(&j->error, SES_API_EMPTY, "inputs", "\"inputs\" has an empty text");
}

static bool add_input(ses_worker *w, ses_job *j, const ses_json *v, ses_item *common)
{
    const state *s = j->state;
    ses_err e = { 0 };
    ses_string *list = NULL;
    ses_item item = *common;
    const ses_pipeline *p = j->pipeline->compute;
    bool ok = ses_pipeline_item_from_json(p, v, &item, &list, &e);
    if (!ok) ses_api_fail_with(&j->error, SES_API_VALIDATION, "inputs", &e);
    ok = ok && (s->batch || check_filled(j, &item)) && ses_job_add(w, j, &item);
    free(list);
    return ok;
}

/* False: the input has not failed. */
static bool put_error(ses_json_writer *json, const ses_job_item *x)
{
    const ses_err *why = ses_job_item_error(x);
    if (!why) return false;
    ses_json_begin_object(json);
    ses_json_member_string(json, "error", why->msg);
    ses_json_end_object(json);
    return true;
}

static void done(ses_worker *w, ses_job *j)
{
    const state *s = j->state;
    ses_json_writer *json = ses_reply_begin(w, j, s->batch);
    if (!json) return;
    bool list = s->batch || s->shape->nested;
    if (list) ses_json_begin_array(json);
    for (size_t i = 0; i < j->n; i++) {
        const ses_job_item *x = &j->item[i];
        if (put_error(json, x)) continue;
        if (s->shape->put) {
            s->shape->put(json, &x->result);
        } else if (j->generation) {
            ses_generate_put(json, j, i);
        } else {
            ses_result_write_json(&x->result, json);
        }
    }
    if (list) ses_json_end_array(json);
    if (j->generation) ses_metrics_count_generated(ses_server_metrics(w->server), ses_generate_new_tokens(j));
    ses_reply_json(w, j, json);
}

/* ---- vectors of texts ---- */

static void embed_done(ses_worker *w, ses_job *j)
{
    const ses_embed_request *r = j->state;
    bool list = r->errors_of_items;
    ses_json_writer *json = ses_reply_begin(w, j, list);
    if (!json) return;
    if (list) ses_json_begin_array(json);
    for (size_t i = 0; i < j->n; i++)
        if (!put_error(json, &j->item[i])) ses_embed_put(json, j, i);
    if (list) ses_json_end_array(json);
    ses_reply_json(w, j, json);
}

/* feature_extraction() sends its settings beside "inputs". */
static bool run_embed(ses_worker *w, ses_job *j, const char *model)
{
    ses_embed_request *r = ses_job_alloc(j, 1, sizeof *r);
    const ses_json *p = ses_body_get(j->body, "parameters"), *inputs = ses_body_get(j->body, "inputs");
    ses_string *text = NULL;
    size_t n = 0;
    if (!r) return false;
    *r = (ses_embed_request){ .model = model, .normalize = -1, .truncate = true };
    r->errors_of_items = ses_json_type_of(inputs) == SES_JSON_ARRAY;
    return ses_embed_read(j, j->body, r) && ses_embed_read(j, p, r) &&
           ses_settings_begin(j, &r->settings, ses_json_len(p) + SES_EMBED_SETTINGS) &&
           add_parameters(j, p, &ses_task_embed, &r->settings) &&
           ses_body_texts(j, inputs, "inputs", &text, &n, false) &&
           ses_embed_submit(w, j, r, text, n, embed_done);
}

/* ---- the request ---- */

static bool run_task(ses_worker *w, ses_job *j, const char *model, const char *name)
{
    ses_body_settings settings;
    ses_item common = { 0 };
    ses_string *labels = NULL;
    bool stream = false;
    state *s = ses_job_alloc(j, 1, sizeof *s);
    const ses_json *inputs = ses_body_get(j->body, "inputs");
    const ses_json *parameters = NULL;
    if (!ses_body_object(j, j->body, "parameters", &parameters) ||
        !ses_body_bool(j, j->body, "stream", &stream))
        return false;
    if (!ses_body_string(j, parameters, "adapter_id", &model)) return false; /* an adapter is a model */
    if (!s || !ses_job_find_model(w, j, model, NULL)) return false;
    const ses_task_entry *task = find_task(j, name, &s->shape);
    if (!task)
        return ses_api_fail(&j->error, SES_API_NOT_FOUND, NULL, "no task \"%s\"",
                            ses_quoted_of(name, strlen(name)).s);
    if (!inputs) return ses_body_missing(j, "inputs");
    if (task->task == &ses_task_embed) return run_embed(w, j, model);
    if (!read_parameters(j, s->shape, task, &settings) || !read_labels(j, &labels, &common.n_list) ||
        !ses_job_open(w, j, model, task, settings.pipeline))
        return false;
    common.list = labels, common.settings = settings.item;
    s->batch = ses_json_type_of(inputs) == SES_JSON_ARRAY;
    if (s->batch && !ses_json_len(inputs))
        return ses_api_fail(&j->error, SES_API_EMPTY, "inputs", "\"inputs\" is empty");
    j->state = s;
    for (size_t i = 0; i < (s->batch ? ses_json_len(inputs) : 1); i++)
        if (!add_input(w, j, s->batch ? ses_json_at(inputs, i) : inputs, &common)) return false;
    if (!s->batch && !ses_job_check_items(j)) return false;
    if (!task->task->generates) return ses_job_submit(w, j, done);
    return ses_generate_submit(w, j, stream, done);
}

static bool handle(ses_worker *w, ses_job *j)
{
    const char *model, *task;
    return split_path(j, &model, &task) && run_task(w, j, model, task);
}

/* The first model's own task. Embedding, classification and ranking have the shape of
 * text-embeddings-inference, unless there are "parameters". */
const ses_route *ses_route_of_root(const ses_task_entry *task)
{
    static const struct {
        const char *task;
        const ses_route *route;
    } tei[] = { { "embed", &ses_route_embed },
                { "rerank", &ses_route_rerank },
                { "text-classification", &ses_route_predict } };
    for (size_t i = 0; task && i < SES_LEN(tei); i++)
        if (!strcmp(tei[i].task, task->name)) return tei[i].route;
    return NULL;
}

static bool root_handle(ses_worker *w, ses_job *j)
{
    ses_served_model *m = ses_registry_find(ses_server_registry(w->server), NULL, NULL);
    const ses_task_entry *task = m ? m->own_task : NULL;
    ses_served_model_release(m);
    const ses_route *own = ses_body_get(j->body, "parameters") ? NULL : ses_route_of_root(task);
    if (own) {
        j->route = own;
        return own->handle(w, j);
    }
    return run_task(w, j, NULL, NULL);
}

static const char request_schema[] =
    "{\"type\":\"object\",\"required\":[\"inputs\"],\"properties\":{\"inputs\":{\"type\":[\"string\","
    "\"array\",\"object\"]},"
    "\"parameters\":{\"type\":\"object\"},\"stream\":{\"type\":\"boolean\"}}}";

const ses_route ses_route_models = {
    .method = "POST",
    .path = "/models/*",
    .style = SES_STYLE_PLAIN,
    .handle = handle,
    .tag = "Hugging Face",
    .summary = "Runs a model: its own task, or TASK in /models/NAME/pipeline/TASK",
    .request = request_schema,
    .response = "{\"type\":[\"array\",\"object\"]}",
    .content_type = "text/event-stream",
};

const ses_route ses_route_root = {
    .method = "POST",
    .path = "/",
    .style = SES_STYLE_TEI,
    .handle = root_handle,
    .tag = "TEI",
    .summary = "Runs the first model's own task",
    .request = request_schema,
    .response = "{\"type\":[\"array\",\"object\"]}",
    .content_type = "text/event-stream",
};
