/* POST /tokenize, /decode, /detokenize: tokens of texts, and texts of tokens. /tokenize answers in the shape
 * of text-embeddings-inference ("inputs") or of llama.cpp ("content"). */
#include "serve/body.h"
#include "serve/route.h"
#include "serve/serve_impl.h"

#include "base/str.h"

#include <string.h>

/* The encode context of a model's own pipeline, for this worker. */
static ses_pipeline *open_tokenizer(ses_worker *w, ses_job *j)
{
    const char *model = NULL;
    ses_err e = { 0 };
    if (!ses_body_string(j, j->body, "model", &model) || !ses_job_find_model(w, j, model, NULL)) return NULL;
    if (!j->model->tokenizer) {
        ses_api_fail(&j->error, SES_API_VALIDATION, "model",
                     "%s is a classifier of words: it has no tokenizer", j->model->name);
        return NULL;
    }
    ses_served_pipeline *p = ses_served_model_pipeline(j->model);
    ses_pipeline *clone = p ? ses_served_pipeline_encoder(p, w->index, &e) : NULL;
    if (!clone) ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    return clone;
}

/* ---- /tokenize ---- */

static void put_token(ses_json_writer *json, const ses_pipeline *p, ses_string text, const ses_encoding *x,
                      size_t i)
{
    size_t n = 0;
    const char *token = ses_tokenizer_id_to_token(p->tokenizer, x->id[i], &n);
    bool special = x->special_mask[i];
    ses_offset bytes = x->byte_offset[i], chars = x->char_offset[i];
    ses_json_begin_object(json);
    ses_json_member_int(json, "id", x->id[i]);
    if (special || bytes.end <= bytes.begin)
        ses_json_member_stringn(json, "text", token ? token : "", n);
    else
        ses_json_member_stringn(json, "text", text.p + bytes.begin, (size_t)(bytes.end - bytes.begin));
    ses_json_member_bool(json, "special", special);
    ses_json_put_key(json, "start");
    special ? ses_json_put_null(json) : ses_json_put_int(json, chars.begin);
    ses_json_put_key(json, "stop");
    special ? ses_json_put_null(json) : ses_json_put_int(json, chars.end);
    ses_json_member_stringn(json, "token", token ? token : "", n);
    ses_json_end_object(json);
}

static bool put_texts(ses_job *j, ses_pipeline *p, ses_json_writer *json, const ses_string *text, size_t n,
                      bool special)
{
    ses_err e = { 0 };
    ses_json_begin_array(json);
    for (size_t i = 0; i < n; i++) {
        ses_encode_options o = { .no_special = !special };
        if (!ses_encode(p->tokens, &(ses_input){ .text = text[i] }, &o, &e))
            return ses_api_fail_with(&j->error, SES_API_TOKENIZER, "inputs", &e);
        const ses_encoding *x = ses_encode_ctx_result(p->tokens);
        ses_json_begin_array(json);
        for (size_t k = 0; k < x->n; k++) put_token(json, p, text[i], x, k);
        ses_json_end_array(json);
    }
    ses_json_end_array(json);
    return true;
}

/* llama.cpp's shape: ids, or with pieces, which are decoded one by one. */
static bool put_content(ses_job *j, ses_pipeline *p, ses_json_writer *json, ses_string text, bool special,
                        bool pieces)
{
    ses_err e = { 0 };
    ses_encode_options o = { .no_special = !special };
    if (!ses_encode(p->tokens, &(ses_input){ .text = text }, &o, &e))
        return ses_api_fail_with(&j->error, SES_API_TOKENIZER, "content", &e);
    const ses_encoding *x = ses_encode_ctx_result(p->tokens);
    size_t n = x->n;
    int32_t *id = ses_job_alloc(j, n, sizeof *id);
    if (!id) return false;
    memcpy(id, x->id, n * sizeof *id);
    ses_json_begin_object(json);
    ses_json_member_array(json, "tokens");
    for (size_t i = 0; i < n; i++) {
        const char *piece = "";
        size_t len = 0;
        if (!pieces) {
            ses_json_put_int(json, id[i]);
            continue;
        }
        if (!ses_decode(p->tokens, id + i, 1, true, &piece, &len, &e))
            return ses_api_fail_with(&j->error, SES_API_TOKENIZER, "content", &e);
        ses_json_begin_object(json);
        ses_json_member_int(json, "id", id[i]);
        ses_json_member_stringn(json, "piece", piece, len);
        ses_json_end_object(json);
    }
    ses_json_end_array(json);
    ses_json_end_object(json);
    return true;
}

static bool reply(ses_worker *w, ses_job *j, ses_json_writer *json, bool ok)
{
    if (ok)
        ses_reply_json(w, j, json);
    else
        ses_json_writer_free(json);
    return ok;
}

static bool tokenize_handle(ses_worker *w, ses_job *j)
{
    const ses_json *content = ses_body_get(j->body, "content");
    bool all = true, special = false, pieces = false;
    ses_string *text = NULL;
    size_t n = 0;
    const char *key;
    if (!ses_body_bool(j, j->body, "add_special_tokens", &all) ||
        !ses_body_bool(j, j->body, "add_special", &special) ||
        !ses_body_bool(j, j->body, "with_pieces", &pieces) || !ses_body_either(j, "inputs", "content", &key))
        return false;
    if (content && ses_json_type_of(content) != SES_JSON_STRING)
        return ses_body_wrong_type(j, "content", content, "a string");
    if (!ses_body_texts(j, ses_body_get(j->body, key), key, &text, &n, true) || !ses_job_check_count(w, j, n))
        return false;
    ses_pipeline *p = open_tokenizer(w, j);
    ses_json_writer *json = p ? ses_reply_writer(j) : NULL;
    if (!json) return false;
    return reply(w, j, json,
                 content ? put_content(j, p, json, text[0], special, pieces)
                         : put_texts(j, p, json, text, n, all));
}

/* ---- /decode, /detokenize ---- */

static bool read_ids(ses_job *j, const ses_pipeline *p, const ses_json *v, const char *key, int32_t **id,
                     size_t *n)
{
    *n = ses_json_len(v);
    if (ses_json_type_of(v) != SES_JSON_ARRAY) return ses_body_wrong_type(j, key, v, "a list of token ids");
    *id = ses_job_alloc(j, *n, sizeof **id);
    for (size_t i = 0; *id && i < *n; i++) {
        int64_t x;
        if (!ses_body_whole(ses_json_at(v, i), &x) || x < 0 || x >= ses_tokenizer_vocab_size(p->tokenizer))
            return ses_api_fail(&j->error, SES_API_TOKENIZER, key,
                                "\"%s\": element %zu is not an id of the vocabulary", key, i);
        (*id)[i] = (int32_t)x;
    }
    return *id != NULL;
}

static bool put_decoded(ses_job *j, ses_pipeline *p, ses_json_writer *json, const ses_json *v,
                        const char *key, bool keep)
{
    ses_err e = { 0 };
    int32_t *id = NULL;
    size_t n = 0, len = 0;
    const char *text = "";
    if (!read_ids(j, p, v, key, &id, &n)) return false;
    if (!ses_decode(p->tokens, id, n, keep, &text, &len, &e))
        return ses_api_fail_with(&j->error, SES_API_TOKENIZER, key, &e);
    ses_json_put_stringn(json, text, len);
    return true;
}

static bool decode_handle(ses_worker *w, ses_job *j)
{
    bool skip = true;
    const ses_json *ids = ses_body_get(j->body, "ids");
    if (!ids) return ses_body_missing(j, "ids");
    bool nested = ses_json_type_of(ses_json_at(ids, 0)) == SES_JSON_ARRAY, ok = true;
    if (!ses_body_bool(j, j->body, "skip_special_tokens", &skip) ||
        !ses_job_check_count(w, j, nested ? ses_json_len(ids) : 1))
        return false;
    ses_pipeline *p = open_tokenizer(w, j);
    ses_json_writer *json = p ? ses_reply_writer(j) : NULL;
    if (!json) return false;
    ses_json_begin_array(json);
    for (size_t i = 0; ok && i < (nested ? ses_json_len(ids) : 1); i++)
        ok = put_decoded(j, p, json, nested ? ses_json_at(ids, i) : ids, "ids", !skip);
    ses_json_end_array(json);
    return reply(w, j, json, ok);
}

static bool detokenize_handle(ses_worker *w, ses_job *j)
{
    const ses_json *tokens = ses_body_get(j->body, "tokens");
    if (!tokens) return ses_body_missing(j, "tokens");
    ses_pipeline *p = open_tokenizer(w, j);
    ses_json_writer *json = p ? ses_reply_writer(j) : NULL;
    if (!json) return false;
    ses_json_begin_object(json);
    ses_json_put_key(json, "content");
    bool ok = put_decoded(j, p, json, tokens, "tokens", true);
    ses_json_end_object(json);
    return reply(w, j, json, ok);
}

const ses_route ses_route_tokenize = {
    .method = "POST",
    .path = "/tokenize",
    .style = SES_STYLE_TEI,
    .handle = tokenize_handle,
    .tag = "TEI",
    .summary = "Tokens of texts (\"inputs\"), or token ids of a text (\"content\", as llama.cpp)",
    .request = "{\"type\":\"object\",\"allOf\":[{\"$ref\":\"#/components/schemas/Models-tokenize\"}],"
               "\"properties\":{\"inputs\":{\"$ref\":\"#/components/schemas/AnyTexts\"},"
               "\"content\":{\"type\":\"string\"},\"add_special_tokens\":{\"type\":\"boolean\"},"
               "\"add_special\":{\"type\":\"boolean\"},\"with_pieces\":{\"type\":\"boolean\"},"
               "\"model\":{\"type\":\"string\","
               "\"description\":\"name of a loaded model; default: the first one for the task\"}},"
               "\"anyOf\":[{\"required\":[\"inputs\"],"
               "\"properties\":{\"inputs\":{\"$ref\":\"#/components/schemas/AnyTexts\"},"
               "\"content\":{\"type\":\"null\"}}},{\"required\":[\"content\"],"
               "\"properties\":{\"content\":{\"type\":\"string\"},\"inputs\":{\"type\":\"null\"}}}]}",
    .response = "{\"type\":[\"array\",\"object\"]}",
};

const ses_route ses_route_decode = {
    .method = "POST",
    .path = "/decode",
    .style = SES_STYLE_TEI,
    .handle = decode_handle,
    .tag = "TEI",
    .summary = "Texts of token ids",
    .request = "{\"type\":\"object\",\"required\":[\"ids\"],"
               "\"allOf\":[{\"$ref\":\"#/components/schemas/Models-decode\"}],"
               "\"properties\":{\"ids\":{\"type\":\"array\"},"
               "\"skip_special_tokens\":{\"type\":\"boolean\"},\"model\":{\"type\":\"string\","
               "\"description\":\"name of a loaded model; default: the first one for the task\"}}}",
    .response = "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}",
};

const ses_route ses_route_detokenize = {
    .method = "POST",
    .path = "/detokenize",
    .style = SES_STYLE_PLAIN,
    .handle = detokenize_handle,
    .tag = "llama.cpp",
    .summary = "Text of token ids",
    .request = "{\"type\":\"object\",\"required\":[\"tokens\"],"
               "\"allOf\":[{\"$ref\":\"#/components/schemas/Models-detokenize\"}],"
               "\"properties\":{\"tokens\":{\"type\":\"array\"},\"model\":{\"type\":\"string\","
               "\"description\":\"name of a loaded model; default: the first one for the task\"}}}",
    .response = "{\"type\":\"object\",\"required\":[\"content\"]}",
};
