/* Renders the template of a folder with the messages of a request. */
#include "chat_prompt.h"

#include "serve/body.h"
#include "serve/reply.h"
#include "serve/serve_impl.h"
#include "task/chat/chat_template.h"

#include <string.h>

enum { MAX_MESSAGES = 1024 };

bool ses_served_model_chats(const ses_served_model *m) { return m->chat.source.p != NULL; }

bool ses_chat_find_model(ses_worker *w, ses_job *j, const char *name)
{
    static const char why[] =
        "no chat template: its folder has no chat_template.jinja and no \"chat_template\" in "
        "tokenizer_config.json; /v1/completions and /api/generate continue a text without one";
    if (!(name && *name)) {
        if (!ses_job_find_first(w, j, ses_served_model_chats)) return false;
        return j->model ||
               ses_api_fail(&j->error, SES_API_VALIDATION, "model", "every loaded generator has %s", why);
    }
    if (!ses_job_find_model(w, j, name, ses_task_find("text-generation"))) return false;
    return ses_served_model_chats(j->model) ||
           ses_api_fail(&j->error, SES_API_VALIDATION, "model", "%s has %s", j->model->name, why);
}

/* ---- messages ---- */

/* A text, or a list of one part {"type": "text", "text"}. */
static ses_string content_of(const ses_json *v)
{
    const ses_json *part = ses_json_at(v, 0);
    ses_string kind = ses_body_text(ses_json_get(part, "type"));
    if (ses_json_type_of(v) != SES_JSON_ARRAY) return ses_body_text(v);
    if (ses_json_len(v) != 1 || !kind.p || !ses_equal(kind.p, kind.n, "text")) return (ses_string){ 0 };
    ses_string text = ses_body_text(ses_json_get(part, "text"));
    return text.n ? text : (ses_string){ 0 };
}

/* Members that would change the prompt. */
static bool check_members(ses_job *j, const ses_json *message)
{
    static const char *const refused[] = { "images", "tool_calls", "function_call", "audio" };
    for (size_t i = 0; i < SES_LEN(refused); i++) {
        const ses_json *v = ses_json_get(message, refused[i]);
        ses_json_type t = ses_json_type_of(v);
        bool list = t == SES_JSON_ARRAY || t == SES_JSON_OBJECT;
        if (t != SES_JSON_NULL && !(list && !ses_json_len(v)))
            return ses_api_fail(&j->error, SES_API_VALIDATION, "messages",
                                "\"%s\" of messages are not supported", refused[i]);
    }
    return true;
}

static bool put_messages(ses_job *j, ses_json_writer *json)
{
    const ses_json *list = ses_body_get(j->body, "messages");
    size_t n = ses_json_len(list);
    if (!list) return ses_body_missing(j, "messages");
    if (ses_json_type_of(list) != SES_JSON_ARRAY) return ses_body_wrong_type(j, "messages", list, "a list");
    if (!n) return ses_api_fail(&j->error, SES_API_EMPTY, "messages", "\"messages\" is empty");
    if (n > MAX_MESSAGES)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "messages",
                            "\"messages\" has more than %d elements", MAX_MESSAGES);
    ses_json_member_array(json, "messages");
    for (size_t i = 0; i < n; i++) {
        const ses_json *x = ses_json_at(list, i);
        ses_string role = ses_body_text(ses_json_get(x, "role")),
                   content = content_of(ses_json_get(x, "content"));
        if (!role.n || !content.p)
            return ses_api_fail(
                &j->error, SES_API_VALIDATION, "messages",
                "message %zu must have a \"role\" and a \"content\", which is a text or a list of one "
                "{\"type\": \"text\", \"text\": ...}",
                i);
        if (!check_members(j, x)) return false;
        ses_json_begin_object(json);
        ses_json_member_stringn(json, "role", role.p, role.n);
        ses_json_member_stringn(json, "content", content.p, content.n);
        ses_json_end_object(json);
    }
    ses_json_end_array(json);
    return true;
}

/* bos_token and the like: texts, or objects with a "content". */
static void put_tokens(ses_json_writer *json, const ses_json *config)
{
    static const char *const names[] = { "bos_token", "eos_token", "unk_token", "pad_token" };
    for (size_t i = 0; i < SES_LEN(names); i++) {
        const ses_json *v = ses_json_get(config, names[i]);
        ses_string s = ses_body_text(ses_json_type_of(v) == SES_JSON_OBJECT ? ses_json_get(v, "content") : v);
        if (s.p) ses_json_member_stringn(json, names[i], s.p, s.n);
    }
}

/* ---- the prompt ---- */

/* A template writes the special tokens itself. A tokenizer may add one at the beginning: the prompt must not
 * have it twice. */
static bool leave_out_special(ses_worker *w, ses_job *j, const ses_json *variables, ses_string *prompt)
{
    ses_err e = { 0 };
    ses_pipeline *p = ses_served_pipeline_encoder(j->pipeline, w->index, &e);
    if (!p || !ses_encode(p->tokens, &(ses_input){ .text = { "", 0 } }, NULL, &e))
        return ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    const ses_encoding *x = ses_encode_ctx_result(p->tokens);
    ses_string bos = ses_body_text(ses_json_get(variables, "bos_token"));
    size_t n = 0;
    const char *added = x->n == 1 ? ses_tokenizer_id_to_token(j->model->tokenizer, x->id[0], &n) : NULL;
    if (!x->n) return true;
    bool same = added && bos.p && n == bos.n && !memcmp(added, bos.p, n) && prompt->n >= n &&
                !memcmp(prompt->p, bos.p, n);
    if (same) prompt->p += n, prompt->n -= n;
    return same || ses_api_fail(
                       &j->error, SES_API_VALIDATION, "model",
                       "the tokenizer of %s adds special tokens that its chat template does not write, which "
                       "is not supported",
                       j->model->name);
}

static bool render(ses_worker *w, ses_job *j, ses_string source, const char *text, size_t n, ses_string *out)
{
    ses_err e = { 0 };
    ses_buf b = { 0 };
    ses_json_doc *variables = ses_json_parse(text, n, &e);
    bool ok = variables && ses_chat_template_render(source, ses_json_root(variables), &b, &e);
    if (!ok) ses_api_fail_with(&j->error, SES_API_VALIDATION, "messages", &e);
    if (ok) *out = ses_job_copy(j, b.data ? b.data : "", b.len);
    ok = ok && out->p && leave_out_special(w, j, ses_json_root(variables), out);
    if (ok && !out->n)
        ok = ses_api_fail(&j->error, SES_API_EMPTY, "messages", "the chat template makes an empty prompt");
    ses_json_free(variables);
    ses_buf_free(&b);
    return ok;
}

bool ses_chat_prompt(ses_worker *w, ses_job *j, ses_string *out)
{
    const ses_chat_folder *f = &j->model->chat;
    size_t n = 0;
    ses_json_writer *json = ses_reply_writer(j);
    bool ok = json != NULL;
    if (ok) ses_json_begin_object(json);
    ok = ok && put_messages(j, json);
    if (ok) {
        put_tokens(json, ses_json_root(f->config));
        ses_json_member_bool(json, "add_generation_prompt", true);
        ses_json_end_object(json);
        const char *text = ses_json_writer_text(json, &n, NULL);
        ok = text ? render(w, j, f->source, text, n, out)
                  : ses_api_fail(&j->error, SES_API_BACKEND, NULL, "out of memory");
    }
    ses_json_writer_free(json);
    return ok;
}
