/* MultiRC, as SuperGLUE computes it: the fraction of questions with all answers right (exact_match), the
 * mean over questions of the macro F1 of their answers (f1_m), and the F1 of label 1 over all answers
 * (f1_a). */
#include "base/alloc.h"
#include "metric_groups.h"
#include "metric_impl.h"

enum { EXACT, F1, QUESTIONS, CORRECT, PREDICTED, ACTUAL, COLUMNS };

/* Macro F1 of the labels that occur. */
static double macro_f1(const double right[2], const double pred[2], const double actual[2])
{
    double sum = 0, labels = 0;
    for (int k = 0; k < 2; k++) {
        if (!pred[k] && !actual[k]) continue;
        sum += ses_prf_compute(right[k], pred[k], actual[k]).f;
        labels++;
    }
    return labels > 0 ? sum / labels : 0;
}

/* The row of a question's first answer has the scores of the question. */
static void measure_question(ses_example_stats *r, const size_t *order, size_t from, size_t to)
{
    const ses_evaluation *v = r->v;
    double right[2] = { 0 }, pred[2] = { 0 }, actual[2] = { 0 }, wrong = 0, *first = NULL;
    for (size_t k = from; k < to; k++) {
        size_t i = order[k];
        int32_t t = v->true_labels[i], p = v->pred_labels[i];
        if (t == SES_IGNORE_INDEX) continue;
        double *x = r->x + i * COLUMNS;
        if (!first) first = x;
        actual[t]++, pred[p]++, right[t] += t == p, wrong += t != p;
        x[CORRECT] = t == 1 && p == 1, x[PREDICTED] = p == 1, x[ACTUAL] = t == 1;
    }
    if (!first) return;
    first[EXACT] = !wrong;
    first[F1] = macro_f1(right, pred, actual);
    first[QUESTIONS] = 1;
}

static bool measure(const ses_metric *m, ses_example_stats *r, ses_err *e)
{
    (void)m;
    if (r->v->n_labels != 2)
        return ses_fail(e, SES_EARG, "%zu labels, expected 2: wrong and right answers", r->v->n_labels);
    if (!ses_example_stats_new(r, COLUMNS, COLUMNS, e)) return false;
    size_t *order = ses_examples_by_group(r->v, e);
    for (size_t from = 0, to; order && from < r->v->n; from = to) {
        to = ses_group_end(r->v, order, from);
        measure_question(r, order, from, to);
    }
    ses_free(order);
    return order != NULL;
}

static void finish(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    double *sum = r->work;
    ses_example_stats_sum(r, p, sum);
    double n = sum[QUESTIONS] > 0 ? sum[QUESTIONS] : 1;
    ses_scores_put(out, sum[EXACT] / n, "exact_match");
    ses_scores_put(out, sum[F1] / n, "f1_m");
    ses_scores_put(out, ses_prf_compute(sum[CORRECT], sum[PREDICTED], sum[ACTUAL]).f, "f1_a");
}

const ses_metric ses_metric_multirc = { .name = "multirc",
                                        .description = "questions with all answers right, F1 of answers",
                                        .kind = SES_METRIC_GROUPS,
                                        .measure = measure,
                                        .finish = finish };
