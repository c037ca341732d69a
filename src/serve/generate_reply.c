/* Generated text: stop strings, limits, Server-Sent Events. */
#include "generate_reply.h"

#include "base/str.h"
#include "serve_impl.h"

#include <stdio.h>
#include <string.h>

/* ---- stop strings ---- */

static bool add_stop(ses_job *j, ses_stops *s, const ses_json *v)
{
    ses_string x = ses_body_text(v);
    if (!x.p || !x.n || x.n > SES_MAX_STOP_BYTES || s->n == SES_MAX_STOPS)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "stop",
                            "\"stop\" must be a text or up to %d texts of 1 to %d bytes", SES_MAX_STOPS,
                            SES_MAX_STOP_BYTES);
    s->at[s->n++] = x;
    if (x.n > s->longest) s->longest = x.n;
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

size_t ses_stops_find(const ses_stops *s, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < s->n; k++)
            if (s->at[k].n <= n - i && !memcmp(text + i, s->at[k].p, s->at[k].n)) return i;
    return n;
}

/* Bytes at the end of a text that begin a stop string. */
static size_t open_bytes(const ses_stops *s, const char *text, size_t n)
{
    size_t max = s->longest ? s->longest - 1 : 0;
    for (size_t len = max < n ? max : n; len; len--)
        for (size_t k = 0; k < s->n; k++)
            if (s->at[k].n > len && !memcmp(text + n - len, s->at[k].p, len)) return len;
    return 0;
}

bool ses_text_stream_add(ses_text_stream *t, ses_string piece, ses_buf *out)
{
    if (t->stopped) return false;
    size_t from = out->len;
    ses_buf_append(out, t->tail, t->n_tail);
    ses_buf_append(out, piece.p, piece.n);
    if (!ses_buf_ok(out, NULL)) return false;
    size_t n = out->len - from, at = ses_stops_find(t->stops, out->data + from, n);
    t->stopped = at < n;
    t->n_tail = t->stopped ? 0 : open_bytes(t->stops, out->data + from, n);
    if (t->n_tail) memcpy(t->tail, out->data + from + n - t->n_tail, t->n_tail);
    out->len = from + (t->stopped ? at : n - t->n_tail);
    t->sent += out->len - from;
    return !t->stopped;
}

void ses_text_stream_end(ses_text_stream *t, ses_buf *out)
{
    if (!t->stopped) ses_buf_append(out, t->tail, t->n_tail);
    t->n_tail = 0;
    t->stopped = true;
}

/* ---- settings ---- */

bool ses_generate_add_max_tokens(ses_worker *w, ses_job *j, ses_body_settings *s, const ses_task *t,
                                 int64_t tokens)
{
    char number[32];
    int64_t max = ses_server_get_options(w->server)->max_new_tokens;
    if (tokens > max)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "max_tokens",
                            "at most %lld new tokens are allowed", (long long)max);
    snprintf(number, sizeof number, "%lld", (long long)tokens);
    ses_string copy = ses_job_copy(j, number, strlen(number));
    if (copy.p) ses_settings_add(s, t, "max_new_tokens", copy.p);
    return copy.p != NULL;
}

/* ---- events ---- */

static void begin_stream(ses_job *j)
{
    if (j->streaming) return;
    ses_http_add_header(j->x, "Cache-Control", "no-store");
    ses_http_stream_begin(j->x, 200, "text/event-stream");
    j->streaming = true;
}

bool ses_event_send_text(ses_job *j, const char *text)
{
    ses_buf b = { 0 };
    begin_stream(j);
    ses_buf_appendf(&b, "data: %s\n\n", text);
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

typedef struct stream_state {
    ses_stops stops;
    ses_text_stream text;
    int64_t tokens;
} stream_state;

bool ses_generate_read(ses_job *j, ses_body_settings *s, const ses_task *t, const ses_json *p)
{
    stream_state *x = ses_job_alloc(j, 1, sizeof *x);
    if (!x || !ses_stops_read(j, ses_body_get(p, "stop"), &x->stops)) return false;
    x->text.stops = &x->stops;
    j->generation = x;
    if (t == &ses_task_text_generation && !ses_body_get(p, "return_full_text"))
        ses_settings_add(s, t, "return_full_text", "false");
    return true;
}

static bool send_token(ses_job *j, const ses_generation_token *t, const char *text, size_t n,
                       const ses_string *all)
{
    ses_json_writer *json = ses_json_writer_new(-1, NULL);
    const stream_state *s = j->generation;
    if (!json) return false;
    ses_json_begin_object(json);
    ses_json_member_int(json, "index", s->tokens);
    ses_json_member_object(json, "token");
    ses_json_member_int(json, "id", t ? t->id : 0);
    ses_json_member_stringn(json, "text", text, n);
    ses_json_put_key(json, "logprob");
    ses_json_put_float(json, t ? t->event->logprob : 0);
    ses_json_member_bool(json, "special", t ? t->special : true);
    ses_json_end_object(json);
    ses_json_put_key(json, "generated_text");
    if (all)
        ses_json_put_stringn(json, all->p, all->n);
    else
        ses_json_put_null(json);
    ses_json_member_string(json, "details", NULL);
    ses_json_end_object(json);
    bool ok = ses_event_send(j, json);
    ses_json_writer_free(json);
    return ok;
}

static bool on_token(ses_job *j, size_t item, const ses_generation_token *t)
{
    stream_state *s = j->generation;
    ses_buf b = { 0 };
    (void)item;
    s->tokens++;
    bool more = ses_text_stream_add(&s->text, t->text, &b);
    bool ok = send_token(j, t, b.data ? b.data : "", b.len, NULL);
    ses_buf_free(&b);
    return ok && more;
}

/* Searches for stop strings; nothing is sent. */
static bool watch_token(ses_job *j, size_t item, const ses_generation_token *t)
{
    stream_state *s = j->generation;
    ses_buf b = { 0 };
    (void)item;
    bool more = ses_text_stream_add(&s->text, t->text, &b);
    ses_buf_free(&b);
    return more;
}

static void stream_done(ses_worker *w, ses_job *j)
{
    stream_state *s = j->generation;
    ses_buf rest = { 0 };
    if (!ses_job_check_items(j)) {
        ses_reply_error(w, j);
        return;
    }
    const ses_result *r = &j->item[0].result;
    ses_text_stream_end(&s->text, &rest);
    send_token(j, NULL, rest.data ? rest.data : "", rest.len, &r->row[0].text);
    ses_buf_free(&rest);
    ses_metrics_count_job(ses_server_metrics(w->server), j);
    ses_http_stream_end(j->x);
    ses_job_free(j);
}

bool ses_generate_submit(ses_worker *w, ses_job *j, bool stream, ses_job_fn *done)
{
    const stream_state *s = j->generation;
    const ses_generation_request *r = j->item[0].request ? j->item[0].request->state : NULL;
    bool beams = r && r->o->num_beams > 1;
    if ((stream || s->stops.n) && (j->n > 1 || beams || (r && r->o->num_return_sequences > 1)))
        return ses_api_fail(&j->error, SES_API_VALIDATION, stream ? "stream" : "stop",
                            "\"%s\" needs one input, one text and no beams", stream ? "stream" : "stop");
    for (size_t i = 0; i < j->n; i++) {
        const ses_generation_request *x = j->item[i].request ? j->item[i].request->state : NULL;
        int64_t max = ses_server_get_options(w->server)->max_new_tokens;
        if (x && (x->o->max_new_tokens > max || x->o->max_length > max + j->tokens))
            return ses_api_fail(&j->error, SES_API_VALIDATION, "max_new_tokens",
                                "at most %lld new tokens are allowed", (long long)max);
    }
    j->on_token = stream ? on_token : s->stops.n ? watch_token : NULL;
    return ses_job_submit(w, j, stream ? stream_done : done);
}
