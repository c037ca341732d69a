/* Evaluation report: scores, classes, confusion matrix. */
#include "finetune_impl.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void ses_eval_report_free(ses_eval_report *r)
{
    ses_scores_free(&r->scores);
    ses_free(r->classes);
    ses_free(r->confusion);
    ses_free(r->exit_counts);
    *r = (ses_eval_report){ 0 };
}

/* ---- classes ---- */

static double find_score(const ses_scores *s, const char *name, const char *score)
{
    char key[80];
    double x = NAN;
    snprintf(key, sizeof key, "%s_%s", name, score);
    return ses_scores_find(s, key, &x) ? x : NAN;
}

/* Classes with scores of their own, NAME_f1: labels, or entity types. */
static void classes_from_scores(ses_eval_report *r)
{
    for (size_t i = 0; i < r->scores.n; i++) {
        const char *name = r->scores.item[i].name;
        size_t n = strlen(name);
        if (n < 4 || strcmp(name + n - 3, "_f1")) continue;
        ses_class_score *c = &r->classes[r->n_classes++];
        snprintf(c->name, sizeof c->name, "%.*s", (int)(n - 3), name);
        c->f1 = r->scores.item[i].value;
        c->precision = find_score(&r->scores, c->name, "precision");
        c->recall = find_score(&r->scores, c->name, "recall");
        c->number = find_score(&r->scores, c->name, "number");
    }
}

static double ratio(int64_t part, int64_t of) { return of ? (double)part / (double)of : 0; }

static void classes_from_confusion(ses_eval_report *r)
{
    size_t n = r->n_labels;
    for (size_t c = 0; c < n; c++) {
        int64_t right = r->confusion[c * n + c], predicted = 0, actual = 0;
        for (size_t k = 0; k < n; k++)
            predicted += r->confusion[k * n + c], actual += r->confusion[c * n + k];
        ses_class_score *x = &r->classes[r->n_classes++];
        snprintf(x->name, sizeof x->name, "%s", r->labels[c]);
        x->precision = ratio(right, predicted);
        x->recall = ratio(right, actual);
        x->f1 = ratio(2 * right, predicted + actual);
        x->number = (double)actual;
    }
}

static bool fill_confusion(ses_eval_report *r, ses_finetuner *t, const ses_evaluation *v, ses_err *e)
{
    size_t count;
    if (!t->task->has_label_names || !v->true_labels || !v->pred_labels || t->n_labels < 2) return true;
    if (!ses_mul_size(t->n_labels, t->n_labels, &count)) return ses_fail(e, SES_ENOMEM, "out of memory");
    r->confusion = ses_alloc_array(count, sizeof *r->confusion, e);
    return r->confusion && ses_confusion_matrix(v, r->confusion, e);
}

bool ses_eval_report_make(ses_eval_report *r, ses_finetuner *t, const ses_finetune_set *s,
                          const ses_finetune_outputs *o, const ses_bootstrap *b, ses_err *e)
{
    ses_arena mem = { 0 };
    ses_evaluation v;
    *r = (ses_eval_report){ .loss = o->loss,
                            .n = s->n_rows,
                            .labels = t->label,
                            .n_labels = t->n_labels,
                            .level = b->resamples ? b->level : 0 };
    bool ok = ses_finetuner_fill_evaluation(t, s, o, &v, &mem, e) &&
              ses_finetuner_score(t, &v, b, &r->scores, e) && fill_confusion(r, t, &v, e);
    ses_arena_free(&mem);
    size_t max_classes = r->scores.n + t->n_labels + 1;
    r->classes = ok ? ses_alloc_array(max_classes, sizeof *r->classes, e) : NULL;
    ok = r->classes != NULL && ses_eval_report_add_layers(r, t, o, e);
    if (ok && t->task->has_label_names) classes_from_scores(r);
    if (ok && !r->n_classes && r->confusion) classes_from_confusion(r);
    if (!ok) ses_eval_report_free(r);
    return ok;
}

/* ---- overall scores ---- */

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

/* NAME_precision of a class NAME. */
static bool is_class_score(const ses_eval_report *r, const char *score)
{
    static const char *const kinds[] = { "precision", "recall", "f1", "number" };
    for (size_t i = 0; i < r->n_classes; i++) {
        size_t n = strlen(r->classes[i].name);
        if (strncmp(score, r->classes[i].name, n) || score[n] != '_') continue;
        for (size_t k = 0; k < SES_LEN(kinds); k++)
            if (!strcmp(score + n + 1, kinds[k])) return true;
    }
    return false;
}

/* A micro average is the accuracy if each example has one label, and the plain score of entities. */
static bool repeats_score(const ses_eval_report *r, const ses_score *s)
{
    char plain[sizeof s->name];
    double x;
    if (!ends_with(s->name, "_micro")) return false;
    snprintf(plain, sizeof plain, "%.*s", (int)(strlen(s->name) - strlen("_micro")), s->name);
    return (ses_scores_find(&r->scores, "accuracy", &x) && s->value == x) ||
           (ses_scores_find(&r->scores, plain, &x) && s->value == x);
}

bool ses_eval_report_is_overall(const ses_eval_report *r, size_t i)
{
    const ses_score *s = &r->scores.item[i];
    bool is_loss = !strcmp(s->name, "loss") && !isnan(r->loss);
    return !is_loss && !repeats_score(r, s) && !is_class_score(r, s->name);
}

/* ---- JSON ---- */

static void put_labels(const ses_eval_report *r, ses_json_writer *w)
{
    size_t n = r->n_labels;
    ses_json_member_array(w, "eval_labels");
    for (size_t i = 0; i < n; i++) ses_json_put_string(w, r->labels[i]);
    ses_json_end_array(w);
    ses_json_member_array(w, "eval_confusion_matrix");
    for (size_t i = 0; i < n; i++) {
        ses_json_begin_array(w);
        for (size_t k = 0; k < n; k++) ses_json_put_int(w, r->confusion[i * n + k]);
        ses_json_end_array(w);
    }
    ses_json_end_array(w);
}

void ses_eval_report_put(const ses_eval_report *r, ses_json_writer *w)
{
    bool loss = false;
    for (size_t i = 0; i < r->scores.n; i++) {
        const ses_score *s = &r->scores.item[i];
        char key[96];
        loss |= !strcmp(s->name, "loss");
        snprintf(key, sizeof key, "eval_%s", s->name);
        ses_json_member_real(w, key, s->value);
        if (r->level <= 0) continue;
        snprintf(key, sizeof key, "eval_%s_low", s->name);
        ses_json_member_real(w, key, s->low);
        snprintf(key, sizeof key, "eval_%s_high", s->name);
        ses_json_member_real(w, key, s->high);
    }
    if (r->level > 0) ses_json_member_real(w, "eval_confidence", r->level);
    if (!loss && !isnan(r->loss)) ses_json_member_real(w, "eval_loss", r->loss);
    ses_json_member_int(w, "eval_samples", (int64_t)r->n);
    if (r->confusion) put_labels(r, w);
    ses_eval_report_put_layers(r, w);
}
