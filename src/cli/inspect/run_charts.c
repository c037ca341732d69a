/* Curves of training runs. */
#include "run_figures.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { MAX_CHARTS = 12 };

typedef struct chart {
    const char *title, *x_label, *y_label;
    int show; /* beside the flags of all charts */
} chart;

/* A curve needs two points in one run: single dots are in the tables. */
static bool has_two_points(const ses_series *const *line, size_t n)
{
    int most = 0;
    for (size_t i = 0; i < n && most < 2; i++) {
        int points = 0;
        for (size_t k = 0; line[i] && k < line[i]->n && points < 2; k++)
            points += isfinite(line[i]->value[k]);
        if (points > most) most = points;
    }
    return most == 2;
}

/* Adds a line per run, in the order of their colors; line[i] NULL: none. */
static void put_lines(ses_report *report, const ses_run_records *l, const ses_series *const *line,
                      const chart *c)
{
    static const double none[1];
    bool smoothed = false;
    if (!has_two_points(line, l->n)) return;
    ses_figure *f = ses_report_lines(report, c->title, c->x_label, c->y_label);
    ses_figure_show(f, SES_SHOW_SMALL | SES_SHOW_NO_KEY | SES_SHOW_LAST | SES_SHOW_ZERO | c->show);
    for (size_t i = 0; i < l->n; i++) {
        ses_figure_line(f, &(ses_figure_series){ .name = l->item[i].name,
                                                 .n = line[i] ? (int64_t)line[i]->n : 0,
                                                 .x = line[i] ? line[i]->step : none,
                                                 .y = line[i] ? line[i]->value : none });
        smoothed |= c->show & SES_SHOW_SMOOTH && line[i] && line[i]->n >= SES_SMOOTHED_POINTS;
    }
    if (smoothed) ses_figure_note(f, "Line: smoothed. Faint: every update.");
}

static bool put_series(ses_report *report, const ses_run_records *l, const char *series, chart c, ses_err *e)
{
    const ses_series **line = ses_alloc_array(l->n, sizeof *line, e);
    if (!line) return false;
    for (size_t i = 0; i < l->n; i++) line[i] = ses_run_record_series(&l->item[i], series);
    c.x_label = "updates";
    put_lines(report, l, line, &c);
    ses_free((void *)line);
    return true;
}

/* ---- losses ---- */

/* Cross entropies are in nats; other losses have no common unit. */
static const char *loss_label(const ses_run_records *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const ses_json *o = l->item[i].options;
        const char *task = o ? ses_json_string(ses_json_get(o, "task"), NULL) : NULL,
                   *objective = o ? ses_json_string(ses_json_get(o, "objective"), NULL) : NULL;
        const ses_json *teacher = o ? ses_json_get(o, "teacher") : NULL; /* a name or a list */
        bool nats = task ? strcmp(task, "regress") && strcmp(task, "embed") && strcmp(task, "multi_label")
                         : objective && (!strcmp(objective, "mlm") || !strcmp(objective, "clm"));
        if (!nats || ses_json_string(teacher, NULL) || ses_json_len(teacher)) return "loss";
    }
    return "cross-entropy loss (nats)";
}

static bool is_evaluation_loss(const char *name)
{
    size_t n = strlen(name);
    return !strncmp(name, "eval_", 5) && !strcmp(name + n - 4, "loss");
}

void ses_run_losses_put(ses_report *report, const ses_run_record *r)
{
    size_t losses = 0;
    ses_figure *f = ses_report_lines(report, r->name, "updates", "loss");
    ses_figure_show(f, SES_SHOW_SMOOTH | SES_SHOW_LAST | SES_SHOW_ZERO);
    for (size_t i = 0; i < r->n_series; i++) losses += is_evaluation_loss(r->series[i].name);
    for (size_t i = 0; i < r->n_series; i++) {
        const ses_series *s = &r->series[i];
        bool repeats = losses == 2 && !strcmp(s->name, "eval_loss"); /* the loss of a single objective */
        if (strcmp(s->name, "loss") && (!is_evaluation_loss(s->name) || repeats)) continue;
        ses_figure_line(
            f, &(ses_figure_series){ .name = s->name, .n = (int64_t)s->n, .x = s->step, .y = s->value });
    }
}

/* ---- scores ---- */

/* Metrics of the runs; accuracies of runs whose metric is the loss. */
static bool is_charted(const ses_run_record *r, const char *series)
{
    size_t n = strlen(series), suffix = strlen("_accuracy");
    if (!strcmp(series, "eval_loss") || strncmp(series, "eval_", 5)) return false;
    if (!strcmp(series, r->metric)) return true;
    return !strcmp(r->metric, "eval_loss") && n > suffix && !strcmp(series + n - suffix, "_accuracy");
}

static bool put_scores(ses_report *report, const ses_run_records *l, ses_err *e)
{
    const char *shown[MAX_CHARTS];
    size_t n = 0;
    bool ok = true;
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; ok && k < l->item[i].n_series && n < MAX_CHARTS; k++) {
            const char *name = l->item[i].series[k].name;
            bool new = is_charted(&l->item[i], name);
            for (size_t x = 0; x < n; x++) new &= strcmp(shown[x], name) != 0;
            if (!new) continue;
            shown[n++] = name;
            char title[96];
            snprintf(title, sizeof title, "Evaluation: %s", name + strlen("eval_"));
            ok = put_series(report, l, name, (chart){ .title = title, .y_label = name + strlen("eval_") }, e);
        }
    return ok;
}

/* ---- the score against the cost ---- */

/* The cost of a run up to a step; NaN: unknown. */
typedef double cost_fn(const ses_run_record *r, double step);

/* As logged by the evaluation at this step. */
static double flops_at(const ses_run_record *r, double step)
{
    const ses_series *s = ses_run_record_series(r, "total_flos");
    for (size_t i = 0; s && i < s->n; i++)
        if (s->step[i] == step) return s->value[i];
    return NAN;
}

/* The log has no times, so that resumed runs have the same log: an update takes the mean time of all. */
static double seconds_at(const ses_run_record *r, double step)
{
    const ses_series *loss = ses_run_record_series(r, "loss");
    double seconds = ses_run_record_number(r, "train_runtime"), last = loss ? loss->step[loss->n - 1] : 0;
    return last > 0 ? seconds * step / last : NAN;
}

/* The score of a run over its cost; free its arrays. */
static bool make_series(const ses_run_record *r, cost_fn *cost, double unit, ses_series *out, ses_err *e)
{
    const ses_series *score = ses_run_record_series(r, r->metric);
    *out = (ses_series){ 0 };
    if (!score) return true;
    out->step = ses_alloc_array(score->n, sizeof *out->step, e);
    out->value = out->step ? ses_alloc_array(score->n, sizeof *out->value, e) : NULL;
    for (size_t i = 0; out->value && i < score->n; i++) {
        double x = cost(r, score->step[i]);
        if (isfinite(x)) out->step[out->n] = x / unit, out->value[out->n++] = score->value[i];
    }
    return out->value != NULL;
}

static double largest(const ses_run_records *l, cost_fn *cost)
{
    double most = 0;
    for (size_t i = 0; i < l->n; i++) {
        const ses_series *score = ses_run_record_series(&l->item[i], l->item[i].metric);
        double x = score && score->n ? cost(&l->item[i], score->step[score->n - 1]) : NAN;
        if (x > most) most = x;
    }
    return most;
}

static bool put_cost(ses_report *report, const ses_run_records *l, cost_fn *cost, double unit, const chart *c,
                     ses_err *e)
{
    ses_series *series = ses_alloc_array(l->n, sizeof *series, e);
    const ses_series **line = series ? ses_alloc_array(l->n, sizeof *line, e) : NULL;
    bool ok = line != NULL;
    for (size_t i = 0; ok && i < l->n; i++) {
        ok = make_series(&l->item[i], cost, unit, &series[i], e);
        line[i] = series[i].n ? &series[i] : NULL;
    }
    if (ok) put_lines(report, l, line, c);
    for (size_t i = 0; series && i < l->n; i++) ses_free(series[i].step), ses_free(series[i].value);
    ses_free(series);
    ses_free((void *)line);
    return ok;
}

/* If all of several runs have the same metric. Costs of one run are proportional to its updates: the curve is
 * that of the score. */
static bool put_costs(ses_report *report, const ses_run_records *l, ses_err *e)
{
    char title[112], label[48];
    if (l->n < 2) return true;
    for (size_t i = 0; i < l->n; i++)
        if (!*l->item[i].metric || strcmp(l->item[i].metric, l->item[0].metric)) return true;
    double flops = l->n ? largest(l, flops_at) : 0, seconds = l->n ? largest(l, seconds_at) : 0;
    int power = flops > 0 ? (int)floor(log10(flops)) - 1 : 0; /* ticks are whole numbers */
    const char *name = l->n ? l->item[0].metric + strlen("eval_") : "";
    const chart c = { title, label, name, 0 };
    snprintf(title, sizeof title, "Score against FLOPs: %s", name);
    snprintf(label, sizeof label, "1e%d FLOPs of training", power);
    if (flops > 0 && !put_cost(report, l, flops_at, pow(10, power), &c, e)) return false;
    double unit = seconds > 7200 ? 3600 : seconds > 120 ? 60 : 1;
    snprintf(title, sizeof title, "Score against time: %s", name);
    snprintf(label, sizeof label, "%s of training", unit > 60 ? "hours" : unit > 1 ? "minutes" : "seconds");
    return !(seconds > 0) || put_cost(report, l, seconds_at, unit, &c, e);
}

bool ses_run_charts_put(ses_report *report, const ses_run_records *l, ses_err *e)
{
    const char *loss = loss_label(l);
    chart training = { .title = "Training loss", .y_label = loss, .show = SES_SHOW_SMOOTH },
          evaluation = { .title = "Evaluation loss", .y_label = loss },
          rate = { .title = "Learning rate", .y_label = "learning rate" },
          norm = { .title = "Gradient norm", .y_label = "L2 norm, before clipping", .show = SES_SHOW_SMOOTH };
    return put_series(report, l, "loss", training, e) && put_series(report, l, "eval_loss", evaluation, e) &&
           put_scores(report, l, e) && put_costs(report, l, e) &&
           put_series(report, l, "learning_rate", rate, e) && put_series(report, l, "grad_norm", norm, e);
}
