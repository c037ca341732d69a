/* Multi-label scores as scikit-learn computes them: subset accuracy and F1 averages over all labels,
 * including labels that never occur. */
#include "metric_impl.h"

static bool measure(const ses_metric *m, ses_example_stats *r, ses_err *e)
{
    (void)m;
    const ses_evaluation *v = r->v;
    size_t k = v->n_labels;
    if (!ses_example_stats_new(r, 3 * k + 1, 3 * k + 1, e)) return false;
    for (size_t i = 0; i < v->n; i++) {
        double *x = r->x + i * r->width;
        x[3 * k] = 1;
        for (size_t c = 0; c < k; c++) {
            bool actual = v->true_sets[i * k + c], pred = v->pred_sets[i * k + c];
            x[3 * c] = actual && pred, x[3 * c + 1] = pred, x[3 * c + 2] = actual;
            if (actual != pred) x[3 * k] = 0;
        }
    }
    return true;
}

static void finish(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    size_t k = r->v->n_labels;
    double correct = 0, predicted = 0, actual = 0, macro = 0, weighted = 0;
    ses_example_stats_sum(r, p, r->work);
    for (size_t c = 0; c < k; c++) {
        const double *x = r->work + 3 * c;
        double f = ses_prf_compute(x[0], x[1], x[2]).f;
        macro += f / (double)k, weighted += f * x[2];
        correct += x[0], predicted += x[1], actual += x[2];
    }
    ses_scores_put(out, r->work[3 * k] / (double)p->n, "accuracy");
    ses_prf micro = ses_prf_compute(correct, predicted, actual);
    ses_scores_put(out, micro.p, "precision_micro");
    ses_scores_put(out, micro.r, "recall_micro");
    ses_scores_put(out, micro.f, "f1_micro");
    ses_scores_put(out, macro, "f1_macro");
    ses_scores_put(out, actual > 0 ? weighted / actual : 0, "f1_weighted");
    for (size_t c = 0; c < k; c++)
        ses_scores_put(out, ses_prf_compute(r->work[3 * c], r->work[3 * c + 1], r->work[3 * c + 2]).f,
                       "%s_f1", ses_label_name_of(r->v, c).s);
}

const ses_metric ses_metric_multilabel = { .name = "multilabel",
                                           .description =
                                               "subset accuracy; F1 micro, macro, weighted, per label",
                                           .kind = SES_METRIC_SETS,
                                           .measure = measure,
                                           .finish = finish };
