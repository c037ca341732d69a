/* Matthews correlation coefficient for any number of classes (Gorodkin 2004); 0 if one side is constant. */
#include "metric_impl.h"

#include <math.h>

static bool measure(const ses_metric *m, ses_example_stats *r, ses_err *e)
{
    (void)m;
    const ses_evaluation *v = r->v;
    if (v->cu) return ses_fail(e, SES_EUNSUPPORTED, "expected one label per example, not tags");
    if (!ses_example_stats_new(r, 2, 2 * v->n_labels, e)) return false;
    for (size_t i = 0; i < v->n; i++) r->x[2 * i] = v->true_labels[i], r->x[2 * i + 1] = v->pred_labels[i];
    return true;
}

static void finish(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    size_t labels = r->v->n_labels;
    double *true_count = r->work, *pred_count = true_count + labels, n = 0, correct = 0;
    for (size_t k = 0; k < 2 * labels; k++) r->work[k] = 0;
    for (size_t i = 0; i < p->n; i++) {
        const double *x = ses_example_stats_at(r, p, i);
        if (x[0] < 0) continue; /* SES_IGNORE_INDEX */
        true_count[(size_t)x[0]]++, pred_count[(size_t)x[1]]++, n++;
        correct += x[0] == x[1];
    }
    double covariance = correct * n, true_var = n * n, pred_var = n * n;
    for (size_t k = 0; k < labels; k++) {
        covariance -= true_count[k] * pred_count[k];
        true_var -= true_count[k] * true_count[k];
        pred_var -= pred_count[k] * pred_count[k];
    }
    ses_scores_put(out, true_var > 0 && pred_var > 0 ? covariance / sqrt(true_var * pred_var) : 0,
                   "matthews_correlation");
}

const ses_metric ses_metric_matthews = { .name = "matthews",
                                         .description = "Matthews correlation coefficient",
                                         .negative = "matthews_correlation",
                                         .kind = SES_METRIC_LABELS,
                                         .measure = measure,
                                         .finish = finish };
