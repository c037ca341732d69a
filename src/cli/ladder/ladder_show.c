/* Results of a ladder: a table and bars on the terminal, as SVG, HTML and JSON. */
#include "ladder.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/number_text.h"
#include "cli/ui/show_values.h"
#include "cli/ui/sparkline.h"
#include "figure/report.h"

#include <math.h>

/* ---- JSON ---- */

static void put_row(const ses_ladder_row *r, ses_json_writer *w)
{
    ses_json_begin_object(w);
    ses_json_member_string(w, "method", r->method->name);
    ses_json_member_string(w, "summary", r->method->summary);
    if (ses_ladder_is_done(r)) {
        ses_json_member_real(w, "score", r->score);
        ses_json_member_real(w, "low", r->low);
        ses_json_member_real(w, "high", r->high);
        ses_json_member_real(w, "deviation", r->deviation);
        ses_json_member_int(w, "runs", r->runs);
        ses_json_member_real(w, "train_seconds", r->train_seconds);
        ses_json_member_real(w, "seconds_per_text", r->seconds_per_text);
        ses_json_member_real(w, "train_joules", r->joules);
        ses_json_member_real(w, "bytes", r->bytes);
    } else
        ses_json_member_string(w, "reason", *r->base.reason ? r->base.reason : "not run");
    ses_json_end_object(w);
}

void ses_ladder_put(const void *ladder, ses_json_writer *w)
{
    const ses_ladder *l = ladder;
    ses_json_member_string(w, "metric", l->metric);
    ses_json_member_bool(w, "lower_is_better", l->lower_is_better);
    ses_json_member_int(w, "test_texts_in_train", (int64_t)l->overlap.shared);
    ses_json_member_array(w, "rows");
    for (size_t i = 0; i < l->n_rows; i++) put_row(&l->row[i], w);
    ses_json_end_array(w);
}

/* ---- the report ---- */

static void put_cells(ses_figure *t, const ses_ladder_row *r, bool seeds)
{
    char a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT], c[SES_NUMBER_TEXT], d[SES_NUMBER_TEXT];
    ses_figure_cell(t, "%s", r->method->name);
    ses_figure_cell(t, "%.2f", 100 * r->score);
    if (seeds) isnan(r->deviation) ? ses_figure_cell(t, "-") : ses_figure_cell(t, "%.2f", 100 * r->deviation);
    isnan(r->low) ? ses_figure_cell(t, "-") : ses_figure_cell(t, "%.2f to %.2f", 100 * r->low, 100 * r->high);
    ses_figure_cell(t, "%s", ses_elapsed_text(a, r->train_seconds));
    ses_figure_cell(t, "%s", ses_elapsed_text(b, r->seconds_per_text));
    ses_figure_cell(t, "%s", ses_watt_hours_text(c, r->joules));
    ses_figure_cell(t, "%s", ses_bytes_text(d, (uint64_t)fmax(r->bytes, 0)));
}

static bool put_bars(const ses_ladder *l, ses_report *r, ses_err *e)
{
    const char **name = ses_alloc_array(l->n_rows, sizeof *name, e);
    double *value = name ? ses_alloc_array(l->n_rows, sizeof *value, e) : NULL;
    char title[120];
    int64_t n = 0;
    for (size_t i = 0; value && i < l->n_rows; i++) {
        if (!ses_ladder_is_done(&l->row[i])) continue;
        name[n] = l->row[i].method->name;
        value[n++] = 100 * l->row[i].score;
    }
    snprintf(title, sizeof title, "%s x 100", l->metric);
    if (n) ses_report_bars(r, title, n, name, value);
    bool ok = value != NULL;
    ses_free(value);
    ses_free(name);
    return ok;
}

bool ses_ladder_fill(const void *ladder, ses_report *r, ses_err *e)
{
    const ses_ladder *l = ladder;
    char columns[200], text[400];
    bool seeds = l->a->seeds > 1;
    size_t done = 0;
    snprintf(columns, sizeof columns, "method|>%s%s|>%g %% interval|>training|>per text|>energy|>size",
             l->metric, seeds ? "|>deviation" : "", l->a->confidence);
    ses_report_set_title(r, "Methods on %s", ses_path_name_of(l->test_name).s);
    for (size_t i = 0; i < l->n_rows; i++) done += ses_ladder_is_done(&l->row[i]);
    ses_figure *t = done ? ses_report_table(r, "Methods", columns) : NULL;
    for (size_t i = 0; i < l->n_rows; i++)
        if (ses_ladder_is_done(&l->row[i])) put_cells(t, &l->row[i], seeds);
    if (!put_bars(l, r, e)) return false;
    if (l->x.c->n_operands == 2)
        ses_report_note(
            r, "%s was split: %zu texts for training, %zu (%g of each class, seed %lld) for the test.",
            ses_path_name_of(l->train_name).s, ses_examples_count(l->train), ses_examples_count(l->test),
            l->a->test_size, (long long)l->a->seed);
    if (*ses_row_overlap_text(&l->overlap, ses_path_name_of(l->test_name).s, text, sizeof text))
        ses_report_note(r, "%s.", text);
    for (size_t i = 0; i < l->n_rows; i++)
        if (!ses_ladder_is_done(&l->row[i]))
            ses_report_note(r, "%s has no result: %s.", l->row[i].method->name,
                            *l->row[i].base.reason ? l->row[i].base.reason : "not run");
    return true;
}
