/* GET /metrics: Prometheus. GET /stats: the same figures for the page, as JSON. */
#include "base/alloc.h"
#include "serve/route.h"
#include "serve/serve_impl.h"

/* Names of the models: references are held until end_context. */
static ses_served_model **begin_context(ses_server *s, ses_metrics_context *c, const char ***names)
{
    size_t n = 0;
    ses_served_model **model = ses_registry_list(ses_server_registry(s), &n, NULL);
    *names = ses_alloc_array(n + 1, sizeof **names, NULL);
    *c = (ses_metrics_context){ .queue = ses_scheduler_get_stats(ses_server_scheduler(s)),
                                .http = ses_http_server_stats(ses_server_http(s)),
                                .uptime = ses_server_uptime(s),
                                .models = *names,
                                .n_models = *names ? n : 0 };
    for (size_t i = 0; i < c->n_models; i++) (*names)[i] = model[i]->name;
    return model;
}

static void end_context(ses_served_model **model, const ses_metrics_context *c, const char **names)
{
    for (size_t i = 0; i < c->n_models; i++) ses_served_model_release(model[i]);
    ses_free(model);
    ses_free(names);
}

static bool metrics(ses_worker *w, ses_job *j)
{
    ses_metrics_context c;
    const char **names = NULL;
    ses_buf b = { 0 };
    ses_served_model **model = begin_context(w->server, &c, &names);
    ses_metrics_write_prometheus(ses_server_metrics(w->server), &c, &b);
    end_context(model, &c, names);
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
    ses_metrics_context c;
    const char **names = NULL;
    ses_json_writer *json = ses_reply_writer(j);
    if (!json) return false;
    ses_served_model **model = begin_context(w->server, &c, &names);
    ses_json_begin_object(json);
    ses_metrics_write_stats(ses_server_metrics(w->server), &c, json);
    ses_json_end_object(json);
    end_context(model, &c, names);
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
