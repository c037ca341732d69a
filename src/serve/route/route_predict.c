/* POST /predict: classification in the shape of text-embeddings-inference. POST /classify: in that of
 * vLLM. */
#include "base/alloc.h"
#include "serve/body.h"
#include "serve/route.h"

#include <string.h>

/* ---- /predict ---- */

static void put_labels(ses_json_writer *json, const ses_result *r)
{
    ses_json_begin_array(json);
    for (size_t i = 0; i < r->n; i++) {
        ses_json_begin_object(json);
        ses_json_put_key(json, "score");
        ses_json_put_float(json, (float)r->row[i].score);
        ses_json_member_stringn(json, "label", r->row[i].label.p, r->row[i].label.n);
        ses_json_end_object(json);
    }
    ses_json_end_array(json);
}

static void predict_done(ses_worker *w, ses_job *j)
{
    const bool *batch = j->state;
    ses_json_writer *json = ses_reply_begin(w, j, false);
    if (!json) return;
    if (*batch) ses_json_begin_array(json);
    for (size_t i = 0; i < j->n; i++) put_labels(json, &j->item[i].result);
    if (*batch) ses_json_end_array(json);
    ses_reply_json(w, j, json);
}

/* A text, or a list of one text or two. */
static bool read_input(ses_job *j, const ses_json *v, ses_item *item)
{
    size_t n = ses_json_len(v);
    bool list = ses_json_type_of(v) == SES_JSON_ARRAY;
    item->text = ses_body_text(list ? ses_json_at(v, 0) : v);
    if (list && n == 2) item->pair = ses_body_text(ses_json_at(v, 1));
    if (item->text.p && !item->text.n && !item->pair.n) /* one text of a pair may be empty */
        return ses_api_fail(&j->error, SES_API_EMPTY, "inputs", "an input is empty");
    bool ok = item->text.p && (!list || n == 1 || (n == 2 && item->pair.p));
    return ok || ses_api_fail(&j->error, SES_API_VALIDATION, "inputs",
                              "an input must be a text, a list of one text, or a pair of texts");
}

static bool predict_handle(ses_worker *w, ses_job *j)
{
    const char *model = NULL;
    bool raw = false, truncate = true, *batch = ses_job_alloc(j, 1, sizeof *batch);
    const ses_task_entry *task = ses_task_find("text-classification");
    const ses_json *inputs = ses_body_get(j->body, "inputs");
    ses_body_settings s;
    if (!inputs) return ses_body_missing(j, "inputs");
    if (!batch || !ses_body_string(j, j->body, "model", &model) ||
        !ses_body_bool(j, j->body, "raw_scores", &raw) || !ses_body_bool(j, j->body, "truncate", &truncate) ||
        !ses_settings_begin(j, &s, 2) || !ses_job_open(w, j, model, task, NULL))
        return false;
    ses_settings_add(&s, task->task, "top_k", "all");
    if (raw) ses_settings_add(&s, task->task, "function_to_apply", "none");
    *batch = ses_json_type_of(inputs) == SES_JSON_ARRAY &&
             ses_json_type_of(ses_json_at(inputs, 0)) == SES_JSON_ARRAY;
    size_t n = *batch ? ses_json_len(inputs) : 1;
    if (ses_json_type_of(inputs) == SES_JSON_ARRAY && !ses_json_len(inputs))
        return ses_api_fail(&j->error, SES_API_EMPTY, "inputs", "\"inputs\" is empty");
    for (size_t i = 0; i < n; i++) {
        ses_item item = { .settings = s.item };
        if (!read_input(j, *batch ? ses_json_at(inputs, i) : inputs, &item) || !ses_job_add(w, j, &item))
            return false;
    }
    j->state = batch;
    return ses_job_check_items(j) && (truncate || ses_job_check_truncation(j)) &&
           ses_job_submit(w, j, predict_done);
}

/* ---- /classify ---- */

static void put_class(ses_job *j, ses_json_writer *json, size_t i)
{
    const ses_job_item *x = &j->item[i];
    const ses_result *r = &x->result;
    const ses_err *why = ses_job_item_error(x);
    ses_json_begin_object(json);
    ses_json_member_uint(json, "index", i);
    if (why) {
        ses_json_member_string(json, "error", why->msg);
    } else {
        float *probs = ses_job_alloc(j, r->n, sizeof *probs);
        for (size_t k = 0; probs && k < r->n; k++) probs[r->row[k].index] = (float)r->row[k].score;
        ses_json_member_stringn(json, "label", r->row[0].label.p, r->row[0].label.n);
        ses_json_member_array(json, "probs");
        for (size_t k = 0; probs && k < r->n; k++) ses_json_put_float(json, probs[k]);
        ses_json_end_array(json);
        ses_json_member_uint(json, "num_classes", r->n);
    }
    ses_json_end_object(json);
}

static void classify_done(ses_worker *w, ses_job *j)
{
    ses_json_writer *json = ses_reply_begin(w, j, j->n > 1);
    if (!json) return;
    ses_json_begin_object(json);
    ses_json_member_string(json, "object", "list");
    ses_json_member_string(json, "model", j->model->name);
    ses_json_member_array(json, "data");
    for (size_t i = 0; i < j->n; i++) put_class(j, json, i);
    ses_json_end_array(json);
    ses_reply_put_usage(json, j, -1);
    ses_json_end_object(json);
    ses_reply_json(w, j, json);
}

static bool classify_handle(ses_worker *w, ses_job *j)
{
    const char *model = NULL;
    const ses_task_entry *task = ses_task_find("text-classification");
    ses_string *text = NULL;
    size_t n = 0;
    static const ses_setting all[] = { { "top_k", "all" }, { 0 } };
    if (!ses_body_string(j, j->body, "model", &model) ||
        !ses_body_texts(j, ses_body_get(j->body, "input"), "input", &text, &n, false) ||
        !ses_job_open(w, j, model, task, NULL))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!ses_job_add(w, j, &(ses_item){ .text = text[i], .settings = all })) return false;
    return (n > 1 || ses_job_check_items(j)) && ses_job_submit(w, j, classify_done);
}

const ses_route ses_route_predict = {
    .method = "POST",
    .path = "/predict",
    .style = SES_STYLE_TEI,
    .inlined = true,
    .handle = predict_handle,
    .tag = "TEI",
    .summary = "Labels with scores: inputs is a text, a pair [a, b], or a list of [a] and [a, b]",
    .request = "{\"type\":\"object\",\"required\":[\"inputs\"],"
               "\"allOf\":[{\"$ref\":\"#/components/schemas/Models-classify\"}],"
               "\"properties\":{\"inputs\":{\"$ref\":\"#/components/schemas/Pairs\"},"
               "\"raw_scores\":{\"type\":\"boolean\"},\"truncate\":{\"type\":\"boolean\"},"
               "\"model\":{\"type\":\"string\","
               "\"description\":\"name of a loaded model; default: the first one for the task\"}}}",
    .response = "{\"type\":\"array\",\"items\":{\"anyOf\":[{\"$ref\":\"#/components/schemas/"
                "Label\"},{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/Label\"}}]}}",
};

const ses_route ses_route_classify = {
    .method = "POST",
    .path = "/classify",
    .style = SES_STYLE_OPENAI,
    .inlined = true,
    .handle = classify_handle,
    .tag = "Classification and ranking",
    .summary = "The best label and the probabilities of all, for each text",
    .request = "{\"type\":\"object\",\"required\":[\"input\"],"
               "\"allOf\":[{\"$ref\":\"#/components/schemas/Models-classify\"}],"
               "\"properties\":{\"input\":{\"$ref\":\"#/components/schemas/Texts\"},"
               "\"model\":{\"type\":\"string\","
               "\"description\":\"name of a loaded model; default: the first one for the task\"}}}",
    .response = "{\"type\":\"object\",\"required\":[\"data\"],\"properties\":{\"data\":{\"type\":\"array\","
                "\"items\":{\"type\":\"object\",\"required\":[\"index\",\"label\",\"probs\",\"num_classes\"]}"
                "},\"usage\":{\"$ref\":\"#/components/schemas/Usage\"}}}",
};
