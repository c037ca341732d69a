/* Precision, recall and F1 as scikit-learn computes them: for label 1 if there are two labels ("f1"), micro,
 * macro, weighted by class frequency, and per class. Macro averages run over the classes that occur as true
 * label or as prediction; 0 / 0 is 0. */
#include "metric_impl.h"

enum { CORRECT, PREDICTED, ACTUAL, COUNTS };

static bool measure(const ses_metric *m, ses_example_stats *r, ses_err *e)
{
    (void)m;
    const ses_evaluation *v = r->v;
    if (v->cu) return ses_fail(e, SES_EUNSUPPORTED, "expected one label per example, not tags");
    if (!ses_example_stats_new(r, 2, COUNTS * v->n_labels, e)) return false;
    for (size_t i = 0; i < v->n; i++) r->x[2 * i] = v->true_labels[i], r->x[2 * i + 1] = v->pred_labels[i];
    return true;
}

static void put(ses_scores *out, const char *suffix, ses_prf x)
{
    ses_scores_put(out, x.p, "precision%s", suffix);
    ses_scores_put(out, x.r, "recall%s", suffix);
    ses_scores_put(out, x.f, "f1%s", suffix);
}

void ses_scores_put_averages(ses_scores *out, const double *count, size_t n)
{
    ses_prf macro = { 0 }, weighted = { 0 };
    double classes = 0, correct = 0, predicted = 0, actual = 0;
    for (size_t c = 0; c < n; c++, count += COUNTS) {
        if (!count[PREDICTED] && !count[ACTUAL]) continue;
        ses_prf x = ses_prf_compute(count[CORRECT], count[PREDICTED], count[ACTUAL]);
        double w = count[ACTUAL];
        macro.p += x.p, macro.r += x.r, macro.f += x.f;
        weighted.p += w * x.p, weighted.r += w * x.r, weighted.f += w * x.f;
        correct += count[CORRECT], predicted += count[PREDICTED], actual += count[ACTUAL];
        classes++;
    }
    double k = classes > 0 ? classes : 1, w = actual > 0 ? actual : 1;
    put(out, "_micro", ses_prf_compute(correct, predicted, actual));
    put(out, "_macro", (ses_prf){ macro.p / k, macro.r / k, macro.f / k });
    put(out, "_weighted", (ses_prf){ weighted.p / w, weighted.r / w, weighted.f / w });
}

static void finish(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    size_t labels = r->v->n_labels;
    double *count = r->work;
    for (size_t k = 0; k < COUNTS * labels; k++) count[k] = 0;
    for (size_t i = 0; i < p->n; i++) {
        const double *x = ses_example_stats_at(r, p, i);
        if (x[0] < 0) continue; /* SES_IGNORE_INDEX */
        size_t true_label = (size_t)x[0], pred = (size_t)x[1];
        count[COUNTS * true_label + ACTUAL]++;
        count[COUNTS * pred + PREDICTED]++;
        if (true_label == pred) count[COUNTS * true_label + CORRECT]++;
    }
    if (labels == 2)
        put(out, "",
            ses_prf_compute(count[COUNTS + CORRECT], count[COUNTS + PREDICTED], count[COUNTS + ACTUAL]));
    ses_scores_put_averages(out, count, labels);
    for (size_t c = 0; c < labels; c++, count += COUNTS) {
        ses_label_name name = ses_label_name_of(r->v, c);
        ses_prf x = ses_prf_compute(count[CORRECT], count[PREDICTED], count[ACTUAL]);
        ses_scores_put(out, x.p, "%s_precision", name.s);
        ses_scores_put(out, x.r, "%s_recall", name.s);
        ses_scores_put(out, x.f, "%s_f1", name.s);
        ses_scores_put(out, count[ACTUAL], "%s_number", name.s);
    }
}

const ses_metric ses_metric_f1 = { .name = "f1",
                                   .description = "precision, recall, F1: label 1, micro, macro, weighted, "
                                                  "per class",
                                   .kind = SES_METRIC_LABELS,
                                   .measure = measure,
                                   .finish = finish };
