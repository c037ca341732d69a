/* The server: connects HTTP, routes, workers and the scheduler. */
#define _POSIX_C_SOURCE 200809L
#include "server.h"

#include "access_log.h"
#include "api_keys.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "reloader.h"
#include "route.h"
#include "serve_impl.h"
#include "tensor/device_impl.h"
#include "workers.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MAX_INLINE_BYTES = 4096, MAX_INLINE_STRINGS = 32, MAX_INLINE_JOBS = 8, INLINE_PAUSE_NS = 200000000 };
enum { BULK_BYTES = 16384 };
#define INLINE_SECONDS 0.02

struct ses_server {
    ses_server_options o;
    ses_registry *registry;
    ses_scheduler *scheduler;
    ses_metrics *metrics;
    ses_workers *workers;
    ses_worker io;    /* the I/O thread as a worker */
    int inline_jobs;  /* requests of this round that the I/O thread has prepared */
    bool handed_over; /* an idle worker got another one of this round; it computes the prepared ones, too */
    uint64_t inline_from_ns; /* before this time no request is computed in the I/O thread; for GPUs */
    ses_http_server *http;
    ses_tiktoken *tiktoken; /* NULL: none */
    ses_api_keys *keys;     /* NULL: none are needed */
    ses_model_list *models; /* options.models and models_file */
    ses_access_log *log;
    double started;
    atomic_bool draining, analyzing;
    ses_reloader *reloader;
};

const ses_server_options *ses_server_get_options(const ses_server *s) { return &s->o; }
ses_registry *ses_server_registry(ses_server *s) { return s->registry; }
ses_scheduler *ses_server_scheduler(ses_server *s) { return s->scheduler; }
ses_metrics *ses_server_metrics(ses_server *s) { return s->metrics; }
ses_reloader *ses_server_reloader(ses_server *s) { return s->reloader; }
uint64_t ses_server_dropped_log_lines(ses_server *s) { return ses_access_log_dropped(s->log); }
const ses_http_server *ses_server_http(const ses_server *s) { return s->http; }
const ses_tiktoken *ses_server_tiktoken(const ses_server *s) { return s->tiktoken; }
int ses_server_retry_after(ses_server *s) { return ses_scheduler_retry_after(s->scheduler); }
double ses_server_uptime(const ses_server *s) { return ses_seconds() - s->started; }
bool ses_server_is_draining(const ses_server *s) { return atomic_load(&s->draining); }
bool ses_server_begin_analysis(ses_server *s) { return !atomic_exchange(&s->analyzing, true); }
void ses_server_end_analysis(ses_server *s) { atomic_store(&s->analyzing, false); }
int ses_server_port(const ses_server *s) { return ses_http_server_port(s->http); }

/* ---- in the workers ---- */

/* Finishes the items of a computed job and answers. */
static void finish_job(ses_worker *w, ses_job *j)
{
    ses_err e = { 0 };
    if (j->error.code) {
        ses_reply_error(w, j);
        return;
    }
    ses_pipeline *p = ses_served_pipeline_encoder(j->pipeline, w->index, &e);
    for (size_t i = 0; i < j->n; i++) {
        ses_job_item *x = &j->item[i];
        if (x->error || x->request->error) continue;
        if (p && ses_request_finish(p, x->request, &x->result, &e)) continue;
        x->request->error = ses_job_alloc(j, 1, sizeof e);
        if (!x->request->error) {
            ses_reply_error(w, j);
            return;
        }
        *x->request->error = e;
        e = (ses_err){ 0 };
    }
    j->done(w, j);
}

/* The type, possibly with parameters. */
static bool is_type(ses_string type, const char *wanted)
{
    size_t n = strlen(wanted);
    return type.n >= n && !strncasecmp(type.p, wanted, n) && (type.n == n || strchr("; \t", type.p[n]));
}

/* JSON, or no type: curl -d sends that of forms when it is given none. A form of a page on another site has
 * it, too. */
static bool may_be_json(const ses_job *j, ses_string type)
{
    return !type.p || is_type(type, "application/json") ||
           (is_type(type, "application/x-www-form-urlencoded") && ses_job_is_same_site(j));
}

static bool parse_body(ses_job *j)
{
    ses_err e = { 0 };
    ses_string body = ses_http_body(j->x), type = ses_http_header(j->x, "content-type");
    if (!may_be_json(j, type))
        return ses_api_fail(&j->error, SES_API_MEDIA_TYPE, NULL,
                            "the body must have the Content-Type application/json, not %s",
                            ses_quoted_of(type.p, type.n).s);
    j->doc = ses_json_parse(body.p, body.n, &e);
    if (!j->doc)
        return ses_api_fail(&j->error, SES_API_VALIDATION, NULL, "the body is not valid JSON: %s", e.msg);
    j->body = ses_json_root(j->doc);
    return ses_json_type_of(j->body) == SES_JSON_OBJECT ||
           ses_api_fail(&j->error, SES_API_VALIDATION, NULL, "the body must be a JSON object, not %s",
                        ses_json_type_name(ses_json_type_of(j->body)));
}

/* Clients that do not read fill the memory with responses: no more are computed then. */
static bool is_crowded(const ses_server *s)
{
    ses_http_stats x = ses_http_server_stats(s->http);
    return x.buffered_bytes > x.max_buffered_bytes;
}

/* Gives a job that the I/O thread must not prepare to the workers. False: it has another error. */
static bool hand_over(ses_worker *w, ses_job *j)
{
    if (w->pool || !j->needs_worker) return false;
    ses_job_restart(j);
    return ses_workers_push(w->server->workers, j, false) ||
           ses_api_fail(&j->error, SES_API_OVERLOADED, NULL,
                        "too many requests are waiting; try again later");
}

/* Calls the route. */
static void begin_job(ses_worker *w, ses_job *j)
{
    if (ses_http_is_cancelled(j->x))
        ses_api_fail(&j->error, SES_API_CANCELLED, NULL, "the client has disconnected");
    else if (is_crowded(w->server))
        ses_api_fail(&j->error, SES_API_OVERLOADED, NULL, "too many responses wait for their clients");
    bool ok = !j->error.code && (!j->route->request || parse_body(j)) && j->route->handle(w, j);
    if (!ok && !hand_over(w, j)) ses_reply_error(w, j);
}

/* Before a batch on the CPU: answers and new requests need the same cores. A GPU would have to wait. */
static void help_workers(void *ctx, ses_worker *w)
{
    ses_server *s = ctx;
    if (s->o.dev->is_host && w != &s->io) ses_workers_help(s->workers, w);
}

static void handle_job(ses_worker *w, ses_job *j)
{
    begin_job(w, j);
    help_workers(w->server, w);                    /* requests that arrive together become one batch */
    ses_scheduler_run(w->server->scheduler, w, 0); /* unless another worker is computing */
}

/* ---- in the computing thread ---- */

/* The computing thread answers itself if it computes no other batch: this saves a hand-over. */
static void on_computed(void *ctx, ses_worker *w, ses_job *j, bool more)
{
    ses_server *s = ctx;
    if (more && w != &s->io)
        ses_workers_push_computed(s->workers, j);
    else
        finish_job(w, j);
}

static void on_batch(void *ctx, size_t sequences, int64_t tokens, uint64_t ns)
{
    ses_server *s = ctx;
    ses_metrics_count_batch(s->metrics, sequences, tokens, ns);
}

/* ---- in the I/O thread ---- */

static void compute_rest(void *ctx, ses_worker *w)
{
    ses_server *s = ctx;
    ses_scheduler_run(s->scheduler, w, 0);
}

/* Many requests at a time: the workers are faster; while a GPU computes, they prepare the next batch. */
static bool is_crowd(ses_server *s, const ses_job *j)
{
    if (s->o.dev->is_host) return s->inline_jobs >= MAX_INLINE_JOBS;
    uint64_t now = ses_http_received_ns(j->x);
    if (ses_http_server_is_busy(s->http)) s->inline_from_ns = now + INLINE_PAUSE_NS;
    return s->inline_jobs || now < s->inline_from_ns;
}

/* About as many strings as the JSON has: many short inputs take long, too. */
static int64_t count_strings(ses_string body)
{
    int64_t quotes = 0;
    for (size_t i = 0; i < body.n && i <= MAX_INLINE_BYTES; i++) quotes += body.p[i] == '"';
    return quotes / 2;
}

/* Small requests to an idle server are computed in the I/O thread, all that have arrived in one batch: two
 * hand-overs less. Other clients would have to wait for the batch anyway. Here they are prepared. */
static bool prepare_inline(ses_server *s, ses_job *j)
{
    if (!j->route->inlined || s->handed_over) return false;
    ses_string body = ses_http_body(j->x);
    int64_t strings = count_strings(body);
    if (body.n > MAX_INLINE_BYTES || strings > MAX_INLINE_STRINGS) return false;
    if (ses_workers_pending(s->workers) || is_crowd(s, j) ||
        !ses_scheduler_is_quick(s->scheduler, (int64_t)body.n / 4 + 2 * strings, INLINE_SECONDS)) {
        s->handed_over = s->inline_jobs && ses_workers_have_idle(s->workers);
        return false;
    }
    s->inline_jobs++;
    begin_job(&s->io, j);
    return true;
}

/* Computes the prepared requests. */
static bool on_round(void *ctx)
{
    ses_server *s = ctx;
    bool prepared = s->inline_jobs > 0, by_worker = s->handed_over;
    s->inline_jobs = 0, s->handed_over = false;
    if (!prepared || by_worker) return prepared;
    /* The texts may have more tokens than their bytes suggested. */
    bool quick = ses_scheduler_is_quick(s->scheduler, 0, 2 * INLINE_SECONDS);
    if (!quick || ses_scheduler_run(s->scheduler, &s->io, 1)) ses_workers_call(s->workers, compute_rest, s);
    return true;
}

/* Whether the request may wait for others before its texts are tokenized. */
static bool is_bulk(const ses_http_exchange *x)
{
    ses_string priority = ses_http_header(x, "x-priority");
    return priority.p ? ses_equal(priority.p, priority.n, "bulk") : ses_http_body(x).n > BULK_BYTES;
}

bool ses_server_has_key(const ses_server *s, const ses_http_exchange *x)
{
    return !s->keys || ses_api_keys_check(s->keys, ses_http_header(x, "authorization"));
}

static bool is_allowed(ses_server *s, ses_http_exchange *x, const ses_route *route)
{
    return (route && route->public) || ses_server_has_key(s, x);
}

static void on_request(void *ctx, ses_http_exchange *x)
{
    ses_server *s = ctx;
    const char *allowed = NULL;
    ses_string rest = { 0 }, path = ses_http_path(x);
    const ses_route *route = ses_route_find(ses_http_method(x), path, &rest, &allowed);
    ses_job *j = ses_job_new(x, route);
    if (!j) {
        ses_http_reply(x, 503, NULL, NULL, 0, NULL);
        return;
    }
    ses_http_set_user(x, (void *)(uintptr_t)route);
    j->path_rest = rest;
    if (!is_allowed(s, x, route)) {
        ses_api_fail(&j->error, SES_API_UNAUTHORIZED, NULL,
                     "an API key is needed: Authorization: Bearer KEY");
    } else if (allowed && !route) {
        ses_http_add_header(x, "Allow", allowed);
        ses_api_fail(&j->error, SES_API_METHOD, NULL, "%s needs the method %s",
                     ses_quoted_of(path.p, path.n).s, allowed);
    } else if (!route || (route->admin && !s->o.admin)) {
        ses_api_fail(&j->error, SES_API_NOT_FOUND, NULL, "no route %s; /openapi.json lists them",
                     ses_quoted_of(path.p, path.n).s);
    } else if (route->immediate) {
        if (route->handle(&s->io, j)) return;
    } else if (prepare_inline(s, j) || ses_workers_push(s->workers, j, is_bulk(x))) {
        return;
    } else {
        ses_api_fail(&j->error, SES_API_OVERLOADED, NULL, "too many requests are waiting; try again later");
    }
    ses_reply_error(&s->io, j);
}

static void on_done(void *ctx, const ses_http_exchange *x)
{
    ses_server *s = ctx;
    const ses_route *route = ses_http_user(x);
    ses_metrics_count_response(s->metrics, route ? route->path : "", ses_http_status(x),
                               ses_http_duration_ns(x), route && route->request);
    ses_access_log_write(s->log, x);
}

static void on_rejected(void *ctx, int status, const char *reason)
{
    ses_server *s = ctx;
    (void)reason;
    ses_metrics_count_response(s->metrics, "", status, 0, false);
}

void ses_server_reload(ses_server *s) { ses_reloader_load_all(s->reloader); }

/* ---- life ---- */

static void set_defaults(ses_server_options *o)
{
    bool host = o->dev->is_host;
    if (o->workers < 1) o->workers = host ? 2 : 4;
    if (o->workers < 2) o->workers = 2; /* one computes, another one tokenizes and answers */
    if (o->workers >= SES_MAX_WORKERS) o->workers = SES_MAX_WORKERS - 1; /* and the I/O thread */
    if (o->batch_tokens < 1) o->batch_tokens = host ? 2048 : 16384;
    if (o->max_inputs < 1) o->max_inputs = 2048;
    if (o->queue_inputs < 1) o->queue_inputs = 4096;
    if (o->queue_tokens < 1) o->queue_tokens = 1 << 20;
    if (o->max_new_tokens < 1) o->max_new_tokens = 1024;
    if (!(o->deadline_seconds > 0)) o->deadline_seconds = 300;
    if (!(o->drain_seconds > 0)) o->drain_seconds = 30;
}

static bool open_parts(ses_server *s, ses_err *e)
{
    ses_server_options *o = &s->o;
    s->registry = ses_registry_new(o->dev, e);
    s->models = s->registry ? ses_model_list_new(o->models, o->n_models, o->models_file, e) : NULL;
    if (!s->models || !ses_model_list_apply(s->models, s->registry, false, e)) return false;
    for (size_t i = 0; i < o->n_aliases; i++)
        if (!ses_registry_alias(s->registry, o->aliases[i], e)) return false;
    if (!(s->reloader = ses_reloader_new(s, s->models, s->registry, o->log, e))) return false;
    if (o->tiktoken && !(s->tiktoken = ses_tiktoken_open(o->tiktoken, e))) return false;
    if (o->api_key_file && !(s->keys = ses_api_keys_open(o->api_key_file, e))) return false;
    s->metrics = ses_metrics_new(e);
    s->log = ses_access_log_new(o->log, o->log_format, e);
    s->scheduler = ses_scheduler_new(&(ses_scheduler_options){ .batch_tokens = o->batch_tokens,
                                                               .queue_inputs = o->queue_inputs,
                                                               .queue_tokens = o->queue_tokens,
                                                               .finished = on_computed,
                                                               .on_batch = on_batch,
                                                               .between = help_workers,
                                                               .ctx = s },
                                     e);
    if (!s->metrics || !s->log || !s->scheduler) return false;
    ses_workers_options w = { .server = s,
                              .n = o->workers,
                              .max_pending = 4096,
                              .handle = handle_job,
                              .begin = begin_job,
                              .finish = finish_job };
    s->io = (ses_worker){ .server = s, .index = o->workers };
    s->workers = ses_workers_new(&w, e);
    if (!s->workers) return false;
    ses_http_options http = o->http;
    http.on_request = on_request, http.on_done = on_done, http.on_rejected = on_rejected,
    http.on_round = on_round, http.ctx = s;
    s->http = ses_http_server_new(&http, e);
    if (s->http) ses_http_server_set_drain_seconds(s->http, o->drain_seconds);
    return s->http != NULL;
}

ses_server *ses_server_new(const ses_server_options *o, ses_err *e)
{
    ses_server *s = ses_alloc(sizeof *s, e);
    if (!s) return NULL;
    s->o = *o;
    s->started = ses_seconds();
    set_defaults(&s->o);
    if (open_parts(s, e)) return s;
    ses_server_free(s);
    return NULL;
}

bool ses_server_run(ses_server *s, ses_err *e) { return ses_http_server_run(s->http, e); }

void ses_server_drain(ses_server *s)
{
    atomic_store(&s->draining, true);
    ses_http_server_drain(s->http);
}

void ses_server_stop(ses_server *s) { ses_http_server_stop(s->http); }

void ses_server_free(ses_server *s)
{
    if (!s) return;
    ses_workers_free(s->workers);
    ses_reloader_free(s->reloader);
    ses_http_server_free(s->http);
    ses_scheduler_free(s->scheduler);
    ses_registry_free(s->registry);
    ses_model_list_free(s->models);
    ses_tiktoken_free(s->tiktoken);
    ses_api_keys_free(s->keys);
    ses_access_log_free(s->log);
    ses_metrics_free(s->metrics);
    ses_free(s);
}
