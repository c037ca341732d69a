/* Evaluation reports on the terminal. */
#include "eval_report_show.h"

#include "base/str.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    MAX_MATRIX = 12,
    MAX_CONFUSIONS = 10,
    MAX_SCORES = 6
}; /* more labels than MAX_MATRIX: a list of confusions */

/* The scores whose interval has no width. */
static void show_constant(const ses_eval_report *r, const ses_term *t)
{
    char names[400] = "";
    for (size_t i = 0, shown = 0; r->level > 0 && i < r->scores.n && shown < MAX_SCORES; i++) {
        const ses_score *s = &r->scores.item[i];
        size_t used = strlen(names);
        if (!ses_eval_report_is_overall(r, i) || s->low != s->high) continue;
        snprintf(names + used, sizeof names - used, "%s%s", shown++ ? ", " : "", s->name);
    }
    if (*names)
        ses_show_line(t, "Note",
                      "the same in every resample, so that the interval does not show the error: %s", names);
}

void ses_eval_report_show(const ses_eval_report *r, const ses_term *t)
{
    char line[800] = "";
    for (size_t i = 0, shown = 0; i < r->scores.n && shown < MAX_SCORES; i++) {
        const ses_score *s = &r->scores.item[i];
        size_t used = strlen(line);
        if (!ses_eval_report_is_overall(r, i)) continue;
        snprintf(line + used, sizeof line - used, "%s%s %.4f", shown++ ? ", " : "", s->name, s->value);
        used = strlen(line);
        if (r->level > 0) snprintf(line + used, sizeof line - used, " (%.4f-%.4f)", s->low, s->high);
    }
    if (!isnan(r->loss)) ses_show_line(t, "Loss", "%.4f", r->loss);
    ses_show_line(t, "Scores", "%s", line);
    if (r->exit_counts) ses_show_line(t, "Layers", "%.2f of %zu on average", r->mean_layers, r->n_layers);
    show_constant(r, t);
    if (r->level > 0) ses_show_line(t, "Intervals", "%g %% bootstrap confidence", 100 * r->level);
}

static void put_score(ses_text_table *table, double x)
{
    isnan(x) ? ses_text_table_cell(table, "-") : ses_text_table_cell(table, "%.4f", x);
}

static bool show_classes(const ses_eval_report *r, const ses_term *t, ses_err *e)
{
    ses_text_table *table = ses_text_table_new("class|>precision|>recall|>f1|>number", e);
    if (!table) return false;
    for (size_t i = 0; i < r->n_classes; i++) {
        const ses_class_score *c = &r->classes[i];
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
static bool show_matrix(const ses_eval_report *r, const ses_term *t, ses_err *e)
{
    enum { MAX_HEADING = 12 };
    size_t n = r->n_labels;
    ses_buf columns = { 0 };
    for (size_t i = 0; i < n; i++) ses_buf_puts(&columns, "|>");
    ses_text_table *table = ses_buf_ok(&columns, e) ? ses_text_table_new(columns.data, e) : NULL;
    ses_buf_free(&columns);
    if (!table) return false;
    ses_text_table_cell(table, "true \\ predicted");
    ses_text_table_style(table, SES_BOLD);
    for (size_t i = 0; i < n; i++) {
        ses_text_table_cell(table, "%.*s", MAX_HEADING, r->labels[i]);
        ses_text_table_style(table, SES_BOLD);
    }
    for (size_t i = 0; i < n; i++) {
        ses_text_table_cell(table, "%s", r->labels[i]);
        for (size_t k = 0; k < n; k++) {
            ses_text_table_cell(table, "%" PRId64, r->confusion[i * n + k]);
            ses_text_table_style(table, i == k ? SES_GREEN : SES_PLAIN);
        }
    }
    putchar('\n');
    bool ok = ses_text_table_print(table, stdout, t, 0, e);
    ses_text_table_free(table);
    return ok;
}

/* The largest entries off the diagonal. */
static bool show_confusions(const ses_eval_report *r, const ses_term *t, ses_err *e)
{
    size_t n = r->n_labels;
    ses_text_table *table = ses_text_table_new("true|predicted|>number", e);
    if (!table) return false;
    int64_t last = INT64_MAX;
    size_t at = 0; /* index after the last one shown, for equal entries */
    for (int shown = 0; shown < MAX_CONFUSIONS; shown++) {
        size_t best = n * n;
        for (size_t i = 0; i < n * n; i++) {
            int64_t x = r->confusion[i];
            if (i / n == i % n || !x || x > last || (x == last && i < at)) continue;
            if (best == n * n || x > r->confusion[best]) best = i;
        }
        if (best == n * n) break;
        last = r->confusion[best];
        at = best + 1;
        ses_text_table_cell(table, "%s", r->labels[best / n]);
        ses_text_table_cell(table, "%s", r->labels[best % n]);
        ses_text_table_cell(table, "%" PRId64, last);
    }
    putchar('\n');
    bool ok = ses_text_table_print(table, stdout, t, 0, e);
    ses_text_table_free(table);
    return ok;
}

bool ses_eval_report_show_classes(const ses_eval_report *r, const ses_term *t, ses_err *e)
{
    if (r->n_classes && !show_classes(r, t, e)) return false;
    if (!r->confusion) return true;
    return r->n_labels <= MAX_MATRIX ? show_matrix(r, t, e) : show_confusions(r, t, e);
}
