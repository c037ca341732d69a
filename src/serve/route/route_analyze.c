/* POST /analyze: an analysis of a text (src/analysis), with its figures. */
#include "analysis/analysis.h"
#include "base/clock.h"
#include "base/str.h"
#include "serve/body.h"
#include "serve/route.h"
#include "serve/serve_impl.h"
#include "tensor/device_impl.h"

#include <string.h>

enum { MAX_TEXT = 4096 }; /* bytes: some analyses run the model hundreds of times */

static bool fail(ses_job *j, ses_api_code code, const ses_err *e)
{
    return ses_api_fail_with(&j->error, code, NULL, e);
}

/* Reads "inputs" into *text, a string in the job's memory. */
static bool read_text(ses_job *j, char **text)
{
    ses_string s = ses_body_text(ses_body_get(j->body, "inputs"));
    if (!s.p) return ses_api_fail(&j->error, SES_API_VALIDATION, "inputs", "\"inputs\" must be a string");
    if (!s.n) return ses_api_fail(&j->error, SES_API_EMPTY, "inputs", "\"inputs\" is empty");
    if (memchr(s.p, 0, s.n))
        return ses_api_fail(&j->error, SES_API_VALIDATION, "inputs", "\"inputs\" contains a NUL character");
    if (s.n > MAX_TEXT)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "inputs",
                            "\"inputs\" has %zu bytes; %d are the limit", s.n, MAX_TEXT);
    *text = (char *)(uintptr_t)ses_job_copy(j, s.p, s.n).p;
    return *text != NULL;
}

static bool find_analysis(ses_job *j, const ses_analysis_entry **x)
{
    const char *name = NULL;
    if (!ses_body_string(j, j->body, "analysis", &name)) return false;
    if (!name) return ses_body_missing(j, "analysis");
    *x = ses_analysis_find(name);
    if (*x && (*x)->analysis->takes_text) return true;
    ses_buf known = { 0 };
    for (const ses_analysis_entry *a = ses_analysis_entries(); a->name; a++)
        if (a->analysis->takes_text) ses_buf_appendf(&known, "%s%s", known.len ? ", " : "", a->name);
    ses_api_fail(&j->error, SES_API_VALIDATION, "analysis", "\"%s\" %s; analyses of texts: %s",
                 ses_quoted_of(name, strlen(name)).s,
                 *x ? "works on files: use the command" : "is not an analysis",
                 known.data ? known.data : "none");
    ses_buf_free(&known);
    return false;
}

typedef struct running {
    ses_job *job;
    ses_scheduler *alone; /* one thread at a time uses a GPU; NULL: a CPU */
} running;

/* Ends the work of a client that has left, or whose deadline has passed. Requests that wait for the GPU get
 * a batch in between. */
static bool may_continue(void *ctx, ses_err *e)
{
    const running *r = ctx;
    if (r->alone) ses_scheduler_leave(r->alone), ses_scheduler_enter(r->alone);
    return !ses_job_is_dropped(r->job, ses_clock_ns()) || ses_fail(e, SES_EARG, "stopped");
}

/* The settings of the envelope: layers, then the parameters of the request. */
static void put_settings(ses_json_writer *w, const char *layers, const ses_json *parameters)
{
    ses_json_begin_object(w);
    ses_json_member_string(w, "layers", layers);
    for (size_t i = 0; parameters && i < ses_json_len(parameters); i++) {
        ses_json_put_key(w, ses_json_key(parameters, i, NULL));
        ses_json_put_value(w, ses_json_at(parameters, i));
    }
    ses_json_end_object(w);
}

/* Runs the analysis on the served model; if it needs gradients, on the same files opened again. */
static bool run(running *r, const ses_analysis_entry *x, char *text, void *args, ses_buf *out)
{
    ses_job *j = r->job;
    ses_err e = { 0 };
    ses_served_model *m = j->model;
    const char *layers = NULL;
    int64_t seed = 42;
    char *operands[] = { text, NULL };
    if (!ses_body_string(j, j->body, "layers", &layers) ||
        !ses_body_int(j, j->body, "seed", 0, INT64_MAX, &seed))
        return false;
    ses_analysis_model_use use = x->analysis->model;
    bool copies = use == SES_ANALYSIS_GRADIENTS || use == SES_ANALYSIS_F32;
    ses_model_options o = { .train = use == SES_ANALYSIS_GRADIENTS, .no_packing = true };
    ses_model *model = copies ? ses_model_open(m->dir, m->dev, &o, &e) : m->model;
    ses_analysis_call call = { .analysis = x->analysis,
                               .args = args,
                               .operands = operands,
                               .n_operands = 1,
                               .model_name = m->name,
                               .model_dir = m->dir,
                               .dev = m->dev,
                               .model = model,
                               .tokenizer = (ses_tokenizer *)(uintptr_t)m->tokenizer,
                               .seed = (uint64_t)seed,
                               .may_continue = may_continue,
                               .may_continue_ctx = r };
    call.report = model ? ses_report_new(&e) : NULL;
    const ses_json *parameters = ses_body_get(j->body, "parameters");
    ses_json_writer *settings = ses_json_writer_new(0, &e);
    if (settings) put_settings(settings, layers, parameters);
    ses_report_head head = { .analysis = x->name,
                             .title = x->summary,
                             .model = m->name,
                             .command = "sesame serve",
                             .settings = settings ? ses_json_writer_text(settings, NULL, &e) : NULL,
                             .seed = call.seed };
    bool ok =
        settings && call.report &&
        ses_layer_set_parse(&call.layers, layers, ses_analysis_last_layer(x->analysis, args, model), &e) &&
        x->analysis->run(&call, &e) && ses_report_ok(call.report, &e) &&
        ses_report_envelope_with_figures(call.report, &head, out, &e);
    ses_json_writer_free(settings);
    ses_report_free(call.report);
    if (copies) ses_model_free(model);
    return ok || (!j->error.code && fail(j, ses_api_code_of(&e, false), &e));
}

/* One analysis at a time: each runs the model many times. */
static bool run_alone(ses_worker *w, ses_job *j, const ses_analysis_entry *x, char *text, void *args,
                      ses_buf *out)
{
    running r = { j, j->model->dev->is_host ? NULL : ses_server_scheduler(w->server) };
    if (!ses_server_begin_analysis(w->server))
        return ses_api_fail(&j->error, SES_API_OVERLOADED, NULL,
                            "another analysis is running; try again later");
    if (r.alone) ses_scheduler_enter(r.alone);
    bool ok = run(&r, x, text, args, out);
    if (r.alone) ses_scheduler_leave(r.alone);
    ses_server_end_analysis(w->server);
    return ok;
}

static bool handle(ses_worker *w, ses_job *j)
{
    const ses_analysis_entry *x = NULL;
    const char *model = NULL;
    char *text = NULL;
    ses_err e = { 0 };
    ses_buf out = { 0 };
    if (!find_analysis(j, &x) || !read_text(j, &text) || !ses_body_string(j, j->body, "model", &model))
        return false;
    const ses_json *parameters = NULL;
    if (!ses_body_object(j, j->body, "parameters", &parameters)) return false;
    void *args = ses_job_alloc(j, 1, x->analysis->args_size ? x->analysis->args_size : 1);
    if (!args || !ses_job_read_deadline(w, j) || !ses_job_find_model(w, j, model, NULL)) return false;
    if (!j->model->model)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "model",
                            "%s is a classifier of words: analyses need a neural model", j->model->name);
    bool ok =
        ses_opt_defaults(x->analysis->opt, x->analysis->n_opt, args, &e) || fail(j, SES_API_BACKEND, &e);
    ok = ok && ses_body_options(j, parameters, x->analysis->opt, x->analysis->n_opt, args) &&
         run_alone(w, j, x, text, args, &out);
    ses_opt_free(x->analysis->opt, x->analysis->n_opt, args);
    if (!ok) {
        ses_buf_free(&out);
        return false;
    }
    ses_reply_bytes(w, j, "application/json", out.data, out.len);
    return true;
}

const ses_route ses_route_analyze = {
    .method = "POST",
    .path = "/analyze",
    .style = SES_STYLE_TEI,
    .handle = handle,
    .tag = "Sesame",
    .summary =
        "An analysis of a text, as the command of its name writes it with --json, and its figures as SVG",
    .request =
        "{\"type\":\"object\",\"required\":[\"analysis\",\"inputs\"],"
        "\"allOf\":[{\"$ref\":\"#/components/schemas/Models-analyze\"}],"
        "\"properties\":{\"analysis\":{\"type\":\"string\"},"
        "\"inputs\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4096,\"pattern\":\"^[^\\u0000]*$\","
        "\"description\":\"at most 4,096 bytes of UTF-8\"},"
        "\"parameters\":{\"type\":\"object\"},\"layers\":{\"type\":\"string\"},"
        "\"seed\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":9223372036854775807},"
        "\"model\":{\"type\":\"string\"}}}",
    .response = "{\"type\":\"object\",\"required\":[\"analysis\",\"result\",\"figures\"]}",
};
