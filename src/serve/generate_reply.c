/* Generated text: stop strings, limits, Server-Sent Events. */
#include "generate_reply.h"

#include "base/str.h"
#include "base/unicode/utf8.h"
#include "serve_impl.h"

#include <stdio.h>
#include <string.h>

/* ---- stop strings ---- */

static bool add_stop(ses_job *j, ses_stops *s, const ses_json *v)
{
    ses_string x = ses_body_text(v);
    if (!x.p || !x.n || memchr(x.p, 0, x.n) || ses_utf8_count(x.p, x.n) > SES_MAX_STOP_LENGTH ||
        s->n == SES_MAX_STOPS)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "stop",
                            "\"stop\" must be a text or up to %d texts of 1 to %d characters without NUL",
                            SES_MAX_STOPS, SES_MAX_STOP_LENGTH);
    s->at[s->n++] = x;
    return true;
}

bool ses_stops_read(ses_job *j, const ses_json *v, ses_stops *s)
{
    *s = (ses_stops){ 0 };
    if (!v) return true;
    if (ses_json_type_of(v) != SES_JSON_ARRAY) return add_stop(j, s, v);
    for (size_t i = 0; i < ses_json_len(v); i++)
        if (!add_stop(j, s, ses_json_at(v, i))) return false;
    return true;
}

bool ses_stops_apply(ses_job *j, const ses_stops *s)
{
    ses_err e = { 0 };
    for (size_t i = 0; i < j->n && s->n; i++) {
        ses_request *r = j->item[i].request;
        if (!r) continue;
        ((ses_generation_request *)r->state)->hides_stop = true;
        for (size_t k = 0; k < s->n; k++)
            if (!ses_generation_request_add_stop(r, s->at[k], &e))
                return ses_api_fail_with(&j->error, SES_API_VALIDATION, "stop", &e);
    }
    return true;
}

/* ---- settings ---- */

bool ses_generate_add_max_tokens(ses_worker *w, ses_job *j, ses_body_settings *s, const ses_task *t,
                                 int64_t tokens)
{
    char number[32];
    int64_t max = ses_server_get_options(w->server)->max_new_tokens;
    if (tokens > max)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "max_tokens",
                            "\"max_tokens\" is %lld, at most %lld new tokens are allowed", (long long)tokens,
                            (long long)max);
    snprintf(number, sizeof number, "%lld", (long long)tokens);
    ses_string copy = ses_job_copy(j, number, strlen(number));
    if (copy.p) ses_settings_add(s, t, "max_new_tokens", copy.p);
    return copy.p != NULL;
}

bool ses_generate_add_temperature(ses_job *j, ses_body_settings *s, const ses_task *t, const ses_json *object,
                                  double *temperature)
{
    if (!ses_body_real(j, object, "temperature", 0, 100, temperature)) return false;
    if (*temperature > 0 && *temperature < 1e-6)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "temperature",
                            "\"temperature\" must be 0 or at least 1e-06");
    if (*temperature >= 0) ses_settings_add(s, t, "do_sample", *temperature > 0 ? "true" : "false");
    return *temperature <= 0 ||
           ses_settings_add_json(j, s, t, "temperature", ses_body_get(object, "temperature"));
}

bool ses_generate_add_named(ses_job *j, ses_body_settings *s, const ses_task *t, const ses_json *object,
                            const ses_generate_name *names)
{
    double penalty = 0;
    if (!ses_body_real(j, object, "presence_penalty", -2, 2, &penalty) ||
        !ses_body_real(j, object, "frequency_penalty", -2, 2, &penalty))
        return false;
    for (; names->key; names++) {
        const ses_json *v = ses_body_get(object, names->key);
        if (v && !ses_settings_add_json(j, s, t, names->setting, v)) return false;
    }
    return true;
}

/* ---- events ---- */

static void begin_stream(ses_job *j)
{
    if (j->streaming) return;
    ses_http_add_header(j->x, "Cache-Control", "no-store");
    ses_http_stream_begin(j->x, 200, j->lines ? "application/x-ndjson" : "text/event-stream");
    j->streaming = true;
}

bool ses_event_send_text(ses_job *j, const char *text)
{
    ses_buf b = { 0 };
    begin_stream(j);
    ses_buf_appendf(&b, j->lines ? "%s\n" : "data: %s\n\n", text);
    bool ok = ses_buf_ok(&b, NULL) && ses_http_stream_write(j->x, b.data, b.len);
    ses_buf_free(&b);
    return ok;
}

bool ses_event_send(ses_job *j, ses_json_writer *json)
{
    const char *text = ses_json_writer_text(json, NULL, NULL);
    return text && ses_event_send_text(j, text);
}

/* ---- huggingface_hub ---- */

/* A generated token, in the job's memory. */
typedef struct token {
    struct token *next;
    int32_t id;
    float logprob;
    bool special;
    ses_string text;
} token;

typedef struct hub_state {
    ses_stops stops;
    bool details;
    int64_t sent; /* events of the stream */
    /* Tokens of each item's first text, for the details. A stream keeps only its last token and sends it with
     * the whole text. */
    token **tokens, **last; /* [items] */
} hub_state;

bool ses_generate_read(ses_job *j, ses_body_settings *s, const ses_task *t, const ses_json *p)
{
    hub_state *x = ses_job_alloc(j, 1, sizeof *x);
    if (!x || !ses_stops_read(j, ses_body_get(p, "stop"), &x->stops) ||
        !ses_body_bool(j, p, "details", &x->details))
        return false;
    j->generation = x;
    if (t == &ses_task_text_generation && !ses_body_get(p, "return_full_text"))
        ses_settings_add(s, t, "return_full_text", "false");
    return true;
}

int64_t ses_generate_new_tokens(const ses_job *j)
{
    int64_t n = 0;
    for (size_t i = 0; i < j->n; i++) {
        const ses_request *r = j->item[i].request;
        const ses_generation_request *g = r && !r->error ? r->state : NULL;
        for (size_t k = 0; g && k < g->n; k++) n += g->end[k].tokens;
    }
    return n;
}

static const char *finish_name(const ses_generation_end *end)
{
    switch (end->finish) {
    case SES_FINISH_EOS: return "eos_token";
    case SES_FINISH_STOP: return "stop_sequence";
    default: return "length";
    }
}

static void put_token(ses_json_writer *json, const token *t)
{
    ses_json_begin_object(json);
    ses_json_member_int(json, "id", t->id);
    ses_json_member_stringn(json, "text", t->text.p, t->text.n);
    ses_json_put_key(json, "logprob");
    ses_json_put_float(json, t->logprob);
    ses_json_member_bool(json, "special", t->special);
    ses_json_end_object(json);
}

/* list: the tokens; else the input's length, as in a stream. */
static void put_details(ses_json_writer *json, const ses_job *j, size_t item, bool list)
{
    const hub_state *s = j->generation;
    const ses_request *r = j->item[item].request;
    const ses_generation_request *g = r->state;
    ses_json_member_object(json, "details");
    ses_json_member_string(json, "finish_reason", finish_name(&g->end[0]));
    ses_json_member_int(json, "generated_tokens", g->end[0].tokens);
    ses_json_put_key(json, "seed");
    g->o->do_sample ? ses_json_put_int(json, (int64_t)g->o->seed) : ses_json_put_null(json);
    if (list) {
        ses_json_member_array(json, "prefill");
        ses_json_end_array(json);
        ses_json_member_array(json, "tokens");
        for (const token *t = s->tokens[item]; t; t = t->next) put_token(json, t);
        ses_json_end_array(json);
    } else {
        ses_json_member_int(json, "input_length", r->tokens);
    }
    ses_json_end_object(json);
}

void ses_generate_put(ses_json_writer *json, const ses_job *j, size_t item)
{
    const hub_state *s = j->generation;
    const ses_result *r = &j->item[item].result;
    if (!s || !s->details) {
        ses_result_write_json(r, json);
        return;
    }
    ses_json_begin_array(json);
    for (size_t i = 0; i < r->n; i++) {
        ses_json_begin_object(json);
        ses_json_member_stringn(json, "generated_text", r->row[i].text.p, r->row[i].text.n);
        if (!i) put_details(json, j, item, true);
        ses_json_end_object(json);
    }
    ses_json_end_array(json);
}

static token *copy_token(ses_job *j, const ses_generation_token *t)
{
    token *x = ses_job_alloc(j, 1, sizeof *x);
    if (!x) return NULL;
    *x = (token){ .id = t->id, .logprob = t->event->logprob, .special = t->special };
    x->text = ses_job_copy(j, t->text.p ? t->text.p : "", t->text.n);
    return x->text.p ? x : NULL;
}

/* Keeps the token for the details. */
static bool keep_token(ses_job *j, size_t item, const ses_generation_token *t)
{
    hub_state *s = j->generation;
    if (t->event->sequence) return true;
    token *x = copy_token(j, t);
    if (!x) return false;
    if (s->last[item])
        s->last[item]->next = x;
    else
        s->tokens[item] = x;
    s->last[item] = x;
    return true;
}

/* all: the whole text, with the last token. */
static bool send_token(ses_job *j, const token *t, const ses_string *all)
{
    ses_json_writer *json = ses_json_writer_new(-1, NULL);
    hub_state *s = j->generation;
    if (!json) return false;
    ses_json_begin_object(json);
    ses_json_member_int(json, "index", ++s->sent);
    ses_json_put_key(json, "token");
    put_token(json, t);
    ses_json_put_key(json, "generated_text");
    if (all)
        ses_json_put_stringn(json, all->p, all->n);
    else
        ses_json_put_null(json);
    if (all)
        put_details(json, j, 0, false);
    else
        ses_json_member_string(json, "details", NULL);
    ses_json_end_object(json);
    bool ok = ses_event_send(j, json);
    ses_json_writer_free(json);
    return ok;
}

static bool stream_token(ses_job *j, size_t item, const ses_generation_token *t)
{
    hub_state *s = j->generation;
    if (t->event->last) return (s->last[item] = copy_token(j, t)) != NULL;
    token x = { .id = t->id,
                .logprob = t->event->logprob,
                .special = t->special,
                .text = { t->text.p ? t->text.p : "", t->text.n } };
    return send_token(j, &x, NULL);
}

static void stream_done(ses_worker *w, ses_job *j)
{
    const hub_state *s = j->generation;
    if (!ses_job_check_items(j)) {
        ses_reply_error(w, j);
        return;
    }
    static const token none = { .special = true, .text = { "", 0 } };
    send_token(j, s->last[0] ? s->last[0] : &none, &j->item[0].result.row[0].text);
    ses_metrics_count_generated(ses_server_metrics(w->server), ses_generate_new_tokens(j));
    ses_metrics_count_job(ses_server_metrics(w->server), j);
    ses_http_stream_end(j->x);
    ses_job_free(j);
}

/* The request sets one of two parameters. */
static bool sets_either(const ses_job *j, const char *a, const char *b)
{
    const ses_json *p = ses_body_get(j->body, "parameters"), *g = ses_body_get(p, "generate_parameters");
    return ses_body_get(p, a) || ses_body_get(p, b) || ses_body_get(g, a) || ses_body_get(g, b);
}

static bool is_too_long(const ses_job *j, const ses_generate_options *o, int64_t max)
{
    return o->max_new_tokens > max || o->max_length > max + j->tokens;
}

/* The least length that the request asks for must be within the server's limit. */
static bool check_least(ses_job *j, const ses_generate_options *o, int64_t max)
{
    bool is_new = o->min_new_tokens > max;
    return (!is_new && o->min_length <= max + j->tokens) ||
           ses_api_fail(&j->error, SES_API_VALIDATION, is_new ? "min_new_tokens" : "min_length",
                        "\"%s\" is %lld, which is too large: at most %lld new tokens are allowed",
                        is_new ? "min_new_tokens" : "min_length",
                        (long long)(is_new ? o->min_new_tokens : o->min_length), (long long)max);
}

/* The length of the folder's settings, within the server's limit. */
static bool limit_length(ses_job *j, ses_request *r, int64_t max)
{
    ses_err e = { 0 };
    ses_generate_options *o = ses_generation_request_own_options(r, &e);
    if (!o) return ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    o->max_new_tokens = max; /* overrides max_length */
    return true;
}

static bool check_limits(ses_worker *w, ses_job *j, bool stream, bool *beams)
{
    bool given = sets_either(j, "max_new_tokens", "max_length");
    bool least = sets_either(j, "min_new_tokens", "min_length");
    int64_t max = ses_server_get_options(w->server)->max_new_tokens;
    for (size_t i = 0; i < j->n; i++) {
        const ses_generation_request *x = j->item[i].request ? j->item[i].request->state : NULL;
        if (!x) continue;
        if (x->o->num_beams > 1) *beams = true;
        if (stream && (j->n > 1 || *beams || x->o->num_return_sequences > 1))
            return ses_api_fail(&j->error, SES_API_VALIDATION, "stream",
                                "\"stream\" needs one input, one text and no beams");
        if (least && !check_least(j, x->o, max)) return false;
        if (!given && is_too_long(j, x->o, max) && !limit_length(j, j->item[i].request, max)) return false;
        if (given && is_too_long(j, x->o, max))
            return ses_api_fail(&j->error, SES_API_VALIDATION, "max_new_tokens",
                                "\"max_new_tokens\" is too large: at most %lld new tokens are allowed",
                                (long long)max);
    }
    return true;
}

bool ses_generate_submit(ses_worker *w, ses_job *j, bool stream, ses_job_fn *done)
{
    hub_state *s = j->generation;
    bool beams = false;
    if (!check_limits(w, j, stream, &beams) || !ses_stops_apply(j, &s->stops)) return false;
    s->tokens = ses_job_alloc(j, j->n, sizeof *s->tokens);
    s->last = ses_job_alloc(j, j->n, sizeof *s->last);
    if (!s->tokens || !s->last) return false;
    j->on_token = stream ? stream_token : s->details && !beams ? keep_token : NULL;
    return ses_job_submit(w, j, stream ? stream_done : done);
}
