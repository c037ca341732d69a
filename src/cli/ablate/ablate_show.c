/* Output of a study: tables on the terminal, ablate.md, ablate.svg, ablate-flops.svg, ablate.html. */
#include "ablate_show.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "cli/ui/report_output.h"
#include "cli/ui/show_values.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- numbers ---- */

int ses_ablate_digits(const ses_ablate_column *c)
{
    return c->scale == 1 && c->kind == SES_COLUMN_SCORE ? 4 : c->lower_is_better ? 3 : 2;
}

static size_t count_failed(const ses_ablate *s, size_t run, const ses_ablate_column *c)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_jobs; i++) {
        const ses_ablate_job *j = &s->job[i];
        bool in_column = c->kind == SES_COLUMN_MEAN   ? j->task != SIZE_MAX && s->averages[j->task]
                         : c->kind == SES_COLUMN_TASK ? j->task == c->task
                                                      : j->task == SIZE_MAX;
        n += j->run == run && in_column && j->base.state == SES_JOB_FAILED;
    }
    return n;
}

const char *ses_ablate_entry_text(const ses_ablate *s, size_t run, size_t column, const char *sign, char *buf,
                                  size_t size)
{
    const ses_ablate_column *c = &s->column[column];
    const ses_ablate_entry *x = ses_ablate_entry_at(s, run, column);
    int digits = ses_ablate_digits(c);
    double half = 0.5 * c->scale * (x->interval.high - x->interval.low);
    if (!x->n)
        snprintf(buf, size, "%s",
                 ses_ablate_has_column(s, run, column) && count_failed(s, run, c) ? "failed" : "-");
    else if (isnan(half))
        snprintf(buf, size, "%.*f", digits, c->scale * x->interval.mean);
    else
        snprintf(buf, size, "%.*f %s%.*f", digits, c->scale * x->interval.mean, sign, digits, half);
    size_t used = strlen(buf), failed = x->n ? count_failed(s, run, c) : 0;
    if (failed) snprintf(buf + used, size - used, " (%zu failed)", failed); /* the mean lacks them */
    return buf;
}

bool ses_ablate_has_published(const ses_ablate *s, size_t column)
{
    for (size_t i = 0; i < s->n_runs; i++)
        if (!isnan(ses_ablate_entry_at(s, i, column)->published)) return true;
    return false;
}

/* ---- tables ---- */

/* Means with half of their intervals, and published numbers next to them. */
static void put_scores(const ses_ablate *s, ses_report *r)
{
    ses_buf columns = { 0 };
    char text[80];
    ses_buf_puts(&columns, "run");
    for (size_t k = 0; k < s->n_columns; k++) {
        ses_buf_appendf(&columns, "|>%s", s->column[k].name);
        if (ses_ablate_has_published(s, k)) ses_buf_puts(&columns, "|>published");
    }
    ses_figure *t = ses_buf_ok(&columns, NULL) ? ses_report_table(r, "Scores", columns.data) : NULL;
    for (size_t i = 0; i < s->n_runs; i++) {
        ses_figure_cell(t, "%s", s->run[i].name);
        for (size_t k = 0; k < s->n_columns; k++) {
            double published = ses_ablate_entry_at(s, i, k)->published;
            ses_figure_cell(t, "%s", ses_ablate_entry_text(s, i, k, "+-", text, sizeof text));
            if (!ses_ablate_has_published(s, k)) continue;
            isnan(published) ? ses_figure_cell(t, "-") : ses_figure_cell(t, "%g", published);
        }
    }
    ses_buf_free(&columns);
}

/* Mean, median and interval of every score with several results. */
static void put_intervals(const ses_ablate *s, ses_report *r)
{
    char columns[120];
    ses_figure *t = NULL;
    snprintf(columns, sizeof columns, "run|column|>mean|>median|>%g %% interval|>results", s->a->confidence);
    for (size_t k = 0; k < s->n_columns; k++)
        for (size_t i = 0; i < s->n_runs; i++) {
            const ses_ablate_entry *x = ses_ablate_entry_at(s, i, k);
            double scale = s->column[k].scale;
            int digits = ses_ablate_digits(&s->column[k]);
            if (x->n < 2) continue;
            if (!t) t = ses_report_table(r, "Mean, median and interval", columns);
            ses_figure_cell(t, "%s", s->run[i].name);
            ses_figure_cell(t, "%s", s->column[k].name);
            ses_figure_cell(t, "%.*f", digits, scale * x->interval.mean);
            ses_figure_cell(t, "%.*f", digits, scale * x->median);
            ses_figure_cell(t, "%.*f to %.*f", digits, scale * x->interval.low, digits,
                            scale * x->interval.high);
            ses_figure_cell(t, "%zu", x->results);
        }
}

static void put_comparison(ses_ablate *s, const ses_ablate_comparison *c, ses_figure *t)
{
    for (size_t i = 0; i < c->n_pairs; i++) {
        const ses_ablate_pair *p = &c->pair[i];
        ses_figure_cell(t, "%s", s->column[c->column].name);
        ses_figure_cell(t, "%s > %s", s->run[p->better].name, s->run[p->worse].name);
        ses_figure_cell(t, "%.4g", p->published);
        ses_figure_cell(t, "%.3g", p->own.difference);
        if (isnan(p->own.low))
            ses_figure_cell(t, "-"), ses_figure_cell(t, "-");
        else
            ses_figure_cell(t, "%.3g to %.3g", p->own.low, p->own.high), ses_figure_cell(t, "%.2g", p->own.p);
        ses_figure_cell(t, "%s", ses_order_name(p->order));
    }
}

/* Both orders, then every step of the published one. */
static void put_comparisons(ses_ablate *s, ses_report *r)
{
    ses_figure *t = NULL;
    ses_ablate_comparison c;
    for (size_t k = 0; k < s->n_columns; k++) {
        if (!ses_ablate_compare(s, k, &c, NULL)) continue;
        if (!t) t = ses_report_table(r, "Order against the publication", "column|>runs|>Spearman|verdict");
        ses_figure_cell(t, "%s", s->column[k].name);
        ses_figure_cell(t, "%zu", c.n);
        isnan(c.spearman) ? ses_figure_cell(t, "-") : ses_figure_cell(t, "%.2f", c.spearman);
        ses_figure_cell(t, "%s", c.verdict);
    }
    t = NULL;
    for (size_t k = 0; k < s->n_columns; k++) {
        if (!ses_ablate_compare(s, k, &c, NULL)) continue;
        if (!t)
            t = ses_report_table(r, "Steps of the published order",
                                 "column|published|>difference|>ours|>interval|>p|verdict");
        put_comparison(s, &c, t);
    }
}

const char *const ses_ablate_cost_names[SES_ABLATE_COSTS] = { "pretraining", "tokens/s", "FLOPs",
                                                              "Wh",          "price",    "tasks" };

double ses_ablate_cost(const ses_ablate *s, size_t run, size_t cost)
{
    const ses_ablate_costs *c = &s->costs[run];
    const double value[SES_ABLATE_COSTS] = { c->seconds,    c->rate,  c->flops,
                                             c->watt_hours, c->price, c->task_seconds };
    return value[cost] > 0 ? value[cost] : NAN;
}

const char *ses_ablate_cost_text(double x, size_t cost, char *buf, size_t size)
{
    char time[SES_NUMBER_TEXT];
    if (isnan(x))
        snprintf(buf, size, "-");
    else if (cost == 0 || cost + 1 == SES_ABLATE_COSTS)
        snprintf(buf, size, "%s", ses_elapsed_text(time, x));
    else if (cost == 1)
        snprintf(buf, size, "%.0f", x);
    else
        snprintf(buf, size, "%.3g", x);
    return buf;
}

bool ses_ablate_has_cost(const ses_ablate *s, size_t cost)
{
    for (size_t i = 0; i < s->n_runs; i++)
        if (!isnan(ses_ablate_cost(s, i, cost))) return true;
    return false;
}

static void put_costs(const ses_ablate *s, ses_report *r)
{
    ses_buf columns = { 0 };
    char text[80];
    ses_buf_puts(&columns, "run");
    for (size_t k = 0; k < SES_ABLATE_COSTS; k++)
        if (ses_ablate_has_cost(s, k)) ses_buf_appendf(&columns, "|>%s", ses_ablate_cost_names[k]);
    ses_figure *t = ses_buf_ok(&columns, NULL) ? ses_report_table(r, "Costs", columns.data) : NULL;
    for (size_t i = 0; i < s->n_runs; i++) {
        ses_figure_cell(t, "%s", s->run[i].name);
        for (size_t k = 0; k < SES_ABLATE_COSTS; k++)
            if (ses_ablate_has_cost(s, k))
                ses_figure_cell(t, "%s",
                                ses_ablate_cost_text(ses_ablate_cost(s, i, k), k, text, sizeof text));
    }
    ses_buf_free(&columns);
}

/* ---- notes ---- */

static void put_failures(const ses_ablate *s, ses_report *r)
{
    enum { SHOWN = 8 };
    size_t n = 0;
    for (size_t i = 0; i < s->n_jobs; i++) {
        const ses_ablate_job *j = &s->job[i];
        if (j->base.state != SES_JOB_FAILED || n++ >= SHOWN) continue;
        ses_report_note(r, "%s has no score: %s.", j->base.name, j->base.reason);
    }
    if (n > SHOWN) ses_report_note(r, "%zu more jobs have failed: see ablate.json.", n - SHOWN);
}

/* The most jobs at a time while a pretraining run was measured. */
static int64_t most_at_once(const ses_ablate *s)
{
    int64_t most = 1, n;
    for (size_t i = 0; i < s->n_jobs; i++)
        if (s->job[i].record && ses_json_int(ses_json_get(ses_json_root(s->job[i].record), "at_once"), &n) &&
            n > most)
            most = n;
    return most;
}

const char *ses_ablate_interval_text(const ses_ablate *s, const char *sign, char *buf, size_t size)
{
    bool tunes = false, single = false; /* single: a row of one model, next to rows of several */
    for (size_t i = 0; i < s->n_tasks; i++) tunes |= s->task[i].tunes;
    for (size_t i = 0; i < s->n_runs; i++) single |= ses_ablate_models_of(s, i) == 1;
    *buf = 0;
    if (s->n_pretrain_seeds > 1)
        snprintf(buf, size,
                 "%s is half the %g %% interval of the mean over %zu pretrained models (Student's t); "
                 "a model counts with its mean over %zu fine-tuning seeds.%s",
                 sign, s->a->confidence, s->n_pretrain_seeds, tunes ? s->n_seeds : 1,
                 single && tunes ? " Rows of one given model: over the fine-tuning seeds." : "");
    else if (tunes && s->n_seeds > 1)
        snprintf(buf, size,
                 "%s is half the %g %% interval of the mean over %zu fine-tuning seeds of one pretrained "
                 "model (Student's t). It has no noise of pretraining: \"pretrain-seeds\" measures it.",
                 sign, s->a->confidence, s->n_seeds);
    return buf;
}

/* Names in "scores" that no finished run has: perhaps misspelled. */
static void put_missing_scores(const ses_ablate *s, ses_report *r)
{
    for (size_t k = 0; k < s->n_columns; k++) {
        size_t finished = 0, found = 0;
        for (size_t i = 0; i < s->n_jobs; i++)
            finished += s->job[i].task == SIZE_MAX && s->job[i].base.state == SES_JOB_DONE;
        for (size_t i = 0; i < s->n_runs; i++) found += ses_ablate_entry_at(s, i, k)->n;
        if (s->column[k].kind == SES_COLUMN_SCORE && finished && !found)
            ses_report_note(
                r, "No run has the score \"%s\": all_results.json of a run has the names, as eval_...",
                s->column[k].name);
    }
}

static void put_notes(const ses_ablate *s, ses_report *r)
{
    char text[400];
    if (*ses_ablate_interval_text(s, "+-", text, sizeof text)) ses_report_note(r, "%s", text);
    if (s->n_averaged > 1) ses_report_note(r, "mean: of %zu tasks with the same seed.", s->n_averaged);
    if (most_at_once(s) > 1)
        ses_report_note(r,
                        "Up to %" PRId64
                        " jobs ran at a time: their times are longer than alone, and a measured "
                        "energy contains that of the others.",
                        most_at_once(s));
    for (size_t i = 0; i < s->n_tasks; i++)
        if (*ses_ablate_overlap_text(s, i, text, sizeof text)) ses_report_note(r, "%s.", text);
    if (s->source) ses_report_note(r, "Published numbers: %s", s->source);
    put_missing_scores(s, r);
    put_failures(s, r);
}

/* ---- output ---- */

static void fill(ses_ablate *s, ses_report *r)
{
    ses_report_set_title(r, "%s", ses_ablate_title(s));
    put_scores(s, r);
    put_intervals(s, r);
    put_comparisons(s, r);
    put_costs(s, r);
}

const char *ses_ablate_title(const ses_ablate *s) { return s->title ? s->title : "Ablation study"; }

typedef struct output {
    char *svg, *flops, *html, *settings;
} output;

static bool open_output(const ses_ablate *s, output *o, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (w) ses_json_put_value(w, ses_json_root(s->recipe));
    o->settings = w ? ses_json_writer_take(w, NULL, e) : NULL;
    ses_json_writer_free(w);
    o->svg = ses_path_join(s->a->output, "ablate.svg", e);
    o->flops = ses_path_join(s->a->output, "ablate-flops.svg", e);
    o->html = ses_path_join(s->a->output, "ablate.html", e);
    return o->settings && o->svg && o->flops && o->html;
}

/* A picture with some plots; none is written if there are none. */
static bool write_plots(ses_ablate *s, const ses_report_head *h, const char *path,
                        size_t (*put)(ses_ablate *, ses_report *), ses_err *e)
{
    ses_report *r = ses_report_new(e);
    if (!r) return false;
    ses_report_set_title(r, "%s", ses_ablate_title(s));
    size_t n = put(s, r);
    bool ok = ses_report_ok(r, e) && (!n || ses_report_write_files(r, h, path, NULL, true, e));
    ses_report_free(r);
    return ok;
}

bool ses_ablate_show(ses_ablate *s, ses_err *e)
{
    output o = { 0 };
    ses_report *r = ses_report_new(e), *page = r ? ses_report_new(e) : NULL;
    bool ok = page && open_output(s, &o, e);
    ses_report_head h = {
        .analysis = "ablate", .title = ses_ablate_title(s), .command = s->command, .settings = o.settings
    };
    if (ok) {
        fill(s, r);
        put_notes(s, r);
        fill(s, page);
        ses_ablate_put_plots(s, page);
        ses_ablate_put_cost_plots(s, page);
        put_notes(s, page);
        ses_ablate_put_json(s, ses_report_json(page));
    }
    ok = ok && ses_report_ok(r, e) && ses_report_ok(page, e) &&
         ses_report_write_files(page, &h, NULL, o.html, true, e) &&
         write_plots(s, &h, o.svg, ses_ablate_put_plots, e) &&
         write_plots(s, &h, o.flops, ses_ablate_put_cost_plots, e) && ses_ablate_write_markdown(s, e) &&
         (s->a->compute.json ? ses_ablate_print_json(s, e) : ses_report_print(r, &s->c->out, e));
    ses_report_free(r);
    ses_report_free(page);
    ses_free(o.svg);
    ses_free(o.flops);
    ses_free(o.html);
    ses_free(o.settings);
    return ok;
}
