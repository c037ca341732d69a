/* POST /v1/moderations: moderation by a classifier. A multi-label model flags a text with a label above 0.5,
 * another model a text whose best label is not its harmless one: "safe", "non-toxic" and others. */
#include "base/str.h"
#include "serve/body.h"
#include "serve/route.h"

#include <string.h>

/* ---- response ---- */

/* A member for each label. flags: whether it applies, else its score. */
static void put_labels(ses_json_writer *json, const ses_job *j, const ses_result *r, bool flags)
{
    bool multi = ses_served_model_has_many_labels(j->model);
    for (size_t k = 0; k < r->n; k++) {
        const ses_result_row *x = &r->row[k];
        if (!multi && ses_label_is_harmless(x->label)) continue;
        ses_json_put_keyn(json, x->label.p, x->label.n);
        if (flags)
            ses_json_put_bool(json, multi ? x->score > 0.5 : !k);
        else
            ses_json_put_float(json, (float)x->score);
    }
}

static bool is_flagged(const ses_job *j, const ses_result *r)
{
    if (!r->n) return false;
    return ses_served_model_has_many_labels(j->model) ? r->row[0].score > 0.5
                                                      : !ses_label_is_harmless(r->row[0].label);
}

static void put_types(ses_json_writer *json, const ses_job *j, const ses_result *r)
{
    bool multi = ses_served_model_has_many_labels(j->model);
    for (size_t k = 0; k < r->n; k++) {
        if (!multi && ses_label_is_harmless(r->row[k].label)) continue;
        ses_json_put_keyn(json, r->row[k].label.p, r->row[k].label.n);
        ses_json_begin_array(json);
        ses_json_put_string(json, "text");
        ses_json_end_array(json);
    }
}

static void done(ses_worker *w, ses_job *j)
{
    ses_json_writer *json = ses_reply_begin(w, j, false);
    if (!json) return;
    ses_json_begin_object(json);
    ses_reply_put_id(json, j, "modr");
    ses_json_member_string(json, "model", j->model->name);
    ses_json_member_array(json, "results");
    for (size_t i = 0; i < j->n; i++) {
        const ses_result *r = &j->item[i].result;
        ses_json_begin_object(json);
        ses_json_member_bool(json, "flagged", is_flagged(j, r));
        ses_json_member_object(json, "categories");
        put_labels(json, j, r, true);
        ses_json_end_object(json);
        ses_json_member_object(json, "category_scores");
        put_labels(json, j, r, false);
        ses_json_end_object(json);
        ses_json_member_object(json, "category_applied_input_types");
        put_types(json, j, r);
        ses_json_end_object(json);
        ses_json_end_object(json);
    }
    ses_json_end_array(json);
    ses_json_end_object(json);
    ses_reply_json(w, j, json);
}

/* ---- request ---- */

/* The first model that can moderate. */
static bool find_model(ses_worker *w, ses_job *j, const char *name)
{
    if (name && *name) return ses_job_find_model(w, j, name, NULL);
    if (!ses_job_find_first(w, j, ses_served_model_moderates)) return false;
    return j->model ||
           ses_api_fail(&j->error, SES_API_NOT_FOUND, "model",
                        "no loaded model can moderate: load a multi-label classifier, or one with a "
                        "label such as \"safe\" or \"non-toxic\"");
}

/* A text, or texts; OpenAI's clients also send {"type": "text", "text": ...}. */
static bool read_input(ses_job *j, ses_string **text, size_t *n)
{
    const ses_json *v = ses_body_get(j->body, "input"), *first = ses_json_at(v, 0);
    bool parts = ses_json_type_of(v) == SES_JSON_ARRAY && ses_json_type_of(first) == SES_JSON_OBJECT;
    if (!parts) return ses_body_texts(j, v, "input", text, n, false);
    *n = ses_json_len(v);
    *text = ses_job_alloc(j, *n, sizeof **text);
    for (size_t i = 0; *text && i < *n; i++) {
        ses_string kind = ses_body_text(ses_json_get(ses_json_at(v, i), "type"));
        (*text)[i] = ses_body_text(ses_json_get(ses_json_at(v, i), "text"));
        if (!kind.p || !ses_equal(kind.p, kind.n, "text") || !(*text)[i].n)
            return ses_api_fail(
                &j->error, SES_API_VALIDATION, "input",
                "\"input\": element %zu must be {\"type\": \"text\", \"text\": ...} with a text that "
                "is not empty",
                i);
    }
    return *text != NULL;
}

static bool handle(ses_worker *w, ses_job *j)
{
    static const ses_setting all[] = { { "top_k", "all" }, { 0 } };
    const char *model = NULL;
    ses_string *text = NULL;
    size_t n = 0;
    if (!ses_body_string(j, j->body, "model", &model) || !read_input(j, &text, &n) ||
        !find_model(w, j, model))
        return false;
    if (!ses_served_model_moderates(j->model))
        return ses_api_fail(
            &j->error, SES_API_VALIDATION, "model",
            "%s cannot moderate: it needs several labels per text, or a label such as \"safe\" or "
            "\"non-toxic\"",
            j->model->name);
    if (!ses_job_open(w, j, model, ses_task_find("text-classification"), NULL)) return false;
    for (size_t i = 0; i < n; i++)
        if (!ses_job_add(w, j, &(ses_item){ .text = text[i], .settings = all })) return false;
    return ses_job_check_items(j) && ses_job_submit(w, j, done);
}

const ses_route ses_route_openai_moderations = {
    .method = "POST",
    .path = "/v1/moderations",
    .style = SES_STYLE_OPENAI,
    .handle = handle,
    .tag = "OpenAI",
    .summary = "Flags harmful texts, by a classifier",
    .request = "{\"type\":\"object\",\"required\":[\"input\"],"
               "\"allOf\":[{\"$ref\":\"#/components/schemas/Models-moderate\"}],"
               "\"properties\":{\"input\":{\"anyOf\":[{\"$ref\":\"#/components/schemas/Texts\"},"
               "{\"$ref\":\"#/components/schemas/TextParts\"}]},\"model\":{\"type\":\"string\","
               "\"description\":\"name of a loaded model; default: the first one that can moderate\"}}}",
    .response =
        "{\"type\":\"object\",\"required\":[\"id\",\"model\",\"results\"],\"properties\":{\"results\":{"
        "\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"flagged\",\"categories\","
        "\"category_scores\"]}}}}",
};
