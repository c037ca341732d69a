/* GET /metrics: Prometheus. GET /stats: the same figures for the page, as JSON. */
#include "base/alloc.h"
#include "serve/route.h"
#include "serve/serve_impl.h"

typedef struct context {
    ses_metrics_context c;
    ses_served_model **model; /* [n] references; NULL: no memory */
    size_t n;
    const char **name; /* [n] */
} context;

static void begin_context(ses_server *s, context *x)
{
    *x = (context){ 0 };
    x->model = ses_registry_list(ses_server_registry(s), &x->n, NULL);
    x->name = ses_alloc_array(x->n + 1, sizeof *x->name, NULL);
    for (size_t i = 0; x->name && i < x->n; i++) x->name[i] = x->model[i]->name;
    x->c = (ses_metrics_context){ .queue = ses_scheduler_get_stats(ses_server_scheduler(s)),
                                  .http = ses_http_server_stats(ses_server_http(s)),
                                  .uptime = ses_server_uptime(s),
                                  .dropped_log_lines = ses_server_dropped_log_lines(s),
                                  .models = x->name,
                                  .n_models = x->name ? x->n : 0 };
}

static void end_context(context *x)
{
    for (size_t i = 0; i < x->n; i++) ses_served_model_release(x->model[i]);
    ses_free(x->model);
    ses_free(x->name);
}

static bool metrics(ses_worker *w, ses_job *j)
{
    context x;
    ses_buf b = { 0 };
    begin_context(w->server, &x);
    ses_metrics_write_prometheus(ses_server_metrics(w->server), &x.c, &b);
    end_context(&x);
    if (!ses_buf_ok(&b, NULL)) {
        ses_buf_free(&b);
        return ses_api_fail(&j->error, SES_API_BACKEND, NULL, "out of memory");
    }
    ses_reply_text(w, j, 200, "text/plain; version=0.0.4; charset=utf-8", b.data, b.len);
    ses_buf_free(&b);
    return true;
}

static bool stats(ses_worker *w, ses_job *j)
{
    context x;
    ses_json_writer *json = ses_reply_writer(j);
    if (!json) return false;
    begin_context(w->server, &x);
    ses_json_begin_object(json);
    ses_metrics_write_stats(ses_server_metrics(w->server), &x.c, json);
    ses_json_end_object(json);
    end_context(&x);
    ses_reply_json(w, j, json);
    return true;
}

const ses_route ses_route_metrics = {
    .method = "GET",
    .path = "/metrics",
    .style = SES_STYLE_TEI,
    .public = true,
    .immediate = true,
    .handle = metrics,
    .tag = "Operation",
    .summary = "Prometheus metrics",
    .content_type = "text/plain",
};

const ses_route ses_route_stats = {
    .method = "GET",
    .path = "/stats",
    .style = SES_STYLE_TEI,
    .immediate = true,
    .handle = stats,
    .tag = "Operation",
    .summary = "Figures of the last minute, as JSON",
    .response = "{\"type\":\"object\"}",
};
