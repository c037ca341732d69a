/* POST /v1/embeddings: OpenAI's embeddings. Input is a text, a list of texts, or, if the server allows it,
 * token ids. Vectors come as numbers, base64 or bytes, and have length 1 unless "normalize" is false. */
#include "base/str.h"
#include "serve/embed_reply.h"
#include "serve/serve_impl.h"

#include <string.h>

static void done(ses_worker *w, ses_job *j)
{
    ses_json_writer *json = ses_embed_begin(w, j);
    if (!json) return;
    ses_json_begin_object(json);
    ses_json_member_string(json, "object", "list");
    ses_json_member_array(json, "data");
    for (size_t i = 0; i < j->n; i++) {
        ses_json_begin_object(json);
        ses_json_member_string(json, "object", "embedding");
        ses_json_member_uint(json, "index", i);
        ses_json_put_key(json, "embedding");
        ses_embed_put(json, j, i);
        ses_json_end_object(json);
    }
    ses_json_end_array(json);
    ses_json_member_string(json, "model", j->model->name);
    ses_reply_put_usage(json, j, -1);
    ses_json_end_object(json);
    ses_reply_json(w, j, json);
}

/* ---- token ids ---- */

static bool is_ids(const ses_json *v)
{
    int64_t x;
    return ses_json_type_of(v) == SES_JSON_ARRAY && ses_json_len(v) && ses_json_int(ses_json_at(v, 0), &x);
}

static bool reject_ids(ses_job *j, const char *why)
{
    return ses_api_fail(&j->error, SES_API_VALIDATION, "input",
                        "%s: send texts (LangChain: OpenAIEmbeddings(check_embedding_ctx_length=False)), or "
                        "start the server with --tiktoken FILE",
                        why);
}

/* The text of token ids. Encoding it must give the same ids: else they come from another tokenizer. */
static bool decode_ids(ses_worker *w, ses_job *j, const ses_json *v, ses_string *out)
{
    ses_err e = { 0 };
    size_t n = ses_json_len(v), len = 0;
    const ses_tokenizer *t = ses_pipeline_tokenizer(j->pipeline->compute);
    ses_pipeline *p = ses_served_pipeline_encoder(j->pipeline, w->index, &e);
    int32_t *id = ses_job_alloc(j, n, sizeof *id);
    const char *text = NULL;
    if (!id) return false;
    if (!p) return ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    for (size_t i = 0; i < n; i++) {
        int64_t x;
        if (!ses_json_int(ses_json_at(v, i), &x) || x < 0 || x >= ses_tokenizer_vocab_size(t))
            return reject_ids(j, "a token id is not in the model's vocabulary");
        id[i] = (int32_t)x;
    }
    const int32_t *again = NULL;
    size_t n_again = 0;
    if (!ses_decode(p->tokens, id, n, false, &text, &len, &e)) return reject_ids(j, e.msg);
    *out = ses_job_copy(j, text, len);
    if (!out->p) return false;
    if (!ses_encode_ids(p->tokens, out->p, out->n, false, &again, &n_again, &e)) return reject_ids(j, e.msg);
    bool same = n_again == n && !memcmp(again, id, n * sizeof *id);
    return same || reject_ids(j, "the token ids come from another tokenizer than the model's");
}

/* The text of ids of the vocabulary that the server was given. */
static bool decode_tiktoken(ses_job *j, const ses_tiktoken *t, const ses_json *v, ses_string *out)
{
    ses_err e = { 0 };
    ses_buf b = { 0 };
    bool ok =
        ses_tiktoken_decode(t, v, &b, &e) || ses_api_fail_with(&j->error, SES_API_VALIDATION, "input", &e);
    if (ok) *out = ses_job_copy(j, b.data ? b.data : "", b.len);
    ses_buf_free(&b);
    return ok && out->p;
}

static bool read_ids(ses_worker *w, ses_job *j, const ses_json *input, const char *model, ses_string **text,
                     size_t *n)
{
    bool one = is_ids(input);
    const ses_tiktoken *tiktoken = ses_server_tiktoken(w->server);
    if (!tiktoken && !ses_server_get_options(w->server)->token_ids)
        return reject_ids(j, "this server does not accept token ids");
    *n = one ? 1 : ses_json_len(input);
    if (!ses_job_check_count(w, j, *n) || !ses_job_open(w, j, model, ses_task_find("embed"), NULL))
        return false;
    *text = ses_job_alloc(j, *n, sizeof **text);
    for (size_t i = 0; *text && i < *n; i++) {
        const ses_json *v = one ? input : ses_json_at(input, i);
        if (!is_ids(v)) return ses_body_wrong_type(j, "input", v, "a list of token ids");
        if (tiktoken ? !decode_tiktoken(j, tiktoken, v, &(*text)[i]) : !decode_ids(w, j, v, &(*text)[i]))
            return false;
    }
    return *text != NULL;
}

/* ---- the request ---- */

static bool handle(ses_worker *w, ses_job *j)
{
    ses_embed_request *r = ses_job_alloc(j, 1, sizeof *r);
    ses_string *text = NULL;
    size_t n = 0;
    int format = SES_VECTORS_FLOAT;
    if (!r) return false;
    *r = (ses_embed_request){ .normalize = 1, .truncate = true };
    if (!ses_body_string(j, j->body, "model", &r->model) || !ses_embed_read(j, j->body, r) ||
        !ses_body_choice(j, j->body, "encoding_format", "float|base64|bytes", &format))
        return false;
    r->format = ses_embed_wants_bytes(j) ? SES_VECTORS_BYTES : (ses_vector_format)format;
    const ses_json *input = ses_body_get(j->body, "input");
    bool ids = is_ids(input) || is_ids(ses_json_at(input, 0));
    if (ids ? !read_ids(w, j, input, r->model, &text, &n)
            : !ses_body_texts(j, input, "input", &text, &n, false))
        return false;
    return ses_embed_submit(w, j, r, text, n, done);
}

#define EMBEDDINGS(path_)                                                                              \
    {                                                                                                  \
        .method = "POST", .path = path_, .style = SES_STYLE_OPENAI, .inlined = true, .handle = handle, \
        .tag = "OpenAI", .summary = "Embeddings of texts", .request = request_schema,                  \
        .response = response_schema, .content_type = "application/octet-stream"                        \
    }

static const char request_schema[] =
    "{\"type\":\"object\",\"required\":[\"input\"],"
    "\"allOf\":[{\"$ref\":\"#/components/schemas/Models-embed\"}],"
    "\"properties\":{\"input\":{\"$ref\":\"#/components/schemas/Texts\"},"
    "\"encoding_format\":{\"enum\":[\"float\",\"base64\",\"bytes\"]},"
    "\"normalize\":{\"type\":\"boolean\",\"default\":true},"
    "\"truncate\":{\"type\":\"boolean\"},\"truncation_direction\":{\"enum\":[\"Left\","
    "\"Right\",\"left\",\"right\"]},\"prompt_name\":{\"type\":\"string\"},"
    "\"dimensions\":{\"type\":\"integer\",\"minimum\":1},\"model\":{\"type\":\"string\","
    "\"description\":\"name of a loaded model; default: the first one for the task\"}}}";
static const char response_schema[] =
    "{\"type\":\"object\",\"required\":[\"object\",\"data\",\"model\",\"usage\"],\"properties\":{"
    "\"object\":{\"const\":\"list\"},\"data\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
    "\"required\":[\"index\","
    "\"embedding\"],\"properties\":{\"index\":{\"type\":\"integer\"},\"embedding\":{\"oneOf\":[{\"type\":"
    "\"string\"},{\"$ref\":\"#/components/schemas/"
    "Vector\"}]}}}},\"model\":{\"type\":\"string\"},\"usage\":{\"$ref\":\"#/components/schemas/Usage\"}}}";

const ses_route ses_route_openai_embeddings = EMBEDDINGS("/v1/embeddings");
const ses_route ses_route_embeddings = EMBEDDINGS("/embeddings");
