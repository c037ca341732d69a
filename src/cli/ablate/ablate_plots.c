/* Plots of a study. */
#include "ablate_show.h"

#include "base/alloc.h"
#include "math/pareto.h"
#include "metric/score_range.h"

#include <math.h>
#include <string.h>

/* ---- scores ---- */

static void label_of(const ses_ablate *s, const ses_ablate_column *c, char *buf, size_t size)
{
    const char *metric = c->kind == SES_COLUMN_TASK ? s->task[c->task].metric : "";
    snprintf(buf, size, "%s%s%s%s", c->name, *metric ? ", " : "", metric,
             c->lower_is_better ? " (lower is better)" : "");
}

/* The least value of the scores of a column. */
static double least_of(const ses_ablate *s, const ses_ablate_column *c)
{
    return ses_metric_least(c->kind == SES_COLUMN_TASK ? s->task[c->task].metric : c->name);
}

static bool has_values(const ses_ablate *s, size_t column)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_runs; i++) n += ses_ablate_entry_at(s, i, column)->n > 0;
    return n > 0;
}

/* A row per run that has the column. */
static bool put_intervals(const ses_ablate *s, size_t column, ses_report *r)
{
    const ses_ablate_column *c = &s->column[column];
    char label[200];
    size_t n = 0;
    const char **name = ses_alloc_array(s->n_runs, sizeof *name, NULL);
    double *x = name ? ses_alloc_array(3 * s->n_runs, sizeof *x, NULL) : NULL;
    if (!x) return ses_free(name), false;
    for (size_t i = 0; i < s->n_runs; i++) {
        const ses_mean_interval *m = &ses_ablate_entry_at(s, i, column)->interval;
        if (!ses_ablate_has_column(s, i, column)) continue;
        name[n] = s->run[i].name;
        x[n] = c->scale * m->mean;
        x[s->n_runs + n] = isnan(m->low) ? m->low : c->scale * fmax(m->low, least_of(s, c));
        x[2 * s->n_runs + n] = c->scale * m->high;
        if (!c->lower_is_better && x[2 * s->n_runs + n] > 100) /* NaN: no interval */
            x[2 * s->n_runs + n] = 100;                        /* no score is above it */
        n++;
    }
    label_of(s, c, label, sizeof label);
    ses_report_intervals(
        r, label,
        &(ses_figure_intervals){
            .n = (int64_t)n, .name = name, .value = x, .low = x + s->n_runs, .high = x + 2 * s->n_runs });
    ses_free(x);
    ses_free(name);
    return true;
}

/* The numbers of a grid with one option; false: there is more, fewer than three, or a text. */
static bool axis_of(const ses_ablate *s, double *least, double *greatest)
{
    const ses_json *values = ses_json_at(s->grid, 0);
    double x;
    *least = INFINITY, *greatest = -INFINITY;
    for (size_t i = 0; i < ses_json_len(values); i++) {
        if (!ses_json_real(ses_json_at(values, i), &x)) return false;
        *least = fmin(*least, x);
        *greatest = fmax(*greatest, x);
    }
    return ses_json_len(s->grid) == 1 && ses_json_len(values) >= 3;
}

/* The runs of one entry of "runs", from `first` on, as a curve if they have the column; returns how many. */
static size_t put_curve(const ses_ablate *s, size_t column, size_t first, double *buf, ses_figure *f)
{
    const ses_ablate_column *c = &s->column[column];
    double *x = buf, *y = x + s->n_runs, *low = y + s->n_runs, *high = low + s->n_runs;
    size_t n = 0, end = first;
    bool band = false;
    const char *name = s->run[first].entry;
    for (; end < s->n_runs && s->run[end].change == s->run[first].change && s->run[end].pretrains; end++) {
        const ses_mean_interval *m = &ses_ablate_entry_at(s, end, column)->interval;
        ses_json_real(ses_json_at(ses_json_at(s->grid, 0), s->run[end].at[0]), &x[n]);
        y[n] = c->scale * m->mean;
        low[n] = isnan(m->low) ? y[n] : c->scale * fmax(m->low, least_of(s, c));
        high[n] = isnan(m->high) ? y[n] : c->scale * m->high;
        band |= !isnan(m->low);
        n++;
    }
    if (!ses_ablate_has_column(s, first, column)) return n;
    ses_figure_line(f, &(ses_figure_series){ .name = *name ? name : s->column[column].name,
                                             .n = (int64_t)n,
                                             .x = x,
                                             .y = y,
                                             .low = band ? low : NULL,
                                             .high = band ? high : NULL });
    return n;
}

static bool put_curves(const ses_ablate *s, size_t column, bool log_x, ses_report *r)
{
    char label[200];
    double *buf = ses_alloc_array(4 * s->n_runs, sizeof *buf, NULL);
    if (!buf) return false;
    label_of(s, &s->column[column], label, sizeof label);
    ses_figure *f = ses_report_lines(r, label, ses_json_key(s->grid, 0, NULL), "");
    if (log_x) ses_figure_log_x(f);
    for (size_t i = 0; i < s->n_runs;) i += s->run[i].pretrains ? put_curve(s, column, i, buf, f) : 1;
    ses_free(buf);
    return true;
}

size_t ses_ablate_put_plots(ses_ablate *s, ses_report *r)
{
    double least, greatest;
    size_t n = 0;
    bool curves = axis_of(s, &least, &greatest);
    for (size_t k = 0; k < s->n_columns; k++)
        if (has_values(s, k))
            n += curves ? put_curves(s, k, least > 0 && greatest > 20 * least, r) : put_intervals(s, k, r);
    return n;
}

/* ---- scores against costs ---- */

/* The mean, or else the first task, or else the first score. */
static size_t main_column(const ses_ablate *s)
{
    for (size_t k = s->n_columns; k-- > 0;)
        if (s->column[k].kind == SES_COLUMN_MEAN) return k;
    for (size_t k = 0; k < s->n_columns; k++)
        if (s->column[k].kind == SES_COLUMN_TASK) return k;
    return 0;
}

typedef struct points {
    double *x, *y, *better;
    const char **name;
    bool *on_front;
    size_t n;
} points;

static bool collect(const ses_ablate *s, size_t column, size_t cost, double unit, points *p)
{
    const ses_ablate_column *c = &s->column[column];
    for (size_t i = 0; i < s->n_runs; i++) {
        double x = ses_ablate_cost(s, i, cost),
               y = c->scale * ses_ablate_entry_at(s, i, column)->interval.mean;
        if (!isfinite(x) || !isfinite(y)) continue;
        p->x[p->n] = x / unit;
        p->y[p->n] = y;
        p->better[p->n] = c->lower_is_better ? -y : y;
        p->name[p->n++] = s->run[i].name;
    }
    return p->n > 1 && ses_pareto_mark(p->better, p->x, p->n, p->on_front, NULL);
}

static size_t put_cost(const ses_ablate *s, size_t column, size_t cost, double unit, const char *x_label,
                       ses_report *r)
{
    char label[200], title[240];
    points p = { 0 };
    p.x = ses_alloc_array(3 * s->n_runs, sizeof *p.x, NULL);
    p.name = ses_alloc_array(s->n_runs, sizeof *p.name, NULL);
    p.on_front = ses_alloc_array(s->n_runs, sizeof *p.on_front, NULL);
    bool ok = p.x && p.name && p.on_front;
    if (ok) p.y = p.x + s->n_runs, p.better = p.y + s->n_runs;
    ok = ok && collect(s, column, cost, unit, &p);
    label_of(s, &s->column[column], label, sizeof label);
    snprintf(title, sizeof title, "%s against %s", s->column[column].name, x_label);
    if (ok)
        ses_report_tradeoff(r, title, x_label, label,
                            &(ses_figure_tradeoff){ .n = (int64_t)p.n,
                                                    .x = p.x,
                                                    .y = p.y,
                                                    .name = p.name,
                                                    .on_front = p.on_front,
                                                    .original = -1,
                                                    .chosen = -1,
                                                    .limit = NAN });
    ses_free(p.x);
    ses_free(p.name);
    ses_free(p.on_front);
    return ok;
}

size_t ses_ablate_put_cost_plots(ses_ablate *s, ses_report *r)
{
    enum { TIME = 0, FLOPS = 2 };
    if (!s->n_columns || !ses_ablate_has_cost(s, FLOPS)) return 0;
    size_t column = main_column(s);
    return put_cost(s, column, FLOPS, 1e15, "pretraining FLOPs (1e15)", r) +
           put_cost(s, column, TIME, 1, "pretraining seconds", r);
}
