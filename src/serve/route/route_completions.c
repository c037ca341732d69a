/* POST /v1/completions, /v1/chat/completions: OpenAI's text completion, at once or as a stream. The chat
 * template of the model makes a prompt of a conversation. */
#include "base/alloc.h"
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "serve/chat/chat_prompt.h"
#include "serve/generate_reply.h"
#include "serve/serve_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_CHOICES = 64, MAX_LOGPROBS = 20, MAX_BIASES = 1024 };

typedef struct state {
    ses_stops stops;
    int64_t n, max_tokens, logprobs; /* logprobs -1: none */
    bool chat, echo, stream, include_usage;
    int64_t created;
    struct choice *choice; /* [items * n] */
} state;

/* A text of a stream. */
typedef struct choice {
    bool begun, finished;
    int64_t offset; /* code points of its tokens so far */
} choice;

/* ---- response ---- */

static void begin_response(ses_json_writer *json, const ses_job *j)
{
    const state *s = j->state;
    ses_json_begin_object(json);
    ses_reply_put_id(json, j, s->chat ? "chatcmpl" : "cmpl");
    ses_json_member_string(json, "object",
                           !s->chat    ? "text_completion"
                           : s->stream ? "chat.completion.chunk"
                                       : "chat.completion");
    ses_json_member_int(json, "created", s->created);
    ses_json_member_string(json, "model", j->model->name);
}

static const char *finish_name(const state *s, ses_finish_reason finish)
{
    return s->max_tokens && finish != SES_FINISH_LENGTH ? "stop" : "length";
}

/* The text of a token alone. p: a pipeline of this thread. */
static ses_string token_text(ses_job *j, ses_pipeline *p, const ses_token_logprob *t)
{
    const char *text = NULL;
    size_t n = 0;
    if (p && ses_decode(p->tokens, &t->id, 1, true, &text, &n, NULL) && n) return ses_job_copy(j, text, n);
    return t->token;
}

/* Tokens of the prompt, then of the new text. */
typedef struct token_list {
    const ses_token_logprob *prompt, *text;
    size_t n_prompt, n_text;
} token_list;

/* Token i; NULL: past the end. */
static const ses_token_logprob *token_at(const token_list *l, size_t i)
{
    if (i < l->n_prompt) return &l->prompt[i];
    return i - l->n_prompt < l->n_text ? &l->text[i - l->n_prompt] : NULL;
}

static void put_logprob(ses_json_writer *json, float x)
{
    if (isfinite(x))
        ses_json_put_float(json, x);
    else
        ses_json_put_null(json); /* the first token of a prompt has none */
}

static void put_top(ses_json_writer *json, ses_pipeline *p, ses_job *j, const ses_token_logprob *t)
{
    if (!t->n_top || !isfinite(t->logprob)) {
        ses_json_put_null(json);
        return;
    }
    ses_json_begin_object(json);
    for (size_t i = 0; i < t->n_top; i++) {
        ses_string text = token_text(j, p, &t->top[i]);
        bool repeated = false; /* two tokens may decode to the same text; keys are unique */
        for (size_t k = 0; k < i && !repeated; k++) {
            ses_string other = token_text(j, p, &t->top[k]);
            repeated = other.n == text.n && !memcmp(other.p, text.p, text.n);
        }
        if (repeated) continue;
        ses_json_put_keyn(json, text.p, text.n);
        ses_json_put_float(json, t->top[i].logprob);
    }
    ses_json_end_object(json);
}

static void put_logprobs(ses_json_writer *json, ses_pipeline *p, ses_job *j, const token_list *list,
                         int64_t *offset)
{
    const ses_token_logprob *t;
    ses_json_member_object(json, "logprobs");
    ses_json_member_array(json, "tokens");
    for (size_t i = 0; (t = token_at(list, i)); i++) {
        ses_string text = token_text(j, p, t);
        ses_json_put_stringn(json, text.p, text.n);
    }
    ses_json_end_array(json);
    ses_json_member_array(json, "token_logprobs");
    for (size_t i = 0; (t = token_at(list, i)); i++) put_logprob(json, t->logprob);
    ses_json_end_array(json);
    ses_json_member_array(json, "top_logprobs");
    for (size_t i = 0; (t = token_at(list, i)); i++) put_top(json, p, j, t);
    ses_json_end_array(json);
    ses_json_member_array(json, "text_offset");
    for (size_t i = 0; (t = token_at(list, i)); i++) {
        ses_string text = token_text(j, p, t);
        ses_json_put_int(json, *offset);
        *offset += (int64_t)ses_utf8_count(text.p, text.n);
    }
    ses_json_end_array(json);
    ses_json_end_object(json);
}

/* The text of a choice, or a part of it: of a chat as a message, whose first part has the role. */
static void put_text(ses_json_writer *json, const state *s, const char *text, size_t n, bool first)
{
    if (!s->chat) {
        ses_json_member_stringn(json, "text", text, n);
        return;
    }
    ses_json_member_object(json, s->stream ? "delta" : "message");
    if (first) ses_json_member_string(json, "role", "assistant");
    ses_json_member_stringn(json, "content", text, n);
    ses_json_end_object(json);
}

static void put_choice(ses_json_writer *json, ses_worker *w, ses_job *j, size_t item, size_t i)
{
    const state *s = j->state;
    const ses_result *r = &j->item[item].result;
    const ses_generation_request *g = j->item[item].request->state;
    const ses_result_row *row = &r->row[i], *first = &r->row[0];
    ses_buf b = { 0 };
    if (s->echo) ses_buf_append(&b, r->item->text.p, r->item->text.n);
    if (s->max_tokens) ses_buf_append(&b, row->text.p, row->text.n);
    ses_json_begin_object(json);
    ses_json_member_uint(json, "index", item * (size_t)s->n + i);
    put_text(json, s, b.data ? b.data : "", b.len, true);
    if (s->logprobs >= 0) {
        token_list list = { .text = row->logprobs, .n_text = s->max_tokens ? row->n_logprobs : 0 };
        if (s->echo) list.prompt = first->prompt_logprobs, list.n_prompt = first->n_prompt_logprobs;
        int64_t offset = 0;
        put_logprobs(json, ses_served_pipeline_encoder(j->pipeline, w->index, NULL), j, &list, &offset);
    } else {
        ses_json_member_string(json, "logprobs", NULL);
    }
    ses_json_member_string(json, "finish_reason", finish_name(s, g->end[i].finish));
    ses_json_end_object(json);
    ses_buf_free(&b);
}

static int64_t count_new_tokens(const ses_job *j)
{
    const state *s = j->state;
    return s->max_tokens ? ses_generate_new_tokens(j) : 0;
}

static void done(ses_worker *w, ses_job *j)
{
    ses_json_writer *json = ses_reply_begin(w, j, false);
    if (!json) return;
    begin_response(json, j);
    ses_json_member_array(json, "choices");
    for (size_t i = 0; i < j->n; i++)
        for (size_t k = 0; k < j->item[i].result.n; k++) put_choice(json, w, j, i, k);
    ses_json_end_array(json);
    ses_reply_put_usage(json, j, count_new_tokens(j));
    ses_json_end_object(json);
    ses_metrics_count_generated(ses_server_metrics(w->server), count_new_tokens(j));
    ses_reply_json(w, j, json);
}

/* ---- stream ---- */

/* A part of a text. t: its last token with log-probabilities; NULL: none. finish: NULL if it is not the last
 * part. In the computing thread, unless t is NULL. */
static bool send_chunk(ses_job *j, size_t number, ses_string text, const ses_token_logprob *t,
                       const char *finish)
{
    const state *s = j->state;
    ses_json_writer *json = ses_json_writer_new(-1, NULL);
    if (!json) return false;
    begin_response(json, j);
    ses_json_member_array(json, "choices");
    ses_json_begin_object(json);
    ses_json_member_uint(json, "index", number);
    put_text(json, s, text.p ? text.p : "", text.n, !s->choice[number].begun);
    s->choice[number].begun = true;
    if (t)
        put_logprobs(json, j->pipeline->compute, j, &(token_list){ .text = t, .n_text = 1 },
                     &s->choice[number].offset);
    else
        ses_json_member_string(json, "logprobs", NULL);
    ses_json_member_string(json, "finish_reason", finish);
    ses_json_end_object(json);
    ses_json_end_array(json);
    ses_json_end_object(json);
    bool ok = ses_event_send(j, json);
    ses_json_writer_free(json);
    s->choice[number].finished = finish != NULL;
    return ok;
}

static bool on_token(ses_job *j, size_t item, const ses_generation_token *t)
{
    const state *s = j->state;
    const ses_token_event *v = t->event;
    size_t number = item * (size_t)s->n + (size_t)v->sequence;
    const char *finish = v->last ? finish_name(s, v->finish) : NULL;
    if (s->logprobs < 0) return (!t->text.n && !finish) || send_chunk(j, number, t->text, NULL, finish);
    ses_token_logprob top[MAX_LOGPROBS];
    ses_token_logprob x = { .id = t->id, .token = t->token, .logprob = v->logprob, .top = top };
    for (; (int64_t)x.n_top < v->n_top && x.n_top < MAX_LOGPROBS; x.n_top++)
        top[x.n_top] = (ses_token_logprob){ .id = v->top[x.n_top].id,
                                            .logprob = v->top[x.n_top].logprob,
                                            .token = { "", 0 } };
    return send_chunk(j, number, t->text, &x, finish);
}

static void stream_done(ses_worker *w, ses_job *j)
{
    const state *s = j->state;
    bool ok = ses_job_check_items(j);
    if (!ok) {
        ses_reply_error(w, j);
        return;
    }
    for (size_t i = 0; ok && i < j->n; i++) { /* with beams a text is complete before it is sent */
        const ses_generation_request *g = j->item[i].request->state;
        const ses_result *r = &j->item[i].result;
        for (size_t k = 0; ok && k < r->n; k++) {
            size_t number = i * (size_t)s->n + k;
            if (!s->choice[number].finished)
                ok = send_chunk(j, number, r->row[k].text, NULL, finish_name(s, g->end[k].finish));
        }
    }
    ses_json_writer *json = s->include_usage ? ses_json_writer_new(-1, NULL) : NULL;
    if (json) {
        begin_response(json, j);
        ses_json_member_array(json, "choices");
        ses_json_end_array(json);
        ses_reply_put_usage(json, j, count_new_tokens(j));
        ses_json_end_object(json);
        ses_event_send(j, json);
        ses_json_writer_free(json);
    }
    ses_event_send_text(j, "[DONE]");
    ses_metrics_count_generated(ses_server_metrics(w->server), count_new_tokens(j));
    ses_metrics_count_job(ses_server_metrics(w->server), j);
    ses_http_stream_end(j->x);
    ses_job_free(j);
}

/* ---- request ---- */

/* Options of OpenAI that have no counterpart: accepted with the value that turns them off. */
static bool check_unsupported(ses_job *j, const state *s)
{
    int64_t best_of = 1;
    if (!ses_body_int(j, j->body, "best_of", 1, s->n, &best_of)) return false;
    return !ses_body_get(j->body, "suffix") ||
           ses_api_fail(&j->error, SES_API_VALIDATION, "suffix", "\"suffix\" is not supported");
}

/* "logit_bias": {"ID": BIAS}, for all items. */
static bool add_biases(ses_job *j)
{
    const ses_json *v = NULL;
    int64_t vocab = ses_tokenizer_vocab_size(ses_pipeline_tokenizer(j->pipeline->compute));
    if (!ses_body_object(j, j->body, "logit_bias", &v)) return false;
    if (ses_json_len(v) > MAX_BIASES)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "logit_bias",
                            "\"logit_bias\" must have at most %d token ids", MAX_BIASES);
    for (size_t i = 0; i < ses_json_len(v); i++) {
        char *end;
        const char *key = ses_json_key(v, i, NULL);
        long id = strtol(key, &end, 10);
        double bias = 0;
        if (end == key || *end || id < 0 || id >= vocab || !ses_json_real(ses_json_at(v, i), &bias) ||
            !(fabs(bias) <= 1e4))
            return ses_api_fail(&j->error, SES_API_VALIDATION, "logit_bias",
                                "\"logit_bias\" must map token ids of the vocabulary to numbers");
        ses_err e = { 0 };
        for (size_t k = 0; k < j->n; k++)
            if (!ses_generation_request_add_bias(j->item[k].request, (int32_t)id, bias, &e))
                return ses_api_fail_with(&j->error, SES_API_BACKEND, "logit_bias", &e);
    }
    return true;
}

static bool read_options(ses_job *j, state *s)
{
    const ses_json *options = NULL;
    if (!ses_body_object(j, j->body, "stream_options", &options) ||
        !ses_body_int(j, j->body, "n", 1, MAX_CHOICES, &s->n) ||
        !ses_body_int(j, j->body, "max_tokens", 0, INT32_MAX, &s->max_tokens) ||
        !ses_body_int(j, j->body, "logprobs", 0, MAX_LOGPROBS, &s->logprobs) ||
        !ses_body_bool(j, j->body, "echo", &s->echo) || !ses_body_bool(j, j->body, "stream", &s->stream) ||
        !ses_body_bool(j, options, "include_usage", &s->include_usage) ||
        !ses_stops_read(j, ses_body_get(j->body, "stop"), &s->stops) || !check_unsupported(j, s))
        return false;
    if (!s->max_tokens && !s->echo)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "max_tokens",
                            "\"max_tokens\" is 0: set \"echo\" to true");
    return !s->stream || !s->echo ||
           ses_api_fail(&j->error, SES_API_VALIDATION, "stream", "\"stream\" excludes \"echo\"");
}

/* Settings of the pipeline. Options that are absent keep the values of the model's folder. */
static bool add_settings(ses_worker *w, ses_job *j, const state *s, const ses_task *t, ses_body_settings *out)
{
    static const ses_generate_name names[] = { { "top_p", "top_p" },
                                               { "top_k", "top_k" },
                                               { "seed", "seed" },
                                               { "num_beams", "num_beams" },
                                               { "min_p", "min_p" },
                                               { "repetition_penalty", "repetition_penalty" },
                                               { "presence_penalty", "presence_penalty" },
                                               { "frequency_penalty", "frequency_penalty" },
                                               { 0 } };
    double temperature = -1;
    int64_t beams = 1;
    if (!ses_settings_begin(j, out, 24) || !ses_generate_add_temperature(j, out, t, j->body, &temperature) ||
        !ses_body_int(j, j->body, "num_beams", 1, MAX_CHOICES, &beams) ||
        !ses_generate_add_max_tokens(w, j, out, t, s->max_tokens ? s->max_tokens : 1))
        return false;
    if (temperature == 0 && s->n > 1 && beams == 1)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "temperature",
                            "\"temperature\" 0 gives one text: \"n\" above 1 needs a temperature above 0 or "
                            "\"num_beams\"");
    ses_settings_add(out, t, "return_full_text", "false");
    if (temperature < 0 && s->n > 1 && beams == 1) ses_settings_add(out, t, "do_sample", "true");
    if (!ses_generate_add_named(j, out, t, j->body, names)) return false;
    if (s->n > 1 && !ses_settings_add_json(j, out, t, "num_return_sequences", ses_body_get(j->body, "n")))
        return false;
    if (s->logprobs < 0) return true;
    ses_settings_add(out, t, "logprobs", "true");
    if (s->echo) ses_settings_add(out, t, "prompt_logprobs", "true");
    return !s->logprobs ||
           ses_settings_add_json(j, out, t, "top_logprobs", ses_body_get(j->body, "logprobs"));
}

/* Members of a chat that are not supported: refused unless they are off. */
static bool check_chat(ses_job *j)
{
    static const char *const list[] = { "tools",    "functions",    "tool_choice", "function_call",
                                        "logprobs", "top_logprobs", "modalities",  "audio" };
    for (size_t i = 0; i < SES_LEN(list); i++) {
        const ses_json *v = ses_body_get(j->body, list[i]);
        bool flag = true, array = ses_json_type_of(v) == SES_JSON_ARRAY;
        if (v && !(array && !ses_json_len(v)) && !(ses_json_bool(v, &flag) && !flag))
            return ses_api_fail(&j->error, SES_API_VALIDATION, list[i], "\"%s\" is not supported", list[i]);
    }
    const ses_json *format = ses_body_get(j->body, "response_format");
    ses_string type = ses_body_text(ses_json_get(format, "type"));
    return !format || (type.p && ses_equal(type.p, type.n, "text")) ||
           ses_api_fail(&j->error, SES_API_VALIDATION, "response_format",
                        "\"response_format\" must be {\"type\": \"text\"}");
}

static bool read_chat_options(ses_job *j, state *s)
{
    const char *key;
    const ses_json *options = NULL;
    return ses_body_either(j, "max_tokens", "max_completion_tokens", &key) &&
           ses_body_object(j, j->body, "stream_options", &options) &&
           ses_body_int(j, j->body, "n", 1, MAX_CHOICES, &s->n) &&
           ses_body_int(j, j->body, key, 1, INT32_MAX, &s->max_tokens) &&
           ses_body_bool(j, j->body, "stream", &s->stream) &&
           ses_body_bool(j, options, "include_usage", &s->include_usage) &&
           ses_stops_read(j, ses_body_get(j->body, "stop"), &s->stops) && check_chat(j);
}

/* Adds the prompts with their settings, and submits the job. */
static bool submit(ses_job *j, ses_worker *w, state *s, const ses_string *prompt, size_t n,
                   const ses_body_settings *settings)
{
    for (size_t i = 0; i < n; i++)
        if (!ses_job_add(w, j, &(ses_item){ .text = prompt[i], .settings = settings->item })) return false;
    s->choice = ses_job_alloc(j, n * (size_t)s->n, sizeof *s->choice);
    if (!s->choice || !ses_job_check_items(j) || !ses_stops_apply(j, &s->stops) || !add_biases(j))
        return false;
    j->state = s;
    const ses_generation_request *g = j->item[0].request->state;
    j->on_token = s->stream && g->o->num_beams <= 1 ? on_token : NULL;
    return ses_job_submit(w, j, s->stream ? stream_done : done);
}

/* max_tokens: if the request has no limit. */
static state *new_state(ses_worker *w, ses_job *j, int64_t max_tokens)
{
    state *s = ses_job_alloc(j, 1, sizeof *s);
    int64_t limit = ses_server_get_options(w->server)->max_new_tokens;
    if (s)
        *s = (state){ .n = 1,
                      .max_tokens = limit < max_tokens ? limit : max_tokens,
                      .logprobs = -1,
                      .created = (int64_t)time(NULL) };
    return s;
}

static bool handle(ses_worker *w, ses_job *j)
{
    const char *model = NULL;
    ses_string *prompt = NULL;
    size_t n = 0;
    ses_body_settings settings;
    const ses_task_entry *task = ses_task_find("text-generation");
    state *s = new_state(w, j, 16);
    return s && ses_body_string(j, j->body, "model", &model) && read_options(j, s) &&
           ses_body_texts(j, ses_body_get(j->body, "prompt"), "prompt", &prompt, &n, false) &&
           add_settings(w, j, s, task->task, &settings) && ses_job_open(w, j, model, task, NULL) &&
           submit(j, w, s, prompt, n, &settings);
}

static bool chat_handle(ses_worker *w, ses_job *j)
{
    const char *model = NULL;
    ses_string prompt = { 0 };
    ses_body_settings settings;
    const ses_task_entry *task = ses_task_find("text-generation");
    state *s = new_state(w, j, 256);
    if (!s) return false;
    s->chat = true;
    return ses_body_string(j, j->body, "model", &model) && read_chat_options(j, s) &&
           ses_chat_find_model(w, j, model) && add_settings(w, j, s, task->task, &settings) &&
           ses_job_open(w, j, model, task, NULL) && ses_chat_prompt(w, j, &prompt) &&
           submit(j, w, s, &prompt, 1, &settings);
}

/* Members of both requests: how tokens are chosen. Several texts are drawn at a temperature above 0. */
#define SAMPLING                                                                                    \
    "\"n\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":64},"                                    \
    "\"temperature\":{\"anyOf\":[{\"const\":0},{\"type\":\"number\",\"minimum\":0.000001,"          \
    "\"maximum\":100}]},"                                                                           \
    "\"top_p\":{\"type\":\"number\",\"minimum\":0,\"maximum\":1},"                                  \
    "\"presence_penalty\":{\"type\":\"number\",\"minimum\":-2,\"maximum\":2},"                      \
    "\"frequency_penalty\":{\"type\":\"number\",\"minimum\":-2,\"maximum\":2},"                     \
    "\"seed\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":9000000000000000},"                   \
    "\"stop\":{\"anyOf\":[{\"type\":\"string\",\"minLength\":1,\"maxLength\":256,\"pattern\":\"^[^" \
    "\\u0000]*$\"},"                                                                                \
    "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":256,"         \
    "\"pattern\":\"^[^\\u0000]*$\"},"                                                               \
    "\"maxItems\":16}]},"
#define SEVERAL                                                         \
    "{\"anyOf\":[{\"properties\":{\"n\":{\"enum\":[1,null]}}},"         \
    "{\"properties\":{\"temperature\":{\"type\":[\"number\",\"null\"]," \
    "\"exclusiveMinimum\":0}}}]}"

const ses_route ses_route_openai_completions = {
    .method = "POST",
    .path = "/v1/completions",
    .style = SES_STYLE_OPENAI,
    .handle = handle,
    .tag = "OpenAI",
    .summary = "Continues texts; with \"stream\" as Server-Sent Events",
    .request = "{\"type\":\"object\",\"required\":[\"prompt\"],"
               "\"allOf\":[{\"$ref\":\"#/components/schemas/Models-generate\"},"
               "{\"anyOf\":[{\"properties\":{\"echo\":{\"enum\":[false,null]},"
               "\"max_tokens\":{\"minimum\":1}}},{\"properties\":{\"echo\":{\"const\":true},"
               "\"stream\":{\"enum\":[false,null]}},\"required\":[\"echo\"]}]}," SEVERAL "],"
               "\"properties\":{\"prompt\":{\"$ref\":\"#/components/schemas/Texts\"},"
               "\"max_tokens\":{\"$ref\":\"#/components/schemas/NewTokens\"}," SAMPLING
               "\"logprobs\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":20},"
               "\"echo\":{\"type\":\"boolean\"},\"stream\":{\"type\":\"boolean\"},"
               "\"stream_options\":{\"type\":\"object\","
               "\"properties\":{\"include_usage\":{\"type\":[\"boolean\",\"null\"]}}},"
               "\"model\":{\"type\":\"string\","
               "\"description\":\"name of a loaded model; default: the first one for the task\"}}}",
    .response = "{\"type\":\"object\",\"required\":[\"id\",\"object\",\"created\",\"model\",\"choices\"],"
                "\"properties\":{\"choices\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":"
                "[\"index\",\"text\",\"logprobs\",\"finish_reason\"]}},\"usage\":{\"$ref\":\"#/components/"
                "schemas/Usage\"}}}",
    .content_type = "text/event-stream",
};

#define OFF "{\"anyOf\":[{\"const\":false},{\"type\":\"array\",\"maxItems\":0}]}"

const ses_route ses_route_openai_chat = {
    .method = "POST",
    .path = "/v1/chat/completions",
    .style = SES_STYLE_OPENAI,
    .handle = chat_handle,
    .tag = "OpenAI",
    .summary = "Answers a conversation, by a generator with a chat template",
    .request = "{\"type\":\"object\",\"required\":[\"messages\"],"
               "\"allOf\":[{\"$ref\":\"#/components/schemas/Models-chat\"},"
               "{\"anyOf\":[{\"properties\":{\"max_tokens\":{\"type\":\"null\"}}},{\"properties\":{"
               "\"max_completion_tokens\":{\"type\":\"null\"}}}]}," SEVERAL "],"
               "\"properties\":{\"messages\":{\"$ref\":\"#/components/schemas/Messages\"},"
               "\"max_tokens\":{\"$ref\":\"#/components/schemas/SomeTokens\"},"
               "\"max_completion_tokens\":{\"$ref\":\"#/components/schemas/SomeTokens\"}," SAMPLING
               "\"stream\":{\"type\":\"boolean\"},"
               "\"stream_options\":{\"type\":\"object\","
               "\"properties\":{\"include_usage\":{\"type\":[\"boolean\",\"null\"]}}},"
               "\"response_format\":{\"type\":\"object\",\"required\":[\"type\"],\"properties\":{\"type\":{"
               "\"const\":\"text\"}}},\"tools\":" OFF ",\"functions\":" OFF ",\"tool_choice\":" OFF
               ",\"function_call\":" OFF ",\"logprobs\":" OFF ",\"top_logprobs\":" OFF ",\"modalities\":" OFF
               ",\"audio\":" OFF ",\"model\":{\"type\":\"string\","
               "\"description\":\"name of a loaded model; default: the first one with a chat template\"}}}",
    .response =
        "{\"type\":\"object\",\"required\":[\"id\",\"object\",\"created\",\"model\",\"choices\"],"
        "\"properties\":{\"choices\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":"
        "[\"index\",\"message\",\"finish_reason\"]}},\"usage\":{\"$ref\":\"#/components/schemas/Usage\"}}}",
    .content_type = "text/event-stream",
};
