/* Gender parity of Winogender: the fraction of minimal pairs, which differ in the pronoun only, with the
 * same prediction. Examples without a counterpart do not count. */
#include "base/alloc.h"
#include "metric_groups.h"
#include "metric_impl.h"

enum { SAME, PAIRS, COLUMNS };

static bool measure(const ses_metric *m, ses_example_stats *r, ses_err *e)
{
    const ses_evaluation *v = r->v;
    (void)m;
    if (!ses_example_stats_new(r, COLUMNS, COLUMNS, e)) return false;
    size_t *order = ses_examples_by_group(v, e);
    for (size_t from = 0, to; order && from < v->n; from = to) {
        to = ses_group_end(v, order, from);
        if (to - from < 2 || !v->groups[order[from]]) continue;
        double *x = r->x + order[from] * COLUMNS; /* the row of the first of them */
        x[SAME] = x[PAIRS] = 1;
        for (size_t k = from + 1; k < to; k++)
            if (v->pred_labels[order[k]] != v->pred_labels[order[from]]) x[SAME] = 0;
    }
    ses_free(order);
    return order != NULL;
}

static void finish(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    ses_example_stats_sum(r, p, r->work);
    ses_scores_put(out, r->work[PAIRS] > 0 ? r->work[SAME] / r->work[PAIRS] : 0, "gender_parity");
}

const ses_metric ses_metric_gender_parity = { .name = "gender_parity",
                                              .description = "minimal pairs with the same prediction",
                                              .kind = SES_METRIC_GROUPS,
                                              .measure = measure,
                                              .finish = finish };
