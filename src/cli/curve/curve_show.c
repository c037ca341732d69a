/* Results of a learning curve: tables and plot on the terminal, as SVG, HTML and JSON. */
#include "curve.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/number_text.h"
#include "cli/ui/show_values.h"
#include "metric/score_range.h"

#include <math.h>
#include <string.h>

/* Scores are shown in percent, unless they are losses; some are percentages already. */
static double scale_of(const ses_curve *v) { return v->lower_is_better || v->in_percent ? 1 : 100; }

/* ---- JSON ---- */

static void put_point(const ses_curve *v, size_t size, size_t method, ses_json_writer *w)
{
    ses_curve_point p = ses_curve_point_of(v, size, method);
    ses_json_begin_object(w);
    ses_json_member_string(w, "method", v->method[method]->name);
    v->size[size] ? ses_json_member_int(w, "size", v->size[size]) : ses_json_member_string(w, "size", "all");
    ses_json_member_int(w, "examples", p.examples);
    ses_json_member_int(w, "runs", (int64_t)p.score.n);
    ses_json_member_real(w, "mean", p.score.mean);
    ses_json_member_real(w, "deviation", p.score.deviation);
    ses_json_member_real(w, "low", p.score.low);
    ses_json_member_real(w, "high", p.score.high);
    ses_json_member_real(w, "train_seconds", p.train_seconds);
    ses_json_member_real(w, "train_joules", p.joules);
    ses_json_member_array(w, "scores");
    for (size_t k = 0; k < ses_curve_seeds_of(v, size, method); k++) {
        const ses_curve_run *x = ses_curve_run_at(v, size, method, k);
        ses_curve_is_done(x) ? ses_json_put_real(w, x->score) : ses_json_put_null(w);
    }
    ses_json_end_array(w);
    for (size_t k = 0; k < ses_curve_seeds_of(v, size, method); k++) {
        const ses_curve_run *x = ses_curve_run_at(v, size, method, k);
        if (!*x->base.reason) continue;
        ses_json_member_string(w, "failed", x->base.reason);
        break;
    }
    ses_json_end_object(w);
}

static void put_choice(const ses_curve *v, size_t size, ses_json_writer *w)
{
    ses_curve_choice c = ses_curve_choose(v, size);
    if (c.method == SIZE_MAX) return;
    ses_json_begin_object(w);
    v->size[size] ? ses_json_member_int(w, "size", v->size[size]) : ses_json_member_string(w, "size", "all");
    ses_json_member_string(w, "method", v->method[c.method]->name);
    ses_json_member_string(w, "best_mean", v->method[c.best]->name);
    ses_json_member_int(w, "within_noise", (int64_t)c.within_noise);
    ses_json_member_int(w, "incomplete", (int64_t)c.incomplete);
    ses_json_member_bool(w, "differences_known", c.known);
    ses_json_end_object(w);
}

void ses_curve_put(const void *curve, ses_json_writer *w)
{
    const ses_curve *v = curve;
    ses_json_member_string(w, "command", v->x.command);
    ses_json_member_string(w, "metric", v->metric);
    ses_json_member_bool(w, "lower_is_better", v->lower_is_better);
    ses_json_member_real(w, "confidence", v->a->confidence);
    ses_json_member_int(w, "eval_examples_in_train", (int64_t)v->overlap.shared);
    ses_json_member_array(w, "points");
    for (size_t s = 0; s < v->n_sizes; s++)
        for (size_t m = 0; m < v->n_methods; m++) put_point(v, s, m, w);
    ses_json_end_array(w);
    ses_json_member_array(w, "recommended");
    for (size_t s = 0; s < v->n_sizes; s++) put_choice(v, s, w);
    ses_json_end_array(w);
}

/* ---- tables ---- */

static void put_scores(const ses_curve *v, ses_report *r)
{
    ses_buf columns = { 0 };
    char text[24];
    ses_buf_puts(&columns, "method");
    for (size_t s = 0; s < v->n_sizes; s++)
        ses_buf_appendf(&columns, "|>%s", ses_curve_size_text(v->size[s], text));
    ses_figure *t =
        ses_buf_ok(&columns, NULL) ? ses_report_table(r, "Scores by examples", columns.data) : NULL;
    for (size_t m = 0; m < v->n_methods; m++) {
        ses_figure_cell(t, "%s", v->method[m]->name);
        for (size_t s = 0; s < v->n_sizes; s++) {
            ses_mean_interval x = ses_curve_point_of(v, s, m).score;
            double half = 0.5 * (x.high - x.low) * scale_of(v), mean = x.mean * scale_of(v);
            if (!x.n)
                ses_figure_cell(t, "-");
            else if (isnan(half))
                ses_figure_cell(t, "%.1f", mean);
            else
                ses_figure_cell(t, "%.1f +-%.1f", mean, half);
        }
    }
    ses_buf_free(&columns);
}

static void put_reason(const ses_curve *v, const ses_curve_choice *c, ses_figure *t)
{
    if (!c->known)
        ses_figure_cell(t, "best of one run each");
    else if (c->within_noise == 1)
        ses_figure_cell(t, v->n_methods > 1 ? "better than the others" : "the only method");
    else
        ses_figure_cell(t, "cheapest of %zu in noise", c->within_noise);
}

/* The part of an interval with values that the score can have: plots and texts show no other. */
static ses_mean_interval within_range(const ses_curve *v, ses_mean_interval x)
{
    double most = v->lower_is_better ? INFINITY : v->in_percent ? 100 : 1;
    if (isnan(x.low)) return x;
    x.low = fmax(x.low, ses_metric_least(v->metric));
    x.high = fmin(x.high, most);
    return x;
}

static void put_choices(const ses_curve *v, ses_report *r)
{
    char columns[160], text[24], time[SES_NUMBER_TEXT];
    snprintf(columns, sizeof columns, ">%s|method|>%s|>%g %% interval|>training|reason",
             v->a->per_class ? "of each class" : "examples", v->metric, v->a->confidence);
    ses_figure *t = ses_report_table(r, "Recommended", columns);
    for (size_t s = 0; s < v->n_sizes; s++) {
        ses_curve_choice c = ses_curve_choose(v, s);
        if (c.method == SIZE_MAX) continue;
        ses_curve_point p = ses_curve_point_of(v, s, c.method);
        ses_figure_cell(t, "%s", ses_curve_size_text(v->size[s], text));
        ses_figure_cell(t, "%s", v->method[c.method]->name);
        ses_figure_cell(t, "%.1f", scale_of(v) * p.score.mean);
        ses_mean_interval x = within_range(v, p.score);
        isnan(x.low) ? ses_figure_cell(t, "-")
                     : ses_figure_cell(t, "%.1f to %.1f", scale_of(v) * x.low, scale_of(v) * x.high);
        ses_figure_cell(t, "%s", ses_elapsed_text(time, p.train_seconds));
        put_reason(v, &c, t);
    }
}

/* ---- plot ---- */

static void put_line(const ses_curve *v, size_t method, double *buf, ses_figure *f)
{
    double *x = buf, *y = x + v->n_sizes, *low = y + v->n_sizes, *high = low + v->n_sizes;
    int64_t n = 0;
    bool band = false;
    for (size_t s = 0; s < v->n_sizes; s++) {
        ses_curve_point point = ses_curve_point_of(v, s, method);
        ses_mean_interval p = within_range(v, point.score);
        if (!p.n) continue;
        x[n] = fmax(1, (double)point.examples); /* examples of all classes */
        y[n] = scale_of(v) * p.mean;
        low[n] = isnan(p.low) ? y[n] : scale_of(v) * p.low;
        high[n] = isnan(p.high) ? y[n] : scale_of(v) * p.high;
        band |= !isnan(p.low);
        n++;
    }
    ses_figure_line(f, &(ses_figure_series){ .name = v->method[method]->name,
                                             .n = n,
                                             .x = x,
                                             .y = y,
                                             .low = band ? low : NULL,
                                             .high = band ? high : NULL });
}

static bool put_plot(const ses_curve *v, ses_report *r, ses_err *e)
{
    char label[80];
    double *buf = ses_alloc_array(4 * v->n_sizes, sizeof *buf, e);
    if (!buf) return false;
    snprintf(label, sizeof label, "%s%s", v->metric, scale_of(v) == 1 ? "" : " x 100");
    ses_figure *f = ses_report_lines(r, "Learning curves", "training examples", label);
    ses_figure_log_x(f);
    for (size_t m = 0; m < v->n_methods; m++) put_line(v, m, buf, f);
    ses_free(buf);
    return true;
}

/* Number of cells of a method before (size, seed) that failed for this reason. */
static size_t count_failures(const ses_curve *v, size_t method, const char *why, size_t size, size_t seed)
{
    size_t n = 0;
    for (size_t s = 0; s < v->n_sizes && s <= size; s++)
        for (size_t k = 0; k < ses_curve_seeds_of(v, s, method) && (s < size || k < seed); k++)
            n += !strcmp(ses_curve_run_at(v, s, method, k)->base.reason, why);
    return n;
}

/* One note for each reason. */
static void put_failures(const ses_curve *v, size_t m, ses_report *r)
{
    char text[24], more[60];
    for (size_t s = 0; s < v->n_sizes; s++)
        for (size_t k = 0; k < ses_curve_seeds_of(v, s, m); k++) {
            const char *why = ses_curve_run_at(v, s, m, k)->base.reason;
            if (!*why || count_failures(v, m, why, s, k)) continue;
            size_t n = count_failures(v, m, why, v->n_sizes, 0) - 1;
            *more = 0;
            if (n) snprintf(more, sizeof more, " The same reason: %zu more.", n);
            ses_report_note(r, "%s with %s examples, seed %lld, has no score: %s.%s", v->method[m]->name,
                            ses_curve_size_text(v->size[s], text), (long long)v->a->seed + (long long)k, why,
                            more);
        }
}

/* Methods that the recommendation does not compare, because seeds are missing. */
static void put_incomplete(const ses_curve *v, ses_report *r)
{
    char text[24];
    for (size_t s = 0; s < v->n_sizes; s++) {
        size_t n = ses_curve_choose(v, s).incomplete;
        if (n)
            ses_report_note(r,
                            "%s examples: %zu method%s without the scores of all %zu seeds %s not compared; "
                            "--resume runs the missing cells.",
                            ses_curve_size_text(v->size[s], text), n, n == 1 ? "" : "s", v->n_seeds,
                            n == 1 ? "is" : "are");
    }
}

static void put_notes(const ses_curve *v, ses_report *r)
{
    char text[400];
    if (v->n_seeds > 1)
        ses_report_note(
            r,
            "+- is half the %g %% interval of the mean over %zu seeds (Student's t); a seed draws the "
            "examples, the same for all methods, and the first weights.",
            v->a->confidence, v->n_seeds);
    else
        ses_report_note(r, "One seed: no intervals. --seeds 5 measures the noise.");
    ses_report_note(
        r, "Every run has a fixed number of updates; the evaluation data select neither checkpoint nor "
           "setting.");
    if (*ses_row_overlap_text(&v->overlap, ses_path_name_of(v->a->eval).s, text, sizeof text))
        ses_report_note(r, "%s.", text);
    if (!v->size[v->n_sizes - 1]) ses_report_note(r, "all: %zu examples.", ses_examples_count(v->train));
    put_incomplete(v, r);
    for (size_t m = 0; m < v->n_methods; m++) put_failures(v, m, r);
}

bool ses_curve_has_score(const ses_curve *v)
{
    for (size_t i = 0; i < v->n_sizes * v->n_methods * v->n_seeds; i++)
        if (ses_curve_is_done(&v->run[i])) return true;
    return false;
}

bool ses_curve_fill(const void *curve, ses_report *r, ses_err *e)
{
    const ses_curve *v = curve;
    ses_report_set_title(r, "Learning curves: %s", ses_path_name_of(v->a->train).s);
    if (ses_curve_has_score(v)) {
        put_scores(v, r);
        put_choices(v, r);
        if (!put_plot(v, r, e)) return false;
    }
    put_notes(v, r);
    return true;
}
