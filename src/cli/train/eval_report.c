#include "eval_report.h"

#include "base/alloc.h"
#include "base/str.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MATRIX = 12, WORST = 10 }; /* labels of a matrix that is shown; else so many confusions */

void ses_eval_report_free(ses_eval_report *j)
{
    ses_scores_free(&j->scores);
    ses_free(j->classes);
    ses_free(j->confusion);
    *j = (ses_eval_report){ 0 };
}

/* ---- classes ---- */

static double find(const ses_scores *s, const char *name, const char *what)
{
    char key[80];
    double x = NAN;
    snprintf(key, sizeof key, "%s_%s", name, what);
    return ses_scores_find(s, key, &x) ? x : NAN;
}

/* Those that metrics give a score of their own, NAME_f1: labels, or types of entities. */
static void classes_of_scores(ses_eval_report *j)
{
    for (size_t i = 0; i < j->scores.n; i++) {
        const char *name = j->scores.item[i].name;
        size_t n = strlen(name);
        if (n < 4 || strcmp(name + n - 3, "_f1")) continue;
        ses_class_score *c = &j->classes[j->n_classes++];
        snprintf(c->name, sizeof c->name, "%.*s", (int)(n - 3), name);
        c->f1 = j->scores.item[i].value;
        c->precision = find(&j->scores, c->name, "precision");
        c->recall = find(&j->scores, c->name, "recall");
        c->number = find(&j->scores, c->name, "number");
    }
}

static double share(int64_t part, int64_t of) { return of ? (double)part / (double)of : 0; }

static void classes_of_confusion(ses_eval_report *j)
{
    size_t n = j->tuner->n_labels;
    for (size_t c = 0; c < n; c++) {
        int64_t right = j->confusion[c * n + c], said = 0, actual = 0;
        for (size_t k = 0; k < n; k++) said += j->confusion[k * n + c], actual += j->confusion[c * n + k];
        ses_class_score *x = &j->classes[j->n_classes++];
        snprintf(x->name, sizeof x->name, "%s", j->tuner->label[c]);
        x->precision = share(right, said);
        x->recall = share(right, actual);
        x->f1 = share(2 * right, said + actual);
        x->number = (double)actual;
    }
}

static bool confusion(ses_eval_report *j, ses_finetuner *t, const ses_evaluation *v, ses_err *e)
{
    size_t count;
    if (!t->o.kind->has_label_names || !v->gold || !v->pred || t->n_labels < 2) return true;
    if (!ses_mul_size(t->n_labels, t->n_labels, &count)) return ses_fail(e, SES_ENOMEM, "out of memory");
    j->confusion = ses_alloc_array(count, sizeof *j->confusion, e);
    return j->confusion && ses_confusion_matrix(v, j->confusion, e);
}

bool ses_eval_report_make(ses_eval_report *j, ses_finetuner *t, const ses_finetune_set *s,
                          const ses_task_outputs *p, const ses_bootstrap_args *a, ses_err *e)
{
    ses_bootstrap b = { a->resamples, a->confidence / 100, (uint64_t)a->seed };
    ses_arena mem = { 0 };
    ses_evaluation v;
    *j = (ses_eval_report){ .loss = p->loss, .n = s->n_rows, .tuner = t, .level = b.resamples ? b.level : 0 };
    bool ok = ses_finetuner_fill_evaluation(t, s, p, &v, &mem, e) &&
              ses_finetuner_score(t, &v, &b, &j->scores, e) && confusion(j, t, &v, e);
    ses_arena_free(&mem);
    size_t most = j->scores.n + t->n_labels + 1;
    j->classes = ok ? ses_alloc_array(most, sizeof *j->classes, e) : NULL;
    ok = j->classes != NULL;
    if (ok && t->o.kind->has_label_names) classes_of_scores(j);
    if (ok && !j->n_classes && j->confusion) classes_of_confusion(j);
    if (!ok) ses_eval_report_free(j);
    return ok;
}

/* ---- for programs ---- */

static void put_labels(const ses_eval_report *j, ses_json_writer *w)
{
    size_t n = j->tuner->n_labels;
    ses_json_member_array(w, "eval_labels");
    for (size_t i = 0; i < n; i++) ses_json_put_string(w, j->tuner->label[i]);
    ses_json_end_array(w);
    ses_json_member_array(w, "eval_confusion_matrix");
    for (size_t i = 0; i < n; i++) {
        ses_json_begin_array(w);
        for (size_t k = 0; k < n; k++) ses_json_put_int(w, j->confusion[i * n + k]);
        ses_json_end_array(w);
    }
    ses_json_end_array(w);
}

void ses_eval_report_put(const ses_eval_report *j, ses_json_writer *w)
{
    bool loss = false;
    for (size_t i = 0; i < j->scores.n; i++) {
        const ses_score *s = &j->scores.item[i];
        char key[96];
        loss |= !strcmp(s->name, "loss");
        snprintf(key, sizeof key, "eval_%s", s->name);
        ses_json_member_real(w, key, s->value);
        if (j->level <= 0) continue;
        snprintf(key, sizeof key, "eval_%s_low", s->name);
        ses_json_member_real(w, key, s->low);
        snprintf(key, sizeof key, "eval_%s_high", s->name);
        ses_json_member_real(w, key, s->high);
    }
    if (j->level > 0) ses_json_member_real(w, "eval_confidence", j->level);
    if (!loss && !isnan(j->loss)) ses_json_member_real(w, "eval_loss", j->loss);
    ses_json_member_int(w, "eval_samples", (int64_t)j->n);
    if (j->confusion) put_labels(j, w);
}

/* ---- for people ---- */

void ses_eval_report_show(const ses_eval_report *j, const ses_term *t)
{
    char line[800] = "";
    for (size_t i = 0; i < j->scores.n && i < 6; i++) { /* the general ones come first */
        const ses_score *s = &j->scores.item[i];
        size_t used = strlen(line);
        snprintf(line + used, sizeof line - used, "%s%s %.4f", i ? ", " : "", s->name, s->value);
        used = strlen(line);
        if (j->level > 0) snprintf(line + used, sizeof line - used, " (%.4f-%.4f)", s->low, s->high);
    }
    if (!isnan(j->loss)) ses_show_line(t, "Loss", "%.4f", j->loss);
    ses_show_line(t, "Scores", "%s", line);
    if (j->level > 0) ses_show_line(t, "Intervals", "hold %g %% of the resamples", 100 * j->level);
}

static void put_score(ses_text_table *table, double x)
{
    isnan(x) ? ses_text_table_cell(table, "-") : ses_text_table_cell(table, "%.4f", x);
}

static bool show_each(const ses_eval_report *j, const ses_term *t, ses_err *e)
{
    ses_text_table *table = ses_text_table_new("class|>precision|>recall|>f1|>number", e);
    if (!table) return false;
    for (size_t i = 0; i < j->n_classes; i++) {
        const ses_class_score *c = &j->classes[i];
        ses_text_table_cell(table, "%s", c->name);
        put_score(table, c->precision);
        put_score(table, c->recall);
        put_score(table, c->f1);
        isnan(c->number) ? ses_text_table_cell(table, "-") : ses_text_table_cell(table, "%.0f", c->number);
    }
    putchar('\n');
    bool ok = ses_text_table_print(table, stdout, t, 0, e);
    ses_text_table_free(table);
    return ok;
}

/* Labels may hold any character, so the head is a row like the others. */
static bool show_matrix(const ses_eval_report *j, const ses_term *t, ses_err *e)
{
    enum { CUT = 12 }; /* of a label over its column */
    size_t n = j->tuner->n_labels;
    ses_buf columns = { 0 };
    for (size_t i = 0; i < n; i++) ses_buf_puts(&columns, "|>");
    ses_text_table *table = ses_buf_ok(&columns, e) ? ses_text_table_new(columns.data, e) : NULL;
    ses_buf_free(&columns);
    if (!table) return false;
    ses_text_table_cell(table, "right \\ said");
    ses_text_table_style(table, SES_BOLD);
    for (size_t i = 0; i < n; i++) {
        ses_text_table_cell(table, "%.*s", CUT, j->tuner->label[i]);
        ses_text_table_style(table, SES_BOLD);
    }
    for (size_t i = 0; i < n; i++) {
        ses_text_table_cell(table, "%s", j->tuner->label[i]);
        for (size_t k = 0; k < n; k++) {
            ses_text_table_cell(table, "%" PRId64, j->confusion[i * n + k]);
            ses_text_table_style(table, i == k ? SES_GREEN : SES_PLAIN);
        }
    }
    putchar('\n');
    bool ok = ses_text_table_print(table, stdout, t, 0, e);
    ses_text_table_free(table);
    return ok;
}

/* The largest entries beside the diagonal, of a matrix too large to be read. */
static bool show_worst(const ses_eval_report *j, const ses_term *t, ses_err *e)
{
    size_t n = j->tuner->n_labels;
    ses_text_table *table = ses_text_table_new("right|said|>number", e);
    if (!table) return false;
    int64_t last = INT64_MAX;
    size_t at = 0; /* within entries as large as the last one */
    for (int shown = 0; shown < WORST; shown++) {
        size_t best = n * n;
        for (size_t i = 0; i < n * n; i++) {
            int64_t x = j->confusion[i];
            if (i / n == i % n || !x || x > last || (x == last && i < at)) continue;
            if (best == n * n || x > j->confusion[best]) best = i;
        }
        if (best == n * n) break;
        last = j->confusion[best];
        at = best + 1;
        ses_text_table_cell(table, "%s", j->tuner->label[best / n]);
        ses_text_table_cell(table, "%s", j->tuner->label[best % n]);
        ses_text_table_cell(table, "%" PRId64, last);
    }
    putchar('\n');
    bool ok = ses_text_table_print(table, stdout, t, 0, e);
    ses_text_table_free(table);
    return ok;
}

bool ses_eval_report_show_classes(const ses_eval_report *j, const ses_term *t, ses_err *e)
{
    if (j->n_classes && !show_each(j, t, e)) return false;
    if (!j->confusion) return true;
    return j->tuner->n_labels <= MATRIX ? show_matrix(j, t, e) : show_worst(j, t, e);
}
