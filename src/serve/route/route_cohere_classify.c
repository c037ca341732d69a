/* POST /v1/classify: Cohere's classification. With "examples" a logistic regression on their vectors
 * classifies the vectors of the inputs, else a classifier reads the texts. */
#include "base/alloc.h"
#include "base/str.h"
#include "serve/embed_reply.h"
#include "serve/serve_impl.h"
#include "sesame/unstable/logreg.h"

#include <stdio.h>
#include <string.h>

typedef struct state {
    ses_embed_request embed; /* first: ses_embed_vector reads it */
    ses_string *text;        /* [n_inputs] */
    size_t n_inputs, n_labels;
    ses_string *label; /* [n_labels] of the examples */
    int32_t *class;    /* [examples] */
} state;

/* A label and its probability, best first. */
typedef struct score {
    ses_string label;
    double p;
} score;

/* ---- response ---- */

static void put_item(ses_json_writer *json, const ses_job *j, size_t i, const score *s, size_t n)
{
    const state *x = j->state;
    bool multi = ses_served_model_has_many_labels(j->model) && !x->n_labels;
    char id[32];
    snprintf(id, sizeof id, "%zu", i);
    ses_json_begin_object(json);
    ses_json_member_string(json, "id", id);
    ses_json_member_stringn(json, "input", x->text[i].p, x->text[i].n);
    if (!multi) {
        ses_json_member_stringn(json, "prediction", s[0].label.p, s[0].label.n);
        ses_json_member_real(json, "confidence", s[0].p);
    }
    ses_json_member_array(json, "predictions");
    for (size_t k = 0; k < n && (multi ? s[k].p > 0.5 : !k); k++)
        ses_json_put_stringn(json, s[k].label.p, s[k].label.n);
    ses_json_end_array(json);
    ses_json_member_array(json, "confidences");
    for (size_t k = 0; k < n && (multi ? s[k].p > 0.5 : !k); k++) ses_json_put_real(json, s[k].p);
    ses_json_end_array(json);
    ses_json_member_object(json, "labels");
    for (size_t k = 0; k < n; k++) {
        ses_json_put_keyn(json, s[k].label.p, s[k].label.n);
        ses_json_begin_object(json);
        ses_json_member_real(json, "confidence", s[k].p);
        ses_json_end_object(json);
    }
    ses_json_end_object(json);
    ses_json_member_string(json, "classification_type", multi ? "multi-label" : "single-label");
    ses_json_end_object(json);
}

static void begin(ses_json_writer *json, const ses_job *j)
{
    ses_json_begin_object(json);
    ses_reply_put_id(json, j, "classify");
    ses_json_member_array(json, "classifications");
}

static void end(ses_worker *w, ses_job *j, ses_json_writer *json)
{
    ses_json_end_array(json);
    ses_reply_put_meta(json, j, 1, NULL);
    ses_json_end_object(json);
    ses_reply_json(w, j, json);
}

static void done(ses_worker *w, ses_job *j)
{
    ses_json_writer *json = ses_reply_begin(w, j, false);
    if (!json) return;
    begin(json, j);
    for (size_t i = 0; i < j->n; i++) {
        const ses_result *r = &j->item[i].result;
        score *s = ses_job_alloc(j, r->n, sizeof *s);
        for (size_t k = 0; s && k < r->n; k++) s[k] = (score){ r->row[k].label, (float)r->row[k].score };
        if (s) put_item(json, j, i, s, r->n);
    }
    end(w, j, json);
}

/* ---- examples ---- */

static bool fit(ses_job *j, const state *s, ses_logreg *m, float **rows, size_t *width)
{
    static const ses_logreg_options o = { .iterations = 100 };
    ses_err e = { 0 };
    int64_t size = 0;
    ses_embed_vector(j, 0, &size);
    size_t n = j->n - s->n_inputs;
    *width = (size_t)size;
    *rows = ses_job_alloc(j, j->n * *width, sizeof **rows);
    for (size_t i = 0; *rows && i < j->n; i++) {
        const float *x = ses_embed_vector(j, i, &size);
        if (!x) return false;
        memcpy(*rows + i * *width, x, *width * sizeof *x);
    }
    if (!*rows || s->n_labels == 1) return *rows != NULL;
    return ses_logreg_fit(m, *rows + s->n_inputs * *width, s->class, NULL, n, *width, s->n_labels, &o, &e) ||
           ses_api_fail_with(&j->error, SES_API_BACKEND, "examples", &e);
}

static void put_fitted(ses_json_writer *json, ses_job *j, const ses_logreg *m, size_t i, const float *x)
{
    const state *s = j->state;
    double *p = ses_job_alloc(j, s->n_labels, sizeof *p);
    score *best = ses_job_alloc(j, s->n_labels, sizeof *best);
    if (!p || !best) return;
    if (s->n_labels == 1)
        p[0] = 1;
    else
        ses_logreg_predict(m, x, p);
    for (size_t k = 0; k < s->n_labels; k++) {
        size_t at = k;
        for (; at && best[at - 1].p < p[k]; at--) best[at] = best[at - 1];
        best[at] = (score){ s->label[k], p[k] };
    }
    put_item(json, j, i, best, s->n_labels);
}

static void fitted_done(ses_worker *w, ses_job *j)
{
    const state *s = j->state;
    ses_logreg m = { 0 };
    float *rows = NULL;
    size_t width = 0;
    ses_json_writer *json = ses_reply_begin(w, j, false);
    if (!json) return;
    begin(json, j);
    if (fit(j, s, &m, &rows, &width))
        for (size_t i = 0; i < s->n_inputs; i++) put_fitted(json, j, &m, i, rows + i * width);
    ses_logreg_free(&m);
    end(w, j, json);
}

/* Number of a label. */
static int32_t class_of(state *s, ses_string label)
{
    size_t i = 0;
    while (i < s->n_labels && !(s->label[i].n == label.n && !memcmp(s->label[i].p, label.p, label.n))) i++;
    if (i == s->n_labels) s->label[s->n_labels++] = label;
    return (int32_t)i;
}

/* Texts of inputs and examples, one after the other. */
static ses_string *read_examples(ses_job *j, state *s, const ses_json *v)
{
    size_t n = ses_json_len(v);
    ses_string *all = ses_job_alloc(j, s->n_inputs + n, sizeof *all);
    s->label = ses_job_alloc(j, n, sizeof *s->label);
    s->class = ses_job_alloc(j, n, sizeof *s->class);
    if (!all || !s->label || !s->class) return NULL;
    memcpy(all, s->text, s->n_inputs * sizeof *all);
    for (size_t i = 0; i < n; i++) {
        const ses_json *x = ses_json_at(v, i);
        ses_string text = ses_body_text(ses_json_get(x, "text")),
                   label = ses_body_text(ses_json_get(x, "label"));
        if (!text.n || !label.n) {
            ses_api_fail(&j->error, SES_API_VALIDATION, "examples",
                         "example %zu must be {\"text\": ..., \"label\": ...}, texts that are not empty", i);
            return NULL;
        }
        all[s->n_inputs + i] = text;
        s->class[i] = class_of(s, label);
    }
    return all;
}

static bool classify_examples(ses_worker *w, ses_job *j, state *s, const ses_json *v)
{
    enum { MAX_LABELS = 64 };
    size_t half = (size_t)ses_server_get_options(w->server)->max_inputs / 2;
    if (ses_json_type_of(v) != SES_JSON_ARRAY) return ses_body_wrong_type(j, "examples", v, "a list");
    if (ses_json_len(v) > half || s->n_inputs > half)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "examples",
                            "a request has at most %zu inputs and %zu examples", half, half);
    ses_string *all = read_examples(j, s, v);
    if (all && s->n_labels > MAX_LABELS)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "examples", "\"examples\" has more than %d labels",
                            MAX_LABELS);
    return all && ses_embed_submit(w, j, &s->embed, all, s->n_inputs + ses_json_len(v), fitted_done);
}

/* ---- request ---- */

static bool handle(ses_worker *w, ses_job *j)
{
    static const ses_setting all[] = { { "top_k", "all" }, { 0 } };
    state *s = ses_job_alloc(j, 1, sizeof *s);
    if (!s) return false;
    s->embed = (ses_embed_request){ .normalize = 1, .truncate = true };
    j->state = s;
    const ses_json *examples = ses_body_get(j->body, "examples");
    if (!ses_body_string(j, j->body, "model", &s->embed.model) ||
        !ses_body_texts(j, ses_body_get(j->body, "inputs"), "inputs", &s->text, &s->n_inputs, false) ||
        !ses_cohere_read_truncate(j, &s->embed.truncate, &s->embed.left))
        return false;
    if (s->embed.left)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "truncate",
                            "\"truncate\" must be \"NONE\" or \"END\"");
    if (examples && !(ses_json_type_of(examples) == SES_JSON_ARRAY && !ses_json_len(examples)))
        return classify_examples(w, j, s, examples);
    if (!ses_job_open(w, j, s->embed.model, ses_task_find("text-classification"), NULL)) return false;
    if (ses_served_model_predicts_numbers(j->model))
        return ses_api_fail(&j->error, SES_API_VALIDATION, "model", "%s predicts numbers, not labels",
                            j->model->name);
    for (size_t i = 0; i < s->n_inputs; i++)
        if (!ses_job_add(w, j, &(ses_item){ .text = s->text[i], .settings = all })) return false;
    return ses_job_check_items(j) && (s->embed.truncate || ses_job_check_truncation(j)) &&
           ses_job_submit(w, j, done);
}

const ses_route ses_route_cohere_classify = {
    .method = "POST",
    .path = "/v1/classify",
    .style = SES_STYLE_COHERE,
    .handle = handle,
    .tag = "Cohere",
    .summary = "Labels of texts, by a classifier, or by examples and an embedder",
    .request =
        "{\"type\":\"object\",\"required\":[\"inputs\"],"
        "\"anyOf\":[{\"allOf\":[{\"$ref\":\"#/components/schemas/"
        "Models-labels\"}],\"properties\":{\"examples\":{"
        "\"type\":[\"array\",\"null\"],\"maxItems\":0}}},"
        "{\"allOf\":[{\"$ref\":\"#/components/schemas/Models-ollama\"}],\"required\":[\"examples\"],"
        "\"properties\":{\"examples\":{\"$ref\":\"#/components/schemas/Examples\"},\"inputs\":{\"$ref\":"
        "\"#/components/schemas/HalfTexts\"}}}],"
        "\"properties\":{\"inputs\":{\"$ref\":\"#/components/schemas/Texts\"},"
        "\"examples\":{\"type\":\"array\"},"
        "\"truncate\":{\"enum\":[\"NONE\",\"END\"]},\"model\":{\"type\":\"string\","
        "\"description\":\"name of a loaded model; default: the first one for the task\"}}}",
    .response = "{\"type\":\"object\",\"required\":[\"id\",\"classifications\",\"meta\"],\"properties\":{"
                "\"classifications\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"id\","
                "\"input\","
                "\"predictions\",\"confidences\",\"labels\",\"classification_type\"]}}}}",
};
