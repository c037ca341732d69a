/* Generated text as Server-Sent Events. */
#include "generate_reply.h"

#include "serve_impl.h"

void ses_generate_add_defaults(ses_job *j, ses_body_settings *s, const ses_task *t, const ses_json *p)
{
    (void)j;
    if (t == &ses_task_text_generation && !ses_body_get(p, "return_full_text"))
        ses_settings_add(s, t, "return_full_text", "false");
}

bool ses_generate_send_event(ses_job *j, ses_json_writer *json)
{
    size_t n = 0;
    const char *text = ses_json_writer_text(json, &n, NULL);
    return text && ses_http_stream_write(j->x, "data:", 5) && ses_http_stream_write(j->x, text, n) &&
           ses_http_stream_write(j->x, "\n\n", 2);
}

static bool on_text(ses_job *j, size_t item, const char *text, size_t n)
{
    (void)item;
    ses_json_writer *json = ses_json_writer_new(-1, NULL);
    if (!json) return false;
    if (!j->streaming) ses_http_stream_begin(j->x, 200, "text/event-stream");
    j->streaming = true;
    ses_json_begin_object(json);
    ses_json_member_object(json, "token");
    ses_json_member_int(json, "id", 0);
    ses_json_member_stringn(json, "text", text, n);
    ses_json_member_int(json, "logprob", 0);
    ses_json_member_bool(json, "special", false);
    ses_json_end_object(json);
    ses_json_member_string(json, "generated_text", NULL);
    ses_json_member_string(json, "details", NULL);
    ses_json_end_object(json);
    bool ok = ses_generate_send_event(j, json);
    ses_json_writer_free(json);
    return ok;
}

static void stream_done(ses_worker *w, ses_job *j)
{
    if (!ses_job_check_items(j)) {
        ses_reply_error(w, j);
        return;
    }
    if (!j->streaming) ses_http_stream_begin(j->x, 200, "text/event-stream");
    ses_http_stream_end(j->x);
    ses_job_free(j);
}

bool ses_generate_stream(ses_worker *w, ses_job *j)
{
    j->on_text = on_text;
    return ses_job_submit(w, j, stream_done);
}
