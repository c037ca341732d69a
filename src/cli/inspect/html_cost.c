/* Charts of the score against the FLOPs and the time of training. */
#include "base/alloc.h"
#include "cli/ui/svg_chart.h"
#include "html_parts.h"

#include <math.h>
#include <string.h>

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

static bool put_chart(ses_buf *b, const ses_run_records *l, cost_fn *cost, double unit, const char *title,
                      const char *x_label, ses_err *e)
{
    const char *metric = l->item[0].metric;
    ses_series *series = ses_alloc_array(l->n, sizeof *series, e);
    ses_chart_line *line = series ? ses_alloc_array(l->n, sizeof *line, e) : NULL;
    bool ok = line != NULL;
    for (size_t i = 0; ok && i < l->n; i++) {
        ok = make_series(&l->item[i], cost, unit, &series[i], e);
        line[i] = (ses_chart_line){ series[i].n ? &series[i] : NULL, l->item[i].name, i };
    }
    if (ok)
        ses_chart_put(b, &(ses_chart){ .title = title,
                                       .x_label = x_label,
                                       .y_label = metric + strlen("eval_"),
                                       .line = line,
                                       .n = l->n });
    for (size_t i = 0; series && i < l->n; i++) ses_free(series[i].step), ses_free(series[i].value);
    ses_free(series);
    ses_free(line);
    return ok;
}

bool ses_html_cost_charts_put(ses_buf *b, const ses_run_records *l, ses_err *e)
{
    char title[112], label[48];
    for (size_t i = 0; i < l->n; i++)
        if (!*l->item[i].metric || strcmp(l->item[i].metric, l->item[0].metric)) return true;
    double flops = l->n ? largest(l, flops_at) : 0, seconds = l->n ? largest(l, seconds_at) : 0;
    int power = flops > 0 ? (int)floor(log10(flops)) - 1 : 0; /* ticks are whole numbers */
    const char *name = l->n ? l->item[0].metric + strlen("eval_") : "";
    snprintf(title, sizeof title, "%s against FLOPs", name);
    snprintf(label, sizeof label, "10^%d FLOPs of training", power);
    if (flops > 0 && !put_chart(b, l, flops_at, pow(10, power), title, label, e)) return false;
    double unit = seconds > 7200 ? 3600 : seconds > 120 ? 60 : 1;
    snprintf(title, sizeof title, "%s against time", name);
    snprintf(label, sizeof label, "%s of training", unit > 60 ? "hours" : unit > 1 ? "minutes" : "seconds");
    return !(seconds > 0) || put_chart(b, l, seconds_at, unit, title, label, e);
}
