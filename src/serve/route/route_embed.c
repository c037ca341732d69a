/* POST /embed, /embed_all, /embed_sparse: the embedding routes of text-embeddings-inference. */
#include "serve/embed_reply.h"

/* ---- /embed ---- */

static void embed_done(ses_worker *w, ses_job *j)
{
    ses_json_writer *json = ses_embed_begin(w, j);
    if (!json) return;
    ses_json_begin_array(json);
    for (size_t i = 0; i < j->n; i++) ses_embed_put(json, j, i);
    ses_json_end_array(json);
    ses_reply_json(w, j, json);
}

static bool embed_handle(ses_worker *w, ses_job *j)
{
    ses_embed_request *r = ses_job_alloc(j, 1, sizeof *r);
    ses_string *text = NULL;
    size_t n = 0;
    if (!r) return false;
    *r = (ses_embed_request){ .truncate = true, .normalize = 1 };
    if (!ses_body_string(j, j->body, "model", &r->model) || !ses_embed_read(j, j->body, r) ||
        !ses_body_texts(j, ses_body_get(j->body, "inputs"), "inputs", &text, &n, false))
        return false;
    if (ses_embed_wants_bytes(j)) r->format = SES_VECTORS_BYTES;
    return ses_embed_submit(w, j, r, text, n, embed_done);
}

/* ---- /embed_all: vectors of all tokens; /embed_sparse: weights of vocabulary tokens ---- */

static void put_tokens(ses_json_writer *json, const ses_result *x)
{
    ses_json_begin_array(json);
    for (int64_t i = 0; i < x->n_vectors; i++)
        ses_embed_put_vector(json, x->vectors + i * x->vector_size, x->vector_size, SES_VECTORS_FLOAT);
    ses_json_end_array(json);
}

static void put_weights(ses_json_writer *json, const ses_result *x)
{
    ses_json_begin_array(json);
    for (size_t i = 0; i < x->n; i++) {
        ses_json_begin_object(json);
        ses_json_member_int(json, "index", x->row[i].token);
        ses_json_put_key(json, "value");
        ses_json_put_float(json, (float)x->row[i].score);
        ses_json_end_object(json);
    }
    ses_json_end_array(json);
}

static void reply_each(ses_worker *w, ses_job *j, void (*put)(ses_json_writer *json, const ses_result *x))
{
    ses_json_writer *json = ses_reply_begin(w, j, false);
    if (!json) return;
    ses_json_begin_array(json);
    for (size_t i = 0; i < j->n; i++) put(json, &j->item[i].result);
    ses_json_end_array(json);
    ses_reply_json(w, j, json);
}

static void tokens_done(ses_worker *w, ses_job *j) { reply_each(w, j, put_tokens); }
static void sparse_done(ses_worker *w, ses_job *j) { reply_each(w, j, put_weights); }

static bool handle_task(ses_worker *w, ses_job *j, const char *task, ses_job_fn *done)
{
    const char *model = NULL;
    ses_string *text = NULL;
    size_t n = 0;
    bool truncate = true;
    if (!ses_body_string(j, j->body, "model", &model) || !ses_body_bool(j, j->body, "truncate", &truncate) ||
        !ses_body_texts(j, ses_body_get(j->body, "inputs"), "inputs", &text, &n, false) ||
        !ses_job_open(w, j, model, ses_task_find(task), NULL))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!ses_job_add(w, j, &(ses_item){ .text = text[i] })) return false;
    if (!truncate && j->truncated)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "truncate",
                            "the inputs are %lld tokens too long; set \"truncate\" to true",
                            (long long)j->truncated);
    return ses_job_check_items(j) && ses_job_submit(w, j, done);
}

static bool all_handle(ses_worker *w, ses_job *j)
{
    return handle_task(w, j, "feature-extraction", tokens_done);
}
static bool sparse_handle(ses_worker *w, ses_job *j)
{
    return handle_task(w, j, "sparse-embed", sparse_done);
}

const ses_route ses_route_embed = {
    .method = "POST",
    .path = "/embed",
    .style = SES_STYLE_TEI,
    .inlined = true,
    .handle = embed_handle,
    .tag = "TEI",
    .summary = "Embeddings of texts, as lists of numbers",
    .request = "{\"type\":\"object\",\"required\":[\"inputs\"],"
               "\"allOf\":[{\"$ref\":\"#/components/schemas/Models-embed\"}],"
               "\"properties\":{\"inputs\":{\"$ref\":\"#/components/schemas/Texts\"},"
               "\"normalize\":{\"type\":\"boolean\",\"default\":true},"
               "\"truncate\":{\"type\":\"boolean\"},\"truncation_direction\":{\"enum\":[\"Left\","
               "\"Right\",\"left\",\"right\"]},\"prompt_name\":{\"type\":\"string\"},"
               "\"dimensions\":{\"type\":\"integer\",\"minimum\":1},\"model\":{\"type\":\"string\","
               "\"description\":\"name of a loaded model; default: the first one for the task\"}}}",
    .response = "{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/Vector\"}}",
    .content_type = "application/octet-stream",
};

const ses_route ses_route_embed_all = {
    .method = "POST",
    .path = "/embed_all",
    .style = SES_STYLE_TEI,
    .inlined = true,
    .handle = all_handle,
    .tag = "TEI",
    .summary = "Vectors of all tokens, without pooling",
    .request = "{\"type\":\"object\",\"required\":[\"inputs\"],"
               "\"allOf\":[{\"$ref\":\"#/components/schemas/Models-tokens\"}],"
               "\"properties\":{\"inputs\":{\"$ref\":\"#/components/schemas/Texts\"},"
               "\"truncate\":{\"type\":\"boolean\"},\"model\":{\"type\":\"string\","
               "\"description\":\"name of a loaded model; default: the first one for the task\"}}}",
    .response = "{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/"
                "schemas/Vector\"}}}",
};

const ses_route ses_route_embed_sparse = {
    .method = "POST",
    .path = "/embed_sparse",
    .style = SES_STYLE_TEI,
    .handle = sparse_handle,
    .tag = "TEI",
    .summary = "Sparse embeddings over the vocabulary (SPLADE), of a masked language model",
    .request = "{\"type\":\"object\",\"required\":[\"inputs\"],"
               "\"allOf\":[{\"$ref\":\"#/components/schemas/Models-sparse\"}],"
               "\"properties\":{\"inputs\":{\"$ref\":\"#/components/schemas/Texts\"},"
               "\"truncate\":{\"type\":\"boolean\"},\"model\":{\"type\":\"string\","
               "\"description\":\"name of a loaded model; default: the first one for the task\"}}}",
    .response = "{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
                "\"required\":[\"index\",\"value\"]}}}",
};
