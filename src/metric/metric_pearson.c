/* Regression scores: Pearson correlation; Spearman correlation (Pearson of the ranks, ties get their mean
 * rank); mean squared error; coefficient of determination. Correlations are NaN if one side is constant. */
#include "math/correlation.h"
#include "metric_impl.h"

#include <math.h>

static bool measure(const ses_metric *m, ses_example_stats *r, ses_err *e)
{
    (void)m;
    const ses_evaluation *v = r->v;
    /* work: both columns, then the work of ses_spearman */
    if (!ses_example_stats_new(r, 2, 4 * v->n, e)) return false;
    for (size_t i = 0; i < v->n; i++) {
        r->x[2 * i] = v->true_reals[i], r->x[2 * i + 1] = v->pred_reals[i];
        if (!isfinite(r->x[2 * i]) || !isfinite(r->x[2 * i + 1]))
            return ses_fail(e, SES_EARG, "example %zu: not a finite number", i);
    }
    return true;
}

/* Copies both columns to work. */
static void copy_columns(const ses_example_stats *r, const ses_resample *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const double *x = ses_example_stats_at(r, p, i);
        r->work[i] = x[0], r->work[p->n + i] = x[1];
    }
}

static void pearson(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    copy_columns(r, p);
    ses_scores_put(out, ses_pearson(r->work, r->work + p->n, p->n), "pearson");
}

static void spearman(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    copy_columns(r, p);
    ses_scores_put(out, ses_spearman(r->work, r->work + p->n, p->n, r->work + 2 * p->n), "spearmanr");
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

/* R^2 = 1 - sum (true - predicted)^2 / sum (true - mean of true)^2; as scikit-learn's r2_score, 1 or 0 if all
 * true values are equal, and undefined for fewer than two. */
static void r2(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    double first = ses_example_stats_at(r, p, 0)[0], mean = 0, rest = 0, total = 0;
    for (size_t i = 0; i < p->n; i++) mean += ses_example_stats_at(r, p, i)[0] - first;
    mean = first + mean / (double)p->n; /* exact if all are equal */
    for (size_t i = 0; i < p->n; i++) {
        const double *x = ses_example_stats_at(r, p, i);
        rest += (x[0] - x[1]) * (x[0] - x[1]);
        total += (x[0] - mean) * (x[0] - mean);
    }
    double value = total > 0 ? 1 - rest / total : rest > 0 ? 0 : 1;
    ses_scores_put(out, p->n < 2 ? NAN : value, "r2");
}

const ses_metric ses_metric_pearson = { .name = "pearson",
                                        .description = "Pearson correlation",
                                        .negative = "pearson",
                                        .kind = SES_METRIC_REALS,
                                        .measure = measure,
                                        .finish = pearson };
const ses_metric ses_metric_spearman = { .name = "spearman",
                                         .description = "Spearman rank correlation",
                                         .negative = "spearmanr",
                                         .kind = SES_METRIC_REALS,
                                         .measure = measure,
                                         .finish = spearman };
const ses_metric ses_metric_squared_error = { .name = "squared_error",
                                              .description = "mean squared error",
                                              .lower_is_better = "mse",
                                              .kind = SES_METRIC_REALS,
                                              .measure = measure,
                                              .finish = squared_error };
const ses_metric ses_metric_r2 = { .name = "r2",
                                   .description = "coefficient of determination R^2",
                                   .negative = "r2",
                                   .kind = SES_METRIC_REALS,
                                   .measure = measure,
                                   .finish = r2 };
