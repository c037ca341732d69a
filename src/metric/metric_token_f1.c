/* Scores of tags word by word: accuracy, and precision, recall and F1 over all labels but "O". A label is a
 * class with its prefix: B-PER and I-PER differ. Micro and macro averages as scikit-learn computes them with
 * labels= the labels that occur, without "O". */
#include "metric_impl.h"

#include <string.h>

enum { CORRECT, PREDICTED, ACTUAL, COUNTS };

static bool measure(const ses_metric *m, ses_example_stats *r, ses_err *e)
{
    (void)m;
    const ses_evaluation *v = r->v;
    size_t width = COUNTS * v->n_labels;
    if (!ses_example_stats_new(r, width, width, e)) return false;
    for (size_t i = 0; i < v->n; i++) {
        double *x = r->x + i * width;
        for (size_t k = v->cu[i]; k < v->cu[i + 1]; k++) {
            int32_t actual = v->true_labels[k], predicted = v->pred_labels[k];
            if (actual == SES_IGNORE_INDEX) continue;
            x[COUNTS * (size_t)actual + ACTUAL]++;
            x[COUNTS * (size_t)predicted + PREDICTED]++;
            if (actual == predicted) x[COUNTS * (size_t)actual + CORRECT]++;
        }
    }
    return true;
}

static void put(ses_scores *out, const char *average, ses_prf x)
{
    ses_scores_put(out, x.p, "token_precision_%s", average);
    ses_scores_put(out, x.r, "token_recall_%s", average);
    ses_scores_put(out, x.f, "token_f1_%s", average);
}

static void finish(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    double all = 0, right = 0, sum[COUNTS] = { 0 }, classes = 0;
    ses_prf macro = { 0 };
    ses_example_stats_sum(r, p, r->work);
    for (size_t c = 0; c < r->v->n_labels; c++) {
        const double *x = r->work + COUNTS * c;
        all += x[ACTUAL], right += x[CORRECT];
        if (!strcmp(r->v->labels[c], "O") || (!x[PREDICTED] && !x[ACTUAL])) continue;
        ses_prf one = ses_prf_compute(x[CORRECT], x[PREDICTED], x[ACTUAL]);
        macro.p += one.p, macro.r += one.r, macro.f += one.f;
        classes++;
        for (int k = 0; k < COUNTS; k++) sum[k] += x[k];
    }
    double n = classes > 0 ? classes : 1;
    ses_scores_put(out, all > 0 ? right / all : 0, "token_accuracy");
    put(out, "micro", ses_prf_compute(sum[CORRECT], sum[PREDICTED], sum[ACTUAL]));
    put(out, "macro", (ses_prf){ macro.p / n, macro.r / n, macro.f / n });
}

const ses_metric ses_metric_token_f1 = {
    .name = "token_f1",
    .description = "tags word by word: accuracy; precision, recall, F1 without the label O",
    .kind = SES_METRIC_TAGS,
    .measure = measure,
    .finish = finish,
};
