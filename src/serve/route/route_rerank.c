/* POST /rerank, /v1/rerank, /v2/rerank: ranks texts by relevance to a query. With "texts" the response has
 * the shape of text-embeddings-inference, with "documents" that of Cohere and Jina. If no cross-encoder is
 * loaded, the scores are cosines of embeddings, and the response has a warning. POST /score: scores of
 * pairs. */
#include "base/str.h"
#include "serve/embed_reply.h"
#include "serve/route.h"
#include "serve/serve_impl.h"

#include <stdio.h>
#include <stdlib.h>

#include <string.h>

typedef struct state {
    bool cohere, return_text, truncate;
    const char *warning; /* NULL: a cross-encoder scores */
    size_t top_n;
    int64_t max_tokens; /* max_tokens_per_doc; 0: not given */
    ses_string *text;
} state;

/* ---- responses ---- */

static void put_text(ses_json_writer *json, const state *s, int64_t i)
{
    ses_json_member_stringn(json, "text", s->text[i].p, s->text[i].n);
}

static void put_tei(ses_json_writer *json, const state *s, const ses_result *r)
{
    ses_json_begin_array(json);
    for (size_t i = 0; i < r->n && i < s->top_n; i++) {
        ses_json_begin_object(json);
        ses_json_member_int(json, "index", r->row[i].index);
        if (s->return_text) put_text(json, s, r->row[i].index);
        ses_json_put_key(json, "score");
        ses_json_put_float(json, (float)r->row[i].score);
        ses_json_end_object(json);
    }
    ses_json_end_array(json);
}

static void put_cohere(ses_json_writer *json, const ses_job *j, const state *s, const ses_result *r)
{
    ses_json_begin_object(json);
    ses_reply_put_id(json, j, "rerank");
    ses_json_member_string(json, "model", j->model->name);
    ses_json_member_array(json, "results");
    for (size_t i = 0; i < r->n && i < s->top_n; i++) {
        ses_json_begin_object(json);
        ses_json_member_int(json, "index", r->row[i].index);
        ses_json_put_key(json, "relevance_score");
        ses_json_put_float(json, (float)r->row[i].score);
        if (s->return_text) {
            ses_json_member_object(json, "document");
            put_text(json, s, r->row[i].index);
            ses_json_end_object(json);
        }
        ses_json_end_object(json);
    }
    ses_json_end_array(json);
    ses_reply_put_usage(json, j, -1);
    ses_reply_put_meta(json, j, 0, s->warning);
    ses_json_end_object(json);
}

static int compare_rows(const void *a, const void *b)
{
    const ses_result_row *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score ? 1 : -1)
                                : (x->index > y->index) - (x->index < y->index);
}

/* Similarities are in the order of the texts. */
static void sort_rows(ses_job *j, ses_result *r)
{
    ses_result_row *row = ses_job_alloc(j, r->n, sizeof *row);
    if (!row) return;
    memcpy(row, r->row, r->n * sizeof *row);
    qsort(row, r->n, sizeof *row, compare_rows);
    r->row = row;
}

static void rerank_done(ses_worker *w, ses_job *j)
{
    const state *s = j->state;
    ses_json_writer *json = ses_reply_begin(w, j, false);
    if (!json) return;
    if (s->warning) {
        sort_rows(j, &j->item[0].result);
        ses_http_add_header(j->x, "x-warning", s->warning);
    }
    if (s->cohere)
        put_cohere(json, j, s, &j->item[0].result);
    else
        put_tei(json, s, &j->item[0].result);
    ses_reply_json(w, j, json);
}

/* ---- requests ---- */

/* Cohere's documents are texts or objects with a "text". */
static bool read_documents(ses_job *j, const ses_json *v, ses_string **list, size_t *n)
{
    *n = ses_json_len(v);
    if (ses_json_type_of(v) != SES_JSON_ARRAY) return ses_body_wrong_type(j, "documents", v, "a list");
    if (!*n) return ses_api_fail(&j->error, SES_API_EMPTY, "documents", "\"documents\" is empty");
    *list = ses_job_alloc(j, *n, sizeof **list);
    for (size_t i = 0; *list && i < *n; i++) {
        const ses_json *x = ses_json_at(v, i);
        (*list)[i] = ses_body_text(ses_json_type_of(x) == SES_JSON_OBJECT ? ses_json_get(x, "text") : x);
        if (!(*list)[i].p)
            return ses_api_fail(&j->error, SES_API_VALIDATION, "documents",
                                "document %zu must be a text or an object with a \"text\"", i);
    }
    return *list != NULL;
}

/* The response has the documents as they were sent. */
static bool shorten_documents(ses_worker *w, ses_job *j, const state *s, ses_item *item)
{
    ses_err e = { 0 };
    ses_pipeline *p = ses_served_pipeline_encoder(j->pipeline, w->index, &e);
    if (!p) return ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    ses_string *text = ses_job_alloc(j, item->n_list, sizeof *text);
    for (size_t i = 0; text && i < item->n_list; i++) {
        text[i] = s->text[i];
        if (!ses_text_shorten(j, p, &text[i], (size_t)s->max_tokens)) return false;
    }
    item->list = text;
    return text != NULL;
}

/* Reads all but query and documents. */
static bool read_options(ses_job *j, state *s, const char **model, bool *raw)
{
    int64_t top_n = INT32_MAX;
    bool return_documents = false, return_text = false;
    if (!ses_body_string(j, j->body, "model", model) || !ses_body_bool(j, j->body, "raw_scores", raw) ||
        !ses_body_bool(j, j->body, "truncate", &s->truncate) ||
        !ses_body_bool(j, j->body, "return_documents", &return_documents) ||
        !ses_body_bool(j, j->body, "return_text", &return_text) ||
        !ses_body_int(j, j->body, "top_n", 1, INT32_MAX, &top_n) ||
        !ses_body_int(j, j->body, "max_tokens_per_doc", 1, INT32_MAX, &s->max_tokens))
        return false;
    s->return_text = s->cohere ? return_documents : return_text;
    s->top_n = (size_t)top_n;
    return true;
}

/* A cross-encoder, else an embedder, whose vectors are compared. */
static bool open_ranker(ses_worker *w, ses_job *j, const char *model, state *s)
{
    const ses_task_entry *rerank = ses_task_find("rerank"), *embed = ses_task_find("embed");
    ses_served_model *cross = ses_registry_find(ses_server_registry(w->server), NULL, rerank);
    ses_served_model_release(cross);
    if (!ses_job_find_model(w, j, model, cross ? rerank : embed)) return false;
    if (ses_served_model_supports(j->model, rerank) || j->model->own_task->task != embed->task)
        return ses_job_open(w, j, model, rerank, NULL);
    ses_buf b = { 0 };
    ses_buf_appendf(&b, "%s is not a cross-encoder: scores are cosines of embeddings", j->model->name);
    s->warning = ses_job_copy(j, b.data ? b.data : "", b.len).p;
    ses_buf_free(&b);
    return s->warning && ses_job_open(w, j, model, ses_task_find("similarity"), NULL);
}

static bool handle(ses_worker *w, ses_job *j)
{
    state *s = ses_job_alloc(j, 1, sizeof *s);
    const char *model = NULL;
    bool raw = false;
    ses_item item = { 0 };
    if (!s) return false;
    const char *key;
    if (!ses_body_either(j, "texts", "documents", &key)) return false;
    const ses_json *query = ses_body_get(j->body, "query"), *documents = ses_body_get(j->body, "documents");
    s->cohere = documents != NULL, s->truncate = true;
    if (!query) return ses_body_missing(j, "query");
    item.text = ses_body_text(query);
    if (!item.text.p) return ses_body_wrong_type(j, "query", query, "a string");
    if (!item.text.n) return ses_api_fail(&j->error, SES_API_EMPTY, "query", "\"query\" is empty");
    if (!read_options(j, s, &model, &raw)) return false;
    if (s->cohere ? !read_documents(j, documents, &s->text, &item.n_list)
                  : !ses_body_texts(j, ses_body_get(j->body, "texts"), "texts", &s->text, &item.n_list, true))
        return false;
    item.list = s->text;
    j->state = s;
    static const ses_setting raw_scores[] = { { "raw_scores", "true" }, { 0 } },
                             cosine[] = { { "similarity_fn_name", "cosine" }, { 0 } };
    if (!open_ranker(w, j, model, s)) return false;
    item.settings = s->warning ? cosine : raw ? raw_scores : NULL;
    return (!s->max_tokens || shorten_documents(w, j, s, &item)) && ses_job_add(w, j, &item) &&
           ses_job_check_items(j) && (s->truncate || ses_job_check_truncation(j)) &&
           ses_job_submit(w, j, rerank_done);
}

/* ---- /score ---- */

/* Scores in the order of the documents: of one item with all of them, or of an item for each. */
static float *collect_scores(ses_job *j, size_t *n)
{
    *n = j->n > 1 ? j->n : j->item[0].result.n;
    float *score = ses_job_alloc(j, *n, sizeof *score);
    for (size_t i = 0; score && i < *n; i++) {
        const ses_result_row *row = &j->item[j->n > 1 ? i : 0].result.row[j->n > 1 ? 0 : i];
        score[j->n > 1 ? i : (size_t)row->index] = (float)row->score;
    }
    return score;
}

static void score_done(ses_worker *w, ses_job *j)
{
    size_t n = 0;
    ses_json_writer *json = ses_reply_begin(w, j, false);
    if (!json) return;
    const float *score = collect_scores(j, &n);
    if (!score) {
        ses_json_writer_free(json);
        ses_reply_error(w, j);
        return;
    }
    ses_json_begin_object(json);
    ses_json_member_string(json, "object", "list");
    ses_json_member_string(json, "model", j->model->name);
    ses_json_member_array(json, "data");
    for (size_t i = 0; i < n; i++) {
        ses_json_begin_object(json);
        ses_json_member_uint(json, "index", i);
        ses_json_member_string(json, "object", "score");
        ses_json_put_key(json, "score");
        ses_json_put_float(json, score[i]);
        ses_json_end_object(json);
    }
    ses_json_end_array(json);
    ses_reply_put_usage(json, j, -1);
    ses_json_end_object(json);
    ses_reply_json(w, j, json);
}

/* A cross-encoder if the model is one, else the similarity of embeddings. */
static bool open_scorer(ses_worker *w, ses_job *j, const char *model)
{
    const ses_task_entry *rerank = ses_task_find("rerank"), *similarity = ses_task_find("similarity");
    if (!ses_job_find_model(w, j, model, rerank)) {
        if (model && *model) return false;
        j->error = (ses_api_error){ 0 };
        if (!ses_job_find_model(w, j, NULL, similarity)) return false;
    }
    return ses_job_open(w, j, model, ses_served_model_supports(j->model, rerank) ? rerank : similarity, NULL);
}

static bool score_handle(ses_worker *w, ses_job *j)
{
    const char *model = NULL, *left, *right;
    ses_string *query = NULL, *document = NULL;
    size_t n_queries = 0, n = 0;
    if (!ses_body_string(j, j->body, "model", &model) || !ses_body_either(j, "queries", "text_1", &left) ||
        !ses_body_either(j, "documents", "text_2", &right))
        return false;
    if (*left == 't' || *right == 't') left = "text_1", right = "text_2";
    if (!ses_body_texts(j, ses_body_get(j->body, left), left, &query, &n_queries, false) ||
        !ses_body_texts(j, ses_body_get(j->body, right), right, &document, &n, true))
        return false;
    if (n_queries != 1 && n_queries != n)
        return ses_api_fail(&j->error, SES_API_VALIDATION, left,
                            "\"%s\" must have one text or as many as \"%s\" (%zu), not %zu", left, right, n,
                            n_queries);
    if (!open_scorer(w, j, model)) return false;
    for (size_t i = 0; i < n_queries; i++) { /* one query is an item with all documents: it is encoded once */
        ses_item item = { .text = query[i], .list = &document[i], .n_list = n_queries == 1 ? n : 1 };
        if (!ses_job_add(w, j, &item)) return false;
    }
    return ses_job_check_items(j) && ses_job_submit(w, j, score_done);
}

static const char request_schema[] =
    "{\"type\":\"object\",\"required\":[\"query\"],"
    "\"allOf\":[{\"$ref\":\"#/components/schemas/Models-rerank\"}],"
    "\"anyOf\":[{\"required\":[\"texts\"],"
    "\"properties\":{\"texts\":{\"$ref\":\"#/components/schemas/AnyTexts\"},"
    "\"documents\":{\"type\":\"null\"}}},{\"required\":[\"documents\"],"
    "\"properties\":{\"documents\":{\"$ref\":\"#/components/schemas/Documents\"},"
    "\"texts\":{\"type\":\"null\"}}}],\"properties\":{\"query\":{\"type\":\"string\","
    "\"minLength\":1},\"texts\":{\"$ref\":\"#/components/schemas/AnyTexts\"},"
    "\"documents\":{\"$ref\":\"#/components/schemas/Documents\"},"
    "\"top_n\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":2147483647},"
    "\"max_tokens_per_doc\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":2147483647},"
    "\"truncate\":{\"type\":\"boolean\"},\"raw_scores\":{\"type\":\"boolean\"},"
    "\"return_text\":{\"type\":\"boolean\"},\"return_documents\":{\"type\":\"boolean\"},"
    "\"model\":{\"type\":\"string\","
    "\"description\":\"name of a loaded model; default: the first one for the task\"}}}";

static const char rerank_response[] = "{\"anyOf\":[{\"type\":\"array\",\"items\":{\"type\":\"object\","
                                      "\"required\":[\"index\",\"score\"]}},{\"type\":"
                                      "\"object\",\"required\":[\"results\",\"model\"],\"properties\":{"
                                      "\"results\":{\"type\":\"array\",\"items\":{"
                                      "\"type\":\"object\",\"required\":[\"index\",\"relevance_score\"]}},"
                                      "\"usage\":{\"$ref\":\"#/components/schemas/Usage\"}}}]}";

#define RERANK(path_, style_, tag_)                                                                       \
    {                                                                                                     \
        .method = "POST", .path = path_, .style = style_, .inlined = true, .handle = handle, .tag = tag_, \
        .summary = "Ranks texts by relevance to a query", .request = request_schema,                      \
        .response = rerank_response                                                                       \
    }

const ses_route ses_route_rerank = RERANK("/rerank", SES_STYLE_TEI, "TEI");
const ses_route ses_route_rerank_v1 = RERANK("/v1/rerank", SES_STYLE_COHERE, "Cohere");
const ses_route ses_route_rerank_v2 = RERANK("/v2/rerank", SES_STYLE_COHERE, "Cohere");

static const char score_schema[] =
    "{\"type\":\"object\",\"allOf\":[{\"$ref\":\"#/components/schemas/Models-score\"},"
    "{\"$ref\":\"#/components/schemas/Scored\"}],"
    "\"properties\":{\"queries\":{\"$ref\":\"#/components/schemas/Texts\"},"
    "\"documents\":{\"$ref\":\"#/components/schemas/AnyTexts\"},"
    "\"text_1\":{\"$ref\":\"#/components/schemas/Texts\"},"
    "\"text_2\":{\"$ref\":\"#/components/schemas/AnyTexts\"},"
    "\"model\":{\"type\":\"string\","
    "\"description\":\"name of a loaded model; default: the first one for the task\"}}}";

#define SCORE(path_)                                                                                         \
    {                                                                                                        \
        .method = "POST", .path = path_, .style = SES_STYLE_OPENAI, .inlined = true, .handle = score_handle, \
        .tag = "Classification and ranking", .summary = "Scores of pairs of texts", .request = score_schema, \
        .response = "{\"type\":\"object\",\"required\":[\"data\"]}"                                          \
    }

const ses_route ses_route_score = SCORE("/score");
const ses_route ses_route_score_v1 = SCORE("/v1/score");
