/* Properties of a loaded model. */
#include "base/str.h"
#include "registry.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The lock of its pipelines changes. */
static ses_served_model *mutable(const ses_served_model *m) { return (ses_served_model *)(uintptr_t)m; }

/* NULL: a model with weights of its own. */
static const ses_classifier *classifier_of(const ses_served_model *m)
{
    const ses_served_pipeline *p = m->model ? NULL : ses_served_model_pipeline(mutable(m));
    return p ? p->compute->classifier : NULL;
}

bool ses_served_model_supports(const ses_served_model *m, const ses_task_entry *task)
{
    return m->model ? ses_task_suits(task->task, m->model) : task->task->ways[SES_WAY_CLASSIFIER] != NULL;
}

bool ses_served_model_has_many_labels(const ses_served_model *m)
{
    return m->model && m->model->c.head.problem == SES_PROBLEM_MULTI;
}

bool ses_served_model_predicts_numbers(const ses_served_model *m)
{
    return m->model && m->model->c.head.problem == SES_PROBLEM_REGRESSION;
}

static bool is_among(ses_string s, const char *const *words, size_t n, bool whole)
{
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(words[i]);
        if ((whole ? s.n == length : s.n >= length) && !strncasecmp(s.p, words[i], length)) return true;
    }
    return false;
}

/* A name of its own, or "non-" and the name of a harm; "neutral" and "not_entailment" are neither. */
bool ses_label_is_harmless(ses_string label)
{
    static const char *const words[] = { "safe",     "ok",     "okay",       "clean",       "normal",
                                         "harmless", "benign", "acceptable", "appropriate", "ham" };
    static const char *const harms[] = { "toxic",  "hat",    "offens", "harm",  "abus",
                                         "spam",   "nsfw",   "prof",   "sex",   "rac",
                                         "threat", "obscen", "unsafe", "bully", "insult" };
    if (is_among(label, words, SES_LEN(words), true)) return true;
    if (label.n < 3 || strncasecmp(label.p, "no", 2)) return false;
    size_t n = label.p[2] == 'n' || label.p[2] == 'N' || label.p[2] == 't' || label.p[2] == 'T' ? 3 : 2;
    if (n < label.n && strchr("-_ ", label.p[n])) n++;
    return is_among((ses_string){ label.p + n, label.n - n }, harms, SES_LEN(harms), false);
}

/* Label i of a classifier; p NULL: past the end. */
static ses_string label_at(const ses_served_model *m, size_t i)
{
    const ses_classifier *c = classifier_of(m);
    char number[24];
    const char *name = NULL;
    if (m->model && (int64_t)i < ses_model_label_count(m->model))
        name = ses_model_label_name(m->model, (int64_t)i);
    else if (!m->model && c && i < c->n_labels) {
        snprintf(number, sizeof number, "%zu", i);
        const ses_json *root = ses_json_root(ses_served_model_pipeline(mutable(m))->compute->config);
        name = ses_json_string(ses_json_get(ses_json_get(root, "id2label"), number), NULL);
    } else
        return (ses_string){ 0 };
    return ses_str(name ? name : "");
}

bool ses_served_model_moderates(const ses_served_model *m)
{
    size_t harmless = 0;
    ses_string label;
    if (!ses_served_model_supports(m, ses_task_find("text-classification")) ||
        ses_served_model_predicts_numbers(m))
        return false;
    for (size_t i = 0; (label = label_at(m, i)).p; i++) harmless += ses_label_is_harmless(label);
    return ses_served_model_has_many_labels(m) || harmless == 1;
}

int64_t ses_served_model_parameters(const ses_served_model *m)
{
    const ses_classifier *c = classifier_of(m);
    const ses_store *s = m->model ? ses_model_store(m->model) : NULL;
    int64_t n = c && c->kind->parameters ? c->kind->parameters(c->self) : 0;
    for (size_t i = 0; s && i < ses_store_count(s); i++) {
        const ses_param *x = ses_store_at(s, i);
        if (x->role != SES_PARAM_BUFFER) n += ses_count(x->tensor);
    }
    return n;
}

int64_t ses_served_model_bytes(const ses_served_model *m)
{
    return ses_served_model_parameters(m) *
           (int64_t)ses_dtype_size(m->model ? ses_model_dtype(m->model) : SES_F64);
}

const char *ses_served_model_type(const ses_served_model *m)
{
    return m->model ? ses_model_type(m->model) : SES_CLASSIFIER_MODEL_TYPE;
}

const char *ses_served_model_dtype(const ses_served_model *m)
{
    return ses_dtype_name(m->model ? ses_model_dtype(m->model) : SES_F64);
}
