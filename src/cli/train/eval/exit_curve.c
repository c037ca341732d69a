/* eval --exit curve: a table and a plot of the score against the layers used. */
#include "exit_curve.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "cli/train/command_text.h"
#include "cli/ui/report_output.h"
#include "cli/ui/show_values.h"

#include <math.h>
#include <string.h>

static const ses_opt opt[] = {
    SES_OPT_TEXT(ses_exit_curve_args, svg, "svg", "FILE", "with --exit curve: write the plot as SVG"),
    SES_OPT_TEXT(ses_exit_curve_args, html, "html", "FILE",
                 "with --exit curve: write the table and the plot as a page"),
    SES_OPT_FLAG(ses_exit_curve_args, overwrite, "overwrite", "with --exit curve: replace existing files",
                 .of_call = true),
};
const ses_opt_table ses_exit_curve_option_table = { opt, SES_LEN(opt), "exits" };

bool ses_exit_curve_requested(const char *exit) { return exit && !strcmp(exit, "curve"); }

bool ses_exit_curve_args_check(const ses_exit_curve_args *a, const char *exit, ses_err *e)
{
    const char *path[] = { a->svg, a->html };
    if ((a->svg || a->html || a->overwrite) && !ses_exit_curve_requested(exit))
        return ses_fail(e, SES_EUSAGE, "--svg, --html and --overwrite need --exit curve");
    if (a->overwrite && !a->svg && !a->html)
        return ses_fail(e, SES_EUSAGE, "--overwrite needs --svg or --html");
    for (size_t i = 0; i < SES_LEN(path); i++)
        if (path[i] && !a->overwrite && ses_path_exists(path[i]))
            return ses_fail(e, SES_EUSAGE, "%s exists: --overwrite replaces it", path[i]);
    return true;
}

/* ---- points ---- */

typedef struct point {
    char rule[32];
    ses_exit_rule kind;
    double score, layers, seconds;
    int64_t *counts; /* [depth + 1] texts by layers passed */
} point;

typedef struct curve {
    const char *metric;
    point *point; /* the first is the whole model */
    size_t n, depth, texts;
} curve;

static void curve_free(curve *v)
{
    for (size_t i = 0; v->point && i < v->n; i++) ses_free(v->point[i].counts);
    ses_free(v->point);
}

/* Evaluates the file with the rule of the point. */
static bool measure(ses_predictor *p, const char *file, curve *v, point *x, ses_err *e)
{
    ses_eval_report r = { 0 };
    if (!ses_predictor_set_exit(p, x->rule, e)) return false;
    double begin = ses_seconds();
    bool ok = ses_predictor_evaluate(p, file, &r, e);
    x->seconds = ses_seconds() - begin;
    ses_free(x->counts);
    x->counts = NULL;
    if (ok && !ses_scores_find(&r.scores, v->metric, &x->score)) x->score = NAN;
    x->layers = r.mean_layers;
    x->counts = r.exit_counts;
    r.exit_counts = NULL;
    v->depth = r.n_layers, v->texts = r.n;
    ses_eval_report_free(&r);
    return ok && (x->counts || ses_fail(e, SES_EUNSUPPORTED,
                                        "exit: the model has no classifiers after inner layers: train them "
                                        "with 'sesame finetune --exits joint' or '--exits frozen'"));
}

static bool measure_all(ses_predictor *p, const char *file, curve *v, ses_err *e)
{
    static const double thresholds[] = { 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9 };
    point whole = { .rule = "never" };
    /* the first pass also reads and packs the weights */
    bool ok = measure(p, file, v, &whole, e) && measure(p, file, v, &whole, e);
    size_t patience = ok ? (size_t)ses_predictor_exit_count(p) : 0, n = 1;
    v->point = ses_alloc_array(1 + SES_LEN(thresholds) + patience, sizeof *v->point, e);
    if (!v->point) return ses_free(whole.counts), false;
    v->point[0] = whole;
    v->n = 1;
    for (size_t i = 0; ok && i < SES_LEN(thresholds) + patience; i++, n++) {
        point *x = &v->point[v->n++];
        bool entropy = i < SES_LEN(thresholds);
        x->kind = entropy ? SES_EXIT_ENTROPY : SES_EXIT_PATIENCE;
        if (entropy)
            snprintf(x->rule, sizeof x->rule, "entropy:%g", thresholds[i]);
        else
            snprintf(x->rule, sizeof x->rule, "patience:%zu", i - SES_LEN(thresholds) + 1);
        ok = measure(p, file, v, x, e);
    }
    return ok;
}

/* ---- output ---- */

static double by_layers(const curve *v, const point *x) { return (double)v->depth / x->layers; }
static double by_time(const curve *v, const point *x) { return v->point[0].seconds / x->seconds; }

static void put_all(const curve *v, ses_json_writer *w)
{
    ses_json_begin_object(w);
    ses_json_member_string(w, "metric", v->metric);
    ses_json_member_int(w, "layers", (int64_t)v->depth);
    ses_json_member_int(w, "texts", (int64_t)v->texts);
    ses_json_member_array(w, "rules");
    for (size_t i = 0; i < v->n; i++) {
        const point *x = &v->point[i];
        ses_json_begin_object(w);
        ses_json_member_string(w, "rule", x->rule);
        ses_json_member_real(w, v->metric, x->score);
        ses_json_member_real(w, "mean_layers", x->layers);
        ses_json_member_real(w, "speedup_by_layers", by_layers(v, x));
        ses_json_member_real(w, "seconds", x->seconds);
        ses_json_member_real(w, "speedup_by_time", by_time(v, x));
        ses_json_member_array(w, "fractions"); /* texts that leave after layer 1, 2, ... */
        for (size_t k = 1; k <= v->depth; k++)
            ses_json_put_real(w, (double)x->counts[k] / (double)(v->texts ? v->texts : 1));
        ses_json_end_array(w);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
}

/* "2: 41 %, 5: 30 %": the three layers at which most texts leave. */
static void layers_text(const curve *v, const point *x, char *buf, size_t size)
{
    size_t shown[3] = { 0 };
    *buf = 0;
    for (size_t i = 0; i < SES_LEN(shown); i++) {
        size_t best = 0;
        for (size_t k = 1; k <= v->depth; k++) {
            bool used = k == shown[0] || k == shown[1] || !x->counts[k];
            if (!used && (!best || x->counts[k] > x->counts[best])) best = k;
        }
        if (!best) break;
        shown[i] = best;
        size_t at = strlen(buf);
        snprintf(buf + at, size - at, "%s%zu: %.0f %%", i ? ", " : "", best,
                 100 * (double)x->counts[best] / (double)v->texts);
    }
}

static void put_table(const curve *v, ses_report *r)
{
    char columns[160], leave[96];
    snprintf(columns, sizeof columns, "rule|>%s|>layers|>by layers|>seconds|>by time|most texts leave at",
             v->metric);
    ses_figure *t = ses_report_table(r, "Early exit", columns);
    for (size_t i = 0; i < v->n; i++) {
        const point *x = &v->point[i];
        layers_text(v, x, leave, sizeof leave);
        ses_figure_cell(t, "%s", x->rule);
        ses_figure_cell(t, "%.4f", x->score);
        ses_figure_cell(t, "%.2f", x->layers);
        ses_figure_cell(t, "%.2fx", by_layers(v, x));
        ses_figure_cell(t, "%.2f", x->seconds);
        ses_figure_cell(t, "%.2fx", by_time(v, x));
        ses_figure_cell(t, "%s", leave);
    }
}

/* A line of the rules of one kind, by layers, and the whole model at its end. */
static bool put_line(const curve *v, ses_exit_rule kind, const char *name, ses_figure *f, ses_err *e)
{
    double *x = ses_alloc_array(2 * v->n, sizeof *x, e), *y = x + v->n;
    int64_t n = 0;
    if (!x) return false;
    for (size_t i = 0; i < v->n; i++) {
        const point *p = &v->point[i];
        int64_t at = n;
        if (i && p->kind != kind) continue;
        for (; at && x[at - 1] > p->layers; at--) x[at] = x[at - 1], y[at] = y[at - 1];
        x[at] = p->layers, y[at] = p->score;
        n++;
    }
    ses_figure_line(f, &(ses_figure_series){ .name = name, .n = n, .x = x, .y = y });
    ses_free(x);
    return true;
}

static bool fill(const curve *v, const char *file, ses_report *r, ses_err *e)
{
    ses_report_set_title(r, "Early exit: %s", ses_path_name_of(file).s);
    put_all(v, ses_report_json(r));
    put_table(v, r);
    ses_figure *f = ses_report_lines(r, "Score against layers used", "mean layers", v->metric);
    if (!put_line(v, SES_EXIT_ENTROPY, "entropy", f, e) || !put_line(v, SES_EXIT_PATIENCE, "patience", f, e))
        return false;
    ses_report_note(r,
                    "by layers: %zu layers / mean layers. by time: seconds of the whole model / seconds, "
                    "tokenization included, one pass each.",
                    v->depth);
    return ses_report_ok(r, e);
}

static bool show(const curve *v, const ses_predictor_args *a, const ses_exit_curve_args *files,
                 const char *file, const ses_call *c, ses_err *e)
{
    ses_command_text command = { 0 };
    ses_report *r = ses_report_new(e);
    bool ok = r && ses_command_text_make(c->command, c->args, &command, e);
    ses_report_head h = { .analysis = "exit",
                          .title = "early exit",
                          .model = ses_predictor_args_dir(a, c),
                          .command = command.line,
                          .settings = command.options,
                          .seed = (uint64_t)a->bootstrap.seed };
    ok = ok && fill(v, file, r, e) &&
         ses_report_write_files(r, &h, files->svg, files->html, files->overwrite, e);
    if (ok && a->compute.json) {
        ses_json_writer *w = ses_json_writer_new(0, e);
        if (w) put_all(v, w);
        ok = w && ses_json_writer_print(w, e);
    } else if (ok)
        ok = ses_report_print(r, &c->out, e);
    ses_report_free(r);
    ses_command_text_free(&command);
    return ok;
}

bool ses_exit_curve_run(ses_open_predictor *p, const ses_predictor_args *a, const ses_exit_curve_args *files,
                        const char *file, const ses_call *c, ses_err *e)
{
    curve v = { .metric = ses_predictor_metric(p->predictor) };
    bool ok = measure_all(p->predictor, file, &v, e) && show(&v, a, files, file, c, e);
    curve_free(&v);
    return ok;
}
