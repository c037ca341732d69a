/* Responses and error bodies. */
#include "reply.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "metrics.h"
#include "route.h"
#include "serve_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- errors ---- */

static const struct {
    int openai, tei;
    const char *openai_type, *tei_type;
} codes[] = {
    [SES_API_OK] = { 200, 200, "", "" },
    [SES_API_EMPTY] = { 400, 400, "invalid_request_error", "Empty" },
    [SES_API_VALIDATION] = { 400, 422, "invalid_request_error", "Validation" },
    [SES_API_TOKENIZER] = { 400, 422, "invalid_request_error", "Tokenizer" },
    [SES_API_BACKEND] = { 500, 424, "server_error", "Backend" },
    [SES_API_NOT_FINITE] = { 500, 500, "server_error", "Backend" },
    [SES_API_OVERLOADED] = { 429, 429, "rate_limit_error", "Overloaded" },
    [SES_API_UNAVAILABLE] = { 503, 503, "server_error", "Unhealthy" },
    [SES_API_UNAUTHORIZED] = { 401, 401, "authentication_error", "Unauthorized" },
    [SES_API_FORBIDDEN] = { 403, 403, "permission_error", "Forbidden" },
    [SES_API_NOT_FOUND] = { 404, 404, "not_found_error", "NotFound" },
    [SES_API_METHOD] = { 405, 405, "invalid_request_error", "Validation" },
    [SES_API_TOO_LARGE] = { 413, 413, "invalid_request_error", "Validation" },
    [SES_API_MEDIA_TYPE] = { 415, 415, "invalid_request_error", "Validation" },
    [SES_API_DEADLINE] = { 504, 504, "timeout_error", "Timeout" },
    [SES_API_CANCELLED] = { 499, 499, "cancelled", "Cancelled" },
};

int ses_api_status(ses_error_style style, ses_api_code code)
{
    return style == SES_STYLE_TEI ? codes[code].tei : codes[code].openai;
}

const char *ses_api_error_type(ses_error_style style, ses_api_code code)
{
    return style == SES_STYLE_TEI ? codes[code].tei_type : codes[code].openai_type;
}

bool ses_api_fail(ses_api_error *e, ses_api_code code, const char *param, const char *fmt, ...)
{
    if (e->code) return false;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->message, sizeof e->message, fmt, ap);
    va_end(ap);
    e->code = code;
    e->param = param;
    return false;
}

void ses_api_name_fields(char *message)
{
    static const char command[] = "'sesame ";
    bool quoted = false;
    for (char *s = message; *s; s++) {
        if (*s == '"') quoted = !quoted;
        bool begins = s == message || s[-1] == ' ' || s[-1] == '(';
        char *end =
            !quoted && begins && !strncmp(s, command, sizeof command - 1) ? strchr(s + 1, '\'') : NULL;
        if (end) s = end;
        if (quoted || !begins || s[0] != '-' || s[1] != '-' || s[2] < 'a' || s[2] > 'z') continue;
        *s++ = '"';
        for (; s[1] == '-' || (s[1] >= 'a' && s[1] <= 'z') || (s[1] >= '0' && s[1] <= '9'); s++)
            s[0] = (char)(s[1] == '-' ? '_' : s[1]);
        *s = '"';
    }
}

bool ses_api_fail_with(ses_api_error *e, ses_api_code code, const char *param, const ses_err *why)
{
    if (e->code) return false;
    ses_api_fail(e, why->code == SES_ENOMEM ? SES_API_BACKEND : code, param, "%s", why->msg);
    ses_api_name_fields(e->message);
    return false;
}

static void put_error(ses_json_writer *w, ses_error_style style, const ses_api_error *e)
{
    ses_json_begin_object(w);
    if (style == SES_STYLE_OPENAI) {
        ses_json_put_key(w, "error");
        ses_json_begin_object(w);
        ses_json_member_string(w, "message", e->message);
        ses_json_member_string(w, "type", codes[e->code].openai_type);
        ses_json_member_string(w, "param", e->param);
        ses_json_put_key(w, "code");
        if (e->code == SES_API_NOT_FOUND)
            ses_json_put_string(w, e->param && !strcmp(e->param, "model") ? "model_not_found" : "not_found");
        else
            ses_json_put_null(w);
        ses_json_end_object(w);
    } else {
        ses_json_member_string(w, style == SES_STYLE_COHERE ? "message" : "error", e->message);
        if (style == SES_STYLE_TEI) ses_json_member_string(w, "error_type", codes[e->code].tei_type);
    }
    ses_json_end_object(w);
}

/* Messages may quote the request: as JSON they must be UTF-8. */
static void make_printable(char *message)
{
    char copy[sizeof((ses_api_error *)0)->message];
    ses_quote(copy, sizeof copy, message, strlen(message));
    memcpy(message, copy, strlen(copy) + 1);
}

static ses_error_style style_of(const ses_job *j)
{
    return j->route ? j->route->style : ses_route_style(ses_http_path(j->x));
}

void ses_reply_error(ses_worker *w, ses_job *j)
{
    ses_error_style style = style_of(j);
    make_printable(j->error.message);
    ses_json_writer *json = ses_json_writer_new(-1, NULL);
    if (json) put_error(json, style, &j->error);
    size_t n = 0;
    const char *text = json ? ses_json_writer_text(json, &n, NULL) : NULL;
    if (!text) text = "{\"error\":\"out of memory\"}", n = strlen(text);
    ses_metrics_count_error(ses_server_metrics(w->server), j->error.code);
    if (j->streaming) { /* the status has been sent: the error is an event */
        if (!j->lines) ses_http_stream_write(j->x, "data: ", 6);
        ses_http_stream_write(j->x, text, n);
        ses_http_stream_write(j->x, "\n\n", j->lines ? 1 : 2);
        ses_http_stream_end(j->x);
    } else {
        char seconds[16];
        if (j->error.code == SES_API_OVERLOADED) {
            snprintf(seconds, sizeof seconds, "%d", ses_server_retry_after(w->server));
            ses_http_add_header(j->x, "Retry-After", seconds);
        }
        if (j->error.code == SES_API_UNAUTHORIZED) ses_http_add_header(j->x, "WWW-Authenticate", "Bearer");
        ses_http_reply(j->x, ses_api_status(style, j->error.code), "application/json", text, n, NULL);
    }
    ses_json_writer_free(json);
    ses_job_free(j);
}

/* ---- success ---- */

static void add_time(ses_job *j, const char *name, uint64_t ns)
{
    char value[32];
    snprintf(value, sizeof value, "%.3f", 1e-6 * (double)ns);
    ses_http_add_header(j->x, name, value);
}

static void add_number(ses_job *j, const char *name, int64_t x)
{
    char value[32];
    snprintf(value, sizeof value, "%lld", (long long)x);
    ses_http_add_header(j->x, name, value);
}

void ses_reply_add_timings(ses_job *j)
{
    if (!j->finished_ns || j->streaming) return;
    uint64_t now = ses_clock_ns(), received = ses_http_received_ns(j->x);
    ses_http_add_header(j->x, "x-compute-type", ses_device_name(j->model->dev));
    add_time(j, "x-compute-time", j->finished_ns - j->started_ns);
    add_number(j, "x-compute-characters", j->characters);
    add_number(j, "x-compute-tokens", j->tokens);
    add_time(j, "x-total-time", now - received);
    add_time(j, "x-tokenization-time", j->encode_ns);
    add_time(j, "x-queue-time", j->started_ns - j->queued_ns);
    add_time(j, "x-inference-time", j->finished_ns - j->started_ns);
    if (j->truncated) add_number(j, "x-truncated-tokens", j->truncated);
}

ses_json_writer *ses_reply_writer(ses_job *j)
{
    ses_err e = { 0 };
    ses_json_writer *w = ses_json_writer_new(-1, &e);
    if (!w) ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    return w;
}

ses_json_writer *ses_reply_begin(ses_worker *w, ses_job *j, bool item_errors)
{
    ses_json_writer *json = item_errors || ses_job_check_items(j) ? ses_reply_writer(j) : NULL;
    if (!json) ses_reply_error(w, j);
    return json;
}

void ses_reply_json(ses_worker *w, ses_job *j, ses_json_writer *json)
{
    ses_err e = { 0 };
    size_t n = 0;
    char *text = ses_json_writer_take(json, &n, &e);
    ses_json_writer_free(json);
    if (text && !j->error.code) {
        ses_reply_bytes(w, j, "application/json", text, n);
        return;
    }
    ses_free(text); /* e.g. no memory for a part of the text */
    ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    ses_reply_error(w, j);
}

void ses_reply_bytes(ses_worker *w, ses_job *j, const char *content_type, char *bytes, size_t n)
{
    ses_reply_add_timings(j);
    ses_metrics_count_job(ses_server_metrics(w->server), j);
    ses_http_reply(j->x, 200, content_type, bytes, n, ses_free);
    ses_job_free(j);
}

void ses_reply_text(ses_worker *w, ses_job *j, int status, const char *content_type, const char *text,
                    size_t n)
{
    ses_reply_add_timings(j);
    ses_metrics_count_job(ses_server_metrics(w->server), j);
    ses_http_reply(j->x, status, content_type, text, n, NULL);
    ses_job_free(j);
}

void ses_reply_put_id(ses_json_writer *w, const ses_job *j, const char *prefix)
{
    char id[48]; /* one thread receives the requests, each at another time */
    snprintf(id, sizeof id, "%s-%llx", prefix, (unsigned long long)ses_http_received_ns(j->x));
    ses_json_member_string(w, "id", id);
}

void ses_reply_put_meta(ses_json_writer *w, const ses_job *j, int version, const char *warning)
{
    ses_json_member_object(w, "meta");
    if (version) {
        ses_json_member_object(w, "api_version");
        ses_json_member_string(w, "version", version == 1 ? "1" : "2");
        ses_json_end_object(w);
    }
    ses_json_member_object(w, "billed_units");
    ses_json_member_int(w, "input_tokens", j->tokens);
    ses_json_end_object(w);
    if (warning) {
        ses_json_member_array(w, "warnings");
        ses_json_put_string(w, warning);
        ses_json_end_array(w);
    }
    ses_json_end_object(w);
}

void ses_reply_put_usage(ses_json_writer *w, const ses_job *j, int64_t completion_tokens)
{
    ses_json_put_key(w, "usage");
    ses_json_begin_object(w);
    ses_json_member_int(w, "prompt_tokens", j->tokens);
    if (completion_tokens >= 0) ses_json_member_int(w, "completion_tokens", completion_tokens);
    ses_json_member_int(w, "total_tokens", j->tokens + (completion_tokens > 0 ? completion_tokens : 0));
    ses_json_end_object(w);
}
