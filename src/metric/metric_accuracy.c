/* Accuracy: the fraction of labels predicted correctly. */
#include "metric_impl.h"

static bool measure(const ses_metric *m, ses_example_stats *r, ses_err *e)
{
    (void)m;
    const ses_evaluation *v = r->v;
    if (!ses_example_stats_new(r, 2, 2, e)) return false;
    for (size_t i = 0; i < v->n; i++)
        for (size_t j = v->cu ? v->cu[i] : i; j < (v->cu ? v->cu[i + 1] : i + 1); j++) {
            if (v->true_labels[j] == SES_IGNORE_INDEX) continue;
            r->x[2 * i] += v->true_labels[j] == v->pred_labels[j];
            r->x[2 * i + 1] += 1;
        }
    return true;
}

static void finish(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    ses_example_stats_sum(r, p, r->work);
    ses_scores_put(out, r->work[1] > 0 ? r->work[0] / r->work[1] : 0, "accuracy");
}

const ses_metric ses_metric_accuracy = { .name = "accuracy",
                                         .description = "fraction of correct labels",
                                         .kind = SES_METRIC_LABELS,
                                         .measure = measure,
                                         .finish = finish };
