/* Jobs: memory, model, items. */
#include "job.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "serve_impl.h"

#include <stdlib.h>
#include <string.h>

/* Jobs above these sizes are bulk, unless the header x-priority decides. */
enum { INTERACTIVE_INPUTS = 8, INTERACTIVE_TOKENS = 2048 };

ses_job *ses_job_new(ses_http_exchange *x, const ses_route *route)
{
    ses_job *j = ses_alloc(sizeof *j, NULL);
    if (!j) return NULL;
    j->x = x;
    j->route = route;
    j->mem.min_block = 1024;
    return j;
}

static void free_parts(ses_job *j)
{
    for (size_t i = 0; i < j->n; i++) ses_request_free(j->item[i].request);
    ses_free(j->item);
    ses_served_pipeline_release(j->pipeline);
    ses_served_model_release(j->model);
    ses_json_free(j->doc);
    ses_arena_free(&j->mem);
}

void ses_job_free(ses_job *j)
{
    free_parts(j);
    ses_free(j);
}

void ses_job_restart(ses_job *j)
{
    ses_job fresh = { .x = j->x, .route = j->route, .path_rest = j->path_rest };
    fresh.mem.min_block = j->mem.min_block;
    fresh.needs_worker = j->needs_worker;
    free_parts(j);
    *j = fresh;
}

void *ses_job_alloc(ses_job *j, size_t n, size_t size)
{
    ses_err e = { 0 };
    void *p = ses_arena_array(&j->mem, n, size, &e);
    if (!p) ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    return p;
}

ses_string ses_job_copy(ses_job *j, const char *s, size_t n)
{
    ses_err e = { 0 };
    char *copy = ses_arena_strndup(&j->mem, s, n, &e);
    if (!copy) ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    return (ses_string){ copy, copy ? n : 0 };
}

/* ---- model and pipeline ---- */

bool ses_job_find_model(ses_worker *w, ses_job *j, const char *name, const ses_task_entry *task)
{
    ses_registry *r = ses_server_registry(w->server);
    bool any = task && ses_server_get_options(w->server)->any_model;
    if (!j->model) j->model = ses_registry_find(r, name, task);
    if (!j->model && any) j->model = ses_registry_only(r, task);
    if (j->model) return true;
    if (name && *name && any)
        return ses_api_fail(
            &j->error, SES_API_NOT_FOUND, "model",
            "no model \"%s\" is loaded, and not exactly one for %s; GET /v1/models lists them",
            ses_quoted_of(name, strlen(name)).s, task->name);
    if (name && *name)
        return ses_api_fail(&j->error, SES_API_NOT_FOUND, "model",
                            "no model \"%s\" is loaded; GET /v1/models lists them",
                            ses_quoted_of(name, strlen(name)).s);
    return task ? ses_api_fail(&j->error, SES_API_NOT_FOUND, "model", "no loaded model supports %s",
                               task->name)
                : ses_api_fail(&j->error, SES_API_UNAVAILABLE, NULL, "no model is loaded");
}

bool ses_job_find_first(ses_worker *w, ses_job *j, bool (*suits)(const ses_served_model *m))
{
    ses_err e = { 0 };
    size_t n = 0;
    ses_served_model **list = ses_registry_list(ses_server_registry(w->server), &n, &e);
    if (!list) return ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    for (size_t i = 0; i < n; i++) {
        if (!j->model && suits(list[i]))
            j->model = list[i];
        else
            ses_served_model_release(list[i]);
    }
    ses_free(list);
    return true;
}

bool ses_job_open(ses_worker *w, ses_job *j, const char *model, const ses_task_entry *task,
                  const ses_setting *settings)
{
    ses_err e = { 0 };
    bool full;
    if (!ses_job_find_model(w, j, model, task)) return false;
    if (!ses_served_model_supports(j->model, task))
        return ses_api_fail(&j->error, SES_API_VALIDATION, "model", "%s does not support %s", j->model->name,
                            task->name);
    ses_served_pipeline_release(j->pipeline);
    j->pipeline = NULL;
    if (!w->pool) {
        j->pipeline = ses_served_pipeline_find(j->model, task, settings, w->index);
        j->needs_worker = !j->pipeline;
        return j->pipeline != NULL;
    }
    j->pipeline = ses_served_pipeline_get(j->model, task, settings, &full, &e);
    if (!j->pipeline && full) return ses_api_fail(&j->error, SES_API_OVERLOADED, "parameters", "%s", e.msg);
    if (!j->pipeline) return ses_api_fail_with(&j->error, SES_API_VALIDATION, "parameters", &e);
    /* next time the I/O thread can compute such a request */
    bool ok = ses_served_pipeline_encoder(j->pipeline, w->index, &e) &&
              (!j->needs_worker ||
               ses_served_pipeline_encoder(j->pipeline, ses_server_get_options(w->server)->workers, &e));
    return ok || ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
}

/* ---- items ---- */

ses_api_code ses_api_code_of(const ses_err *why, bool computing)
{
    if (why->code == SES_ENOMEM) return SES_API_BACKEND;
    if (!computing) return why->code == SES_EUSAGE ? SES_API_VALIDATION : SES_API_TOKENIZER;
    if (strstr(why->msg, "NaN")) return SES_API_NOT_FINITE;
    return why->code == SES_EARG ? SES_API_VALIDATION : SES_API_BACKEND; /* settings the generator refuses */
}

static size_t count_characters(const ses_item *item)
{
    size_t n = ses_utf8_count(item->text.p, item->text.n) + ses_utf8_count(item->pair.p, item->pair.n);
    for (size_t i = 0; i < item->n_list; i++) n += ses_utf8_count(item->list[i].p, item->list[i].n);
    return n;
}

bool ses_job_check_count(ses_worker *w, ses_job *j, size_t n)
{
    int64_t max = ses_server_get_options(w->server)->max_inputs;
    return (int64_t)n <= max || ses_api_fail(&j->error, SES_API_TOO_LARGE, NULL,
                                             "the request has more than %lld inputs", (long long)max);
}

bool ses_job_add(ses_worker *w, ses_job *j, const ses_item *item)
{
    ses_err e = { 0 };
    uint64_t begin = ses_clock_ns();
    if (!ses_job_check_count(w, j, j->n + 1) || !ses_job_check_count(w, j, item->n_list)) return false;
    if (!ses_array_reserve(&j->item, &j->capacity, j->n + 1, sizeof *j->item, &e))
        return ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    ses_job_item *to = &j->item[j->n++];
    *to = (ses_job_item){ 0 };
    ses_pipeline *p = ses_served_pipeline_encoder(j->pipeline, w->index, &e);
    to->request = p ? ses_request_prepare(p, item, &e) : NULL;
    if (to->request) {
        j->tokens += to->request->tokens;
        if (j->tokens > SES_MAX_JOB_TOKENS)
            return ses_api_fail(&j->error, SES_API_TOO_LARGE, NULL,
                                "the request has more than %d tokens; send fewer inputs", SES_MAX_JOB_TOKENS);
        j->truncated += to->request->truncated;
        j->sequences += (int64_t)to->request->n_seqs;
    } else {
        to->error = ses_job_alloc(j, 1, sizeof *to->error);
        if (!to->error) return false;
        *to->error = e;
    }
    j->characters += (int64_t)count_characters(item);
    j->encode_ns += ses_clock_ns() - begin;
    return true;
}

const ses_err *ses_job_item_error(const ses_job_item *x)
{
    ses_err *why = x->error ? x->error : x->request ? x->request->error : NULL;
    if (why) ses_api_name_fields(why->msg);
    return why;
}

bool ses_job_check_truncation(ses_job *j)
{
    for (size_t i = 0; i < j->n; i++) {
        const ses_request *r = j->item[i].request;
        if (r && r->truncated)
            return ses_api_fail(&j->error, SES_API_VALIDATION, "truncate",
                                "input %zu has %lld tokens, the model accepts %lld; set \"truncate\" to true",
                                i, (long long)(r->tokens + r->truncated),
                                (long long)ses_pipeline_max_seq_len(j->pipeline->compute));
    }
    return true;
}

bool ses_job_check_items(ses_job *j)
{
    for (size_t i = 0; i < j->n; i++) {
        const ses_err *why = ses_job_item_error(&j->item[i]);
        if (!why) continue;
        ses_api_code code = ses_api_code_of(why, j->item[i].request != NULL);
        return j->n == 1 ? ses_api_fail(&j->error, code, NULL, "%s", why->msg)
                         : ses_api_fail(&j->error, code, NULL, "input %zu: %s", i, why->msg);
    }
    return true;
}

/* ---- headers ---- */

/* Browsers name the site whose page sends a request. */
bool ses_job_is_same_site(const ses_job *j)
{
    ses_string origin = ses_http_header(j->x, "origin"), host = ses_http_header(j->x, "host");
    if (!origin.p) return true;
    return origin.n > host.n + 3 && host.p && !memcmp(origin.p + origin.n - host.n, host.p, host.n) &&
           !memcmp(origin.p + origin.n - host.n - 3, "://", 3);
}

static bool read_priority(ses_job *j)
{
    ses_string s = ses_http_header(j->x, "x-priority");
    bool small = j->n <= INTERACTIVE_INPUTS && j->tokens <= INTERACTIVE_TOKENS;
    j->priority = small ? SES_PRIORITY_INTERACTIVE : SES_PRIORITY_BULK;
    if (!s.p) return true;
    if (ses_equal(s.p, s.n, "interactive"))
        j->priority = SES_PRIORITY_INTERACTIVE;
    else if (ses_equal(s.p, s.n, "bulk"))
        j->priority = SES_PRIORITY_BULK;
    else
        return ses_api_fail(&j->error, SES_API_VALIDATION, "x-priority",
                            "x-priority must be interactive or bulk");
    return true;
}

bool ses_job_read_deadline(const ses_worker *w, ses_job *j)
{
    ses_string s = ses_http_header(j->x, "x-deadline-ms");
    double ms = 1000 * ses_server_get_options(w->server)->deadline_seconds;
    if (s.p) {
        char *end;
        ms = s.n < 16 ? strtod(s.p, &end) : -1;
        if (!(ms > 0) || end != s.p + s.n || ms > 1e9)
            return ses_api_fail(&j->error, SES_API_VALIDATION, "x-deadline-ms",
                                "x-deadline-ms must be a number of milliseconds above 0");
    }
    j->deadline_ns = ses_http_received_ns(j->x) + (uint64_t)(ms * 1e6);
    return true;
}

bool ses_job_submit(ses_worker *w, ses_job *j, ses_job_fn *done)
{
    if (!j->n) return ses_api_fail(&j->error, SES_API_EMPTY, NULL, "the request has no input");
    if (!read_priority(j) || !ses_job_read_deadline(w, j)) return false;
    j->done = done;
    return ses_scheduler_submit(ses_server_scheduler(w->server), j);
}
