/* Regression scores: Pearson correlation; Spearman correlation (Pearson of the ranks, ties get their mean
 * rank); mean squared error. Correlations are NaN if one side is constant. */
#include "metric_impl.h"

#include <math.h>
#include <stdlib.h>

static bool measure(const ses_metric *m, ses_example_stats *r, ses_err *e)
{
    (void)m;
    const ses_evaluation *v = r->v;
    /* work: both columns, then the `ranked` entries of one */
    if (!ses_example_stats_new(r, 2, 6 * v->n, e)) return false;
    for (size_t i = 0; i < v->n; i++) {
        r->x[2 * i] = v->true_reals[i], r->x[2 * i + 1] = v->pred_reals[i];
        if (!isfinite(r->x[2 * i]) || !isfinite(r->x[2 * i + 1]))
            return ses_fail(e, SES_EARG, "example %zu: not a finite number", i);
    }
    return true;
}

/* Two passes: subtract the means first. */
static double correlate(const double *a, const double *b, size_t n)
{
    double ma = 0, mb = 0, aa = 0, bb = 0, ab = 0;
    for (size_t i = 0; i < n; i++) ma += a[i], mb += b[i];
    ma /= (double)n, mb /= (double)n;
    bool flat_a = true, flat_b = true;
    for (size_t i = 0; i < n; i++) {
        double x = a[i] - ma, y = b[i] - mb;
        aa += x * x, bb += y * y, ab += x * y;
        flat_a = flat_a && a[i] == a[0], flat_b = flat_b && b[i] == b[0];
    }
    if (flat_a || flat_b || !(aa > 0) || !(bb > 0)) return NAN;
    double c = ab / (sqrt(aa) * sqrt(bb));
    return c > 1 ? 1 : c < -1 ? -1 : c;
}

/* Copies both columns to work. */
static void copy_columns(const ses_example_stats *r, const ses_resample *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const double *x = ses_example_stats_at(r, p, i);
        r->work[i] = x[0], r->work[p->n + i] = x[1];
    }
}

typedef struct ranked {
    double x, index;
} ranked;

static int ascending(const void *a, const void *b)
{
    double x = ((const ranked *)a)->x, y = ((const ranked *)b)->x;
    return (x > y) - (x < y);
}

/* Replaces x by its ranks, from 1. */
static void rank(double *x, size_t n, ranked *order)
{
    for (size_t i = 0; i < n; i++) order[i] = (ranked){ x[i], (double)i };
    qsort(order, n, sizeof *order, ascending);
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && order[j].x == order[i].x; j++) {}
        for (size_t k = i; k < j; k++) x[(size_t)order[k].index] = (double)(i + j + 1) / 2;
    }
}

static void pearson(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    copy_columns(r, p);
    ses_scores_put(out, correlate(r->work, r->work + p->n, p->n), "pearson");
}

static void spearman(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    copy_columns(r, p);
    ranked *order = (ranked *)(void *)(r->work + 2 * p->n);
    rank(r->work, p->n, order);
    rank(r->work + p->n, p->n, order);
    ses_scores_put(out, correlate(r->work, r->work + p->n, p->n), "spearmanr");
}

static void squared_error(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    double sum = 0;
    for (size_t i = 0; i < p->n; i++) {
        const double *x = ses_example_stats_at(r, p, i);
        sum += (x[0] - x[1]) * (x[0] - x[1]);
    }
    ses_scores_put(out, sum / (double)p->n, "mse");
}

const ses_metric ses_metric_pearson = { .name = "pearson",
                                        .description = "Pearson correlation",
                                        .kind = SES_METRIC_REALS,
                                        .measure = measure,
                                        .finish = pearson };
const ses_metric ses_metric_spearman = { .name = "spearman",
                                         .description = "Spearman rank correlation",
                                         .kind = SES_METRIC_REALS,
                                         .measure = measure,
                                         .finish = spearman };
const ses_metric ses_metric_squared_error = { .name = "squared_error",
                                              .description = "mean squared error",
                                              .lower_is_better = "mse",
                                              .kind = SES_METRIC_REALS,
                                              .measure = measure,
                                              .finish = squared_error };
