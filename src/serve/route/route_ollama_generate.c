/* POST /api/generate, /api/chat: Ollama's text completion. The response is a stream of JSON lines unless
 * "stream" is false. */
#define _POSIX_C_SOURCE 200809L
#include "base/clock.h"
#include "base/str.h"
#include "serve/chat/chat_prompt.h"
#include "serve/generate_reply.h"
#include "serve/ollama_reply.h"
#include "serve/serve_impl.h"

#include <string.h>

typedef struct state {
    ses_stops stops;
    bool chat, stream;
    uint64_t first_ns; /* time of the first token; 0: none yet */
} state;

/* ---- response ---- */

/* A part of the text. finish: why the text ends; NULL: it does not. */
static void put_part(ses_json_writer *json, ses_job *j, ses_string text, const char *finish)
{
    const state *s = j->state;
    ses_json_begin_object(json);
    ses_json_member_string(json, "model", j->model->name);
    ses_ollama_put_time(json, "created_at", ses_ollama_now());
    if (s->chat) {
        ses_json_member_object(json, "message");
        ses_json_member_string(json, "role", "assistant");
    }
    ses_json_member_stringn(json, s->chat ? "content" : "response", text.p ? text.p : "", text.n);
    if (s->chat) ses_json_end_object(json);
    ses_json_member_bool(json, "done", finish != NULL);
    if (finish) ses_json_member_string(json, "done_reason", finish);
}

static void put_counts(ses_json_writer *json, const ses_job *j)
{
    const state *s = j->state;
    uint64_t now = ses_clock_ns(), first = s->first_ns ? s->first_ns : now;
    if (!s->chat) {
        ses_json_member_array(json, "context");
        ses_json_end_array(json);
    }
    ses_ollama_put_durations(json, j);
    ses_json_member_uint(json, "prompt_eval_duration",
                         j->started_ns && first > j->started_ns ? first - j->started_ns : 0);
    ses_json_member_int(json, "eval_count", ses_generate_new_tokens(j));
    ses_json_member_uint(json, "eval_duration", now - first);
}

static const char *finish_of(const ses_job *j)
{
    const ses_generation_request *g = j->item[0].request->state;
    return g->end[0].finish == SES_FINISH_LENGTH ? "length" : "stop";
}

static void done(ses_worker *w, ses_job *j)
{
    const state *s = j->state;
    ses_json_writer *json = ses_reply_begin(w, j, false);
    if (!json) return;
    put_part(json, j, s->stream ? (ses_string){ "", 0 } : j->item[0].result.row[0].text, finish_of(j));
    put_counts(json, j);
    ses_json_end_object(json);
    ses_metrics_count_generated(ses_server_metrics(w->server), ses_generate_new_tokens(j));
    if (!s->stream) {
        ses_reply_json(w, j, json);
        return;
    }
    ses_event_send(j, json);
    ses_json_writer_free(json);
    ses_metrics_count_job(ses_server_metrics(w->server), j);
    ses_http_stream_end(j->x);
    ses_job_free(j);
}

static bool on_token(ses_job *j, size_t item, const ses_generation_token *t)
{
    state *s = j->state;
    (void)item;
    if (!s->first_ns) s->first_ns = ses_clock_ns();
    if (!s->stream || !t->text.n) return true;
    ses_json_writer *json = ses_json_writer_new(-1, NULL);
    if (!json) return false;
    put_part(json, j, t->text, NULL);
    ses_json_end_object(json);
    bool ok = ses_event_send(j, json);
    ses_json_writer_free(json);
    return ok;
}

/* A request without a prompt loads the model. */
static bool reply_loaded(ses_worker *w, ses_job *j)
{
    ses_json_writer *json = ses_reply_writer(j);
    if (!json) return false;
    put_part(json, j, (ses_string){ "", 0 }, "load");
    ses_json_end_object(json);
    ses_reply_json(w, j, json);
    return true;
}

/* ---- request ---- */

/* Members that would change the text: refused unless they are empty. */
static bool check_unsupported(ses_job *j)
{
    static const char *const list[] = { "suffix", "system",  "template", "format",
                                        "images", "context", "think",    "tools" };
    for (size_t i = 0; i < SES_LEN(list); i++) {
        const ses_json *v = ses_body_get(j->body, list[i]);
        ses_string s = ses_body_text(v);
        bool flag = false, array = ses_json_type_of(v) == SES_JSON_ARRAY;
        bool empty = !v || (s.p && !s.n) || (array && !ses_json_len(v)) || (ses_json_bool(v, &flag) && !flag);
        if (!empty)
            return ses_api_fail(&j->error, SES_API_VALIDATION, list[i], "\"%s\" is not supported", list[i]);
    }
    return true;
}

static bool add_options(ses_worker *w, ses_job *j, state *s, const ses_task *t, ses_body_settings *out)
{
    static const ses_generate_name names[] = { { "top_k", "top_k" },
                                               { "top_p", "top_p" },
                                               { "min_p", "min_p" },
                                               { "typical_p", "typical_p" },
                                               { "seed", "seed" },
                                               { "repeat_penalty", "repetition_penalty" },
                                               { "presence_penalty", "presence_penalty" },
                                               { "frequency_penalty", "frequency_penalty" },
                                               { 0 } };
    int64_t limit = ses_server_get_options(w->server)->max_new_tokens, tokens = -1;
    const ses_json *o = NULL;
    double temperature = -1;
    if (!ses_body_object(j, j->body, "options", &o) || !ses_settings_begin(j, out, 24) ||
        !ses_body_int(j, o, "num_predict", -1, INT32_MAX, &tokens) ||
        !ses_stops_read(j, ses_body_get(o, "stop"), &s->stops))
        return false;
    if (!tokens) return ses_api_fail(&j->error, SES_API_VALIDATION, "num_predict", "\"num_predict\" is 0");
    if (tokens < 0) tokens = limit < 128 ? limit : 128;
    ses_settings_add(out, t, "return_full_text", "false");
    return ses_generate_add_max_tokens(w, j, out, t, tokens) &&
           ses_generate_add_temperature(j, out, t, o, &temperature) &&
           ses_generate_add_named(j, out, t, o, names);
}

static state *new_state(ses_job *j, bool chat)
{
    state *s = ses_job_alloc(j, 1, sizeof *s);
    if (s) *s = (state){ .chat = chat, .stream = true };
    j->state = s;
    return s;
}

static bool submit(ses_worker *w, ses_job *j, const state *s, ses_string prompt,
                   const ses_body_settings *settings)
{
    j->lines = true;
    j->on_token = on_token;
    return ses_job_add(w, j, &(ses_item){ .text = prompt, .settings = settings->item }) &&
           ses_job_check_items(j) && ses_stops_apply(j, &s->stops) && ses_job_submit(w, j, done);
}

static bool handle(ses_worker *w, ses_job *j)
{
    const char *model = NULL;
    ses_string prompt = { 0 };
    ses_body_settings settings;
    const ses_task_entry *task = ses_task_find("text-generation");
    const ses_json *v = ses_body_get(j->body, "prompt");
    state *s = new_state(j, false);
    if (!s) return false;
    if (v && !(prompt = ses_body_text(v)).p) return ses_body_wrong_type(j, "prompt", v, "a string");
    if (!ses_body_string(j, j->body, "model", &model) || !ses_body_bool(j, j->body, "stream", &s->stream) ||
        !check_unsupported(j) || !add_options(w, j, s, task->task, &settings) ||
        !ses_job_open(w, j, model, task, NULL))
        return false;
    return prompt.n ? submit(w, j, s, prompt, &settings) : reply_loaded(w, j);
}

static bool chat_handle(ses_worker *w, ses_job *j)
{
    const char *model = NULL;
    ses_string prompt = { 0 };
    ses_body_settings settings;
    const ses_task_entry *task = ses_task_find("text-generation");
    state *s = new_state(j, true);
    return s && ses_body_string(j, j->body, "model", &model) &&
           ses_body_bool(j, j->body, "stream", &s->stream) && check_unsupported(j) &&
           add_options(w, j, s, task->task, &settings) && ses_chat_find_model(w, j, model) &&
           ses_job_open(w, j, model, task, NULL) && ses_chat_prompt(w, j, &prompt) &&
           submit(w, j, s, prompt, &settings);
}

#define EMPTY "{\"anyOf\":[{\"const\":\"\"},{\"const\":false},{\"type\":\"array\",\"maxItems\":0}]}"
#define UNSUPPORTED                                                                      \
    "\"suffix\":" EMPTY ",\"system\":" EMPTY ",\"template\":" EMPTY ",\"format\":" EMPTY \
    ",\"images\":" EMPTY ",\"context\":" EMPTY ",\"think\":" EMPTY ",\"tools\":" EMPTY

const ses_route ses_route_ollama_generate = {
    .method = "POST",
    .path = "/api/generate",
    .style = SES_STYLE_PLAIN,
    .handle = handle,
    .tag = "Ollama",
    .summary = "Continues a text; as JSON lines unless \"stream\" is false",
    .request =
        "{\"type\":\"object\",\"allOf\":[{\"$ref\":\"#/components/schemas/Models-generate\"}],"
        "\"properties\":{\"prompt\":{\"type\":\"string\"},\"stream\":{\"type\":\"boolean\"},"
        "\"options\":{\"$ref\":\"#/components/schemas/OllamaOptions\"}," UNSUPPORTED ",\"model\":{\"type\":"
        "\"string\",\"description\":\"name of a loaded model; default: the first one for the task\"}}}",
    .response = "{\"type\":\"object\",\"required\":[\"model\",\"created_at\",\"response\",\"done\"]}",
    .content_type = "application/x-ndjson",
};

const ses_route ses_route_ollama_chat = {
    .method = "POST",
    .path = "/api/chat",
    .style = SES_STYLE_PLAIN,
    .handle = chat_handle,
    .tag = "Ollama",
    .summary = "Answers a conversation, by a generator with a chat template; as JSON lines unless \"stream\" "
               "is false",
    .request = "{\"type\":\"object\",\"required\":[\"messages\"],\"allOf\":[{\"$ref\":\"#/components/schemas/"
               "Models-chat\"}],\"properties\":{\"messages\":{\"$ref\":\"#/components/schemas/Messages\"},"
               "\"stream\":{\"type\":\"boolean\"},\"options\":{\"$ref\":\"#/components/schemas/"
               "OllamaOptions\"}," UNSUPPORTED ",\"model\":{\"type\":\"string\","
               "\"description\":\"name of a loaded model; default: the first one with a chat template\"}}}",
    .response = "{\"type\":\"object\",\"required\":[\"model\",\"created_at\",\"message\",\"done\"]}",
    .content_type = "application/x-ndjson",
};
