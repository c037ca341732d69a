/* POST /similarity: similarity of a text to others. */
#include "serve/body.h"
#include "serve/route.h"

static void done(ses_worker *w, ses_job *j)
{
    ses_json_writer *json = ses_reply_begin(w, j, false);
    if (!json) return;
    ses_result_write_json(&j->item[0].result, json);
    ses_reply_json(w, j, json);
}

static bool handle(ses_worker *w, ses_job *j)
{
    const char *model = NULL;
    const ses_json *inputs = ses_body_get(j->body, "inputs"), *parameters = NULL;
    ses_item item = { 0 };
    ses_string *list = NULL;
    bool truncate = true;
    if (!inputs) return ses_body_missing(j, "inputs");
    if (ses_json_type_of(inputs) != SES_JSON_OBJECT)
        return ses_body_wrong_type(j, "inputs", inputs, "an object");
    item.text = ses_body_text(ses_body_get(inputs, "source_sentence"));
    if (!item.text.p)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "inputs", "\"source_sentence\" must be a string");
    if (!item.text.n) return ses_api_fail(&j->error, SES_API_EMPTY, "inputs", "\"source_sentence\" is empty");
    if (!ses_body_string(j, j->body, "model", &model) ||
        !ses_body_object(j, j->body, "parameters", &parameters) ||
        !ses_body_bool(j, parameters, "truncate", &truncate) ||
        !ses_body_texts(j, ses_body_get(inputs, "sentences"), "sentences", &list, &item.n_list, false) ||
        !ses_job_open(w, j, model, ses_task_find("similarity"), NULL))
        return false;
    item.list = list;
    return ses_job_add(w, j, &item) && ses_job_check_items(j) && (truncate || ses_job_check_truncation(j)) &&
           ses_job_submit(w, j, done);
}

const ses_route ses_route_similarity = {
    .method = "POST",
    .path = "/similarity",
    .style = SES_STYLE_TEI,
    .inlined = true,
    .handle = handle,
    .tag = "TEI",
    .summary = "Similarity of a text to others",
    .request = "{\"type\":\"object\",\"required\":[\"inputs\"],"
               "\"allOf\":[{\"$ref\":\"#/components/schemas/Models-similarity\"}],"
               "\"properties\":{\"inputs\":{\"type\":\"object\",\"required\":[\"source_sentence\","
               "\"sentences\"],\"properties\":{\"source_sentence\":{\"type\":\"string\","
               "\"minLength\":1},\"sentences\":{\"$ref\":\"#/components/schemas/Texts\"}}},"
               "\"parameters\":{\"type\":\"object\","
               "\"properties\":{\"truncate\":{\"type\":[\"boolean\",\"null\"]}}},"
               "\"model\":{\"type\":\"string\","
               "\"description\":\"name of a loaded model; default: the first one for the task\"}}}",
    .response = "{\"type\":\"array\",\"items\":{\"type\":\"number\"}}",
};
