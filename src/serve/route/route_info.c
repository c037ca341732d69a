/* GET /v1/models, /v1/models/NAME, /info: the loaded models. */
#include "base/alloc.h"
#include "base/str.h"
#include "serve/route.h"
#include "serve/serve_impl.h"
#include "sesame/base.h"

#include <stdio.h>
#include <string.h>

static void put_tasks(ses_json_writer *json, const ses_served_model *m)
{
    ses_json_member_array(json, "tasks");
    for (const ses_task_entry *t = ses_task_entries(); t->name; t++)
        if (t->summary && ses_served_model_supports(m, t)) ses_json_put_string(json, t->name);
    ses_json_end_array(json);
}

static void put_label(ses_json_writer *json, const char *name, int64_t i)
{
    char number[32];
    snprintf(number, sizeof number, "LABEL_%lld", (long long)i);
    ses_json_put_string(json, name ? name : number);
}

static void put_labels(ses_json_writer *json, const ses_model *m)
{
    const ses_head *h = m->class->head[0].head;
    if (h != &ses_head_sequence_classification && h != &ses_head_token_classification) return;
    ses_json_member_array(json, "labels");
    for (int64_t i = 0; i < ses_model_label_count(m); i++) put_label(json, ses_model_label_name(m, i), i);
    ses_json_end_array(json);
}

static void put_neural(ses_json_writer *json, const ses_served_model *m, const ses_pipeline *p)
{
    const ses_model *x = m->model;
    ses_json_member_string(json, "architecture", ses_model_class_name(x));
    ses_json_member_string(json, "model_type", ses_served_model_type(m));
    ses_json_member_int(json, "parameters", ses_served_model_parameters(m));
    ses_json_member_string(json, "dtype", ses_served_model_dtype(m));
    ses_json_member_int(json, "n_layers", ses_model_layer_count(x));
    if (p) ses_json_member_int(json, "max_input_tokens", ses_pipeline_max_seq_len(p));
    ses_json_member_int(json, "vocab_size", ses_model_vocab_size(x));
    if (p && ses_pipeline_encoder(p))
        ses_json_member_int(json, "dimensions", ses_sentence_width(ses_pipeline_encoder(p)));
    put_labels(json, x);
    if (p && p->tokenizer_config.role[SES_ROLE_MASK] >= 0) {
        size_t n = 0;
        const char *mask =
            ses_tokenizer_id_to_token(m->tokenizer, p->tokenizer_config.role[SES_ROLE_MASK], &n);
        if (mask) ses_json_member_stringn(json, "mask_token", mask, n);
    }
}

/* A classifier of texts without a neural encoder: its method, and what it has learned. */
static void put_classifier(ses_json_writer *json, const ses_served_model *m, const ses_pipeline *p)
{
    const ses_classifier *c = p->classifier;
    const ses_json *names = ses_json_get(ses_json_root(p->config), "id2label");
    ses_json_member_string(json, "architecture", c->kind->name);
    ses_json_member_string(json, "model_type", ses_served_model_type(m));
    if (c->kind->parameters) ses_json_member_int(json, "parameters", ses_served_model_parameters(m));
    ses_json_member_string(json, "dtype", ses_served_model_dtype(m));
    if (c->kind->features) ses_json_member_int(json, "features", c->kind->features(c->self));
    ses_json_member_array(json, "labels");
    for (size_t i = 0; i < c->n_labels; i++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", i);
        put_label(json, ses_json_string(ses_json_get(names, number), NULL), (int64_t)i);
    }
    ses_json_end_array(json);
}

static void put_aliases(ses_json_writer *json, const ses_registry *r, const ses_served_model *m)
{
    const char *alias, *model;
    size_t n = 0;
    for (size_t i = 0; (alias = ses_registry_alias_at(r, i, &model)); i++) {
        if (strcmp(model, m->name)) continue;
        if (!n++) ses_json_member_array(json, "aliases");
        ses_json_put_string(json, alias);
    }
    if (n) ses_json_end_array(json);
}

static void put_model(ses_json_writer *json, const ses_registry *r, ses_served_model *m)
{
    ses_served_pipeline *p = ses_served_model_pipeline(m);
    ses_json_begin_object(json);
    ses_json_member_string(json, "id", m->name);
    ses_json_member_string(json, "object", "model");
    ses_json_member_int(json, "created", m->created);
    ses_json_member_string(json, "owned_by", "sesame");
    put_aliases(json, r, m);
    ses_json_member_string(json, "task", m->own_task->name);
    put_tasks(json, m);
    if (m->model) put_neural(json, m, p ? p->compute : NULL);
    if (p && p->compute->classifier) put_classifier(json, m, p->compute);
    ses_json_end_object(json);
}

static bool list_models(ses_worker *w, ses_job *j)
{
    size_t n = 0;
    ses_err e = { 0 };
    ses_json_writer *json = ses_reply_writer(j);
    ses_served_model **model = json ? ses_registry_list(ses_server_registry(w->server), &n, &e) : NULL;
    if (!model) {
        ses_json_writer_free(json);
        return ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    }
    ses_json_begin_object(json);
    ses_json_member_string(json, "object", "list");
    ses_json_member_array(json, "data");
    for (size_t i = 0; i < n; i++) {
        put_model(json, ses_server_registry(w->server), model[i]);
        ses_served_model_release(model[i]);
    }
    ses_free(model);
    ses_json_end_array(json);
    ses_json_end_object(json);
    ses_reply_json(w, j, json);
    return true;
}

static bool one_model(ses_worker *w, ses_job *j)
{
    ses_string name = ses_job_copy(j, j->path_rest.p, j->path_rest.n);
    if (!name.p) return false;
    if (!name.n) return ses_api_fail(&j->error, SES_API_NOT_FOUND, "model", "the path has no model");
    ses_json_writer *json = ses_job_find_model(w, j, name.p, NULL) ? ses_reply_writer(j) : NULL;
    if (!json) return false;
    put_model(json, ses_server_registry(w->server), j->model);
    ses_reply_json(w, j, json);
    return true;
}

/* The first model, with the keys of text-embeddings-inference. */
static bool info(ses_worker *w, ses_job *j)
{
    const ses_server_options *o = ses_server_get_options(w->server);
    ses_json_writer *json = ses_job_find_model(w, j, NULL, NULL) ? ses_reply_writer(j) : NULL;
    if (!json) return false;
    ses_served_pipeline *p = ses_served_model_pipeline(j->model);
    ses_json_begin_object(json);
    ses_json_member_string(json, "model_id", j->model->name);
    ses_json_member_string(json, "model_dtype", ses_served_model_dtype(j->model));
    ses_json_member_object(json, "model_type");
    ses_json_member_object(json, j->model->own_task->task == &ses_task_embed    ? "embedding"
                                 : j->model->own_task->task == &ses_task_rerank ? "reranker"
                                                                                : "classifier");
    ses_json_end_object(json);
    ses_json_end_object(json);
    ses_json_member_int(json, "max_concurrent_requests", o->queue_inputs);
    ses_json_member_int(json, "max_input_length",
                        !p                  ? 0
                        : p->compute->model ? ses_pipeline_max_seq_len(p->compute)
                                            : SES_MAX_JOB_TOKENS);
    ses_json_member_int(json, "max_batch_tokens", o->batch_tokens);
    ses_json_member_int(json, "max_client_batch_size", o->max_inputs);
    ses_json_member_int(json, "tokenization_workers", o->workers);
    ses_json_member_bool(json, "auto_truncate", true);
    ses_json_member_string(json, "version", SES_VERSION);
    ses_json_end_object(json);
    ses_reply_json(w, j, json);
    return true;
}

#define INFO(path_, style_, handle_, tag_, summary_)                                     \
    {                                                                                    \
        .method = "GET", .path = path_, .style = style_, .handle = handle_, .tag = tag_, \
        .summary = summary_, .response = "{\"type\":\"object\"}"                         \
    }

const ses_route ses_route_openai_models =
    INFO("/v1/models", SES_STYLE_OPENAI, list_models, "OpenAI", "The loaded models with their tasks");
const ses_route ses_route_openai_model =
    INFO("/v1/models/*", SES_STYLE_OPENAI, one_model, "OpenAI", "One loaded model");
const ses_route ses_route_info =
    INFO("/info", SES_STYLE_TEI, info, "TEI", "The first model and the limits of the server");
