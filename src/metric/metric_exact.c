/* Exact match: the fraction of texts equal to one of the accepted ones, byte by byte. */
#include "metric_impl.h"

#include <string.h>

static bool measure(const ses_metric *m, ses_example_stats *r, ses_err *e)
{
    (void)m;
    const ses_evaluation *v = r->v;
    if (!ses_example_stats_new(r, 1, 1, e)) return false;
    for (size_t i = 0; i < v->n; i++) {
        size_t from = v->ref_cu ? v->ref_cu[i] : i, to = v->ref_cu ? v->ref_cu[i + 1] : i + 1;
        for (size_t k = from; k < to && v->pred_texts[i]; k++)
            if (!strcmp(v->pred_texts[i], v->ref_texts[k])) r->x[i] = 1;
    }
    return true;
}

static void finish(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    ses_example_stats_sum(r, p, r->work);
    ses_scores_put(out, r->work[0] / (double)p->n, "exact_match");
}

const ses_metric ses_metric_exact = { .name = "exact",
                                      .description = "fraction of texts equal to an accepted one",
                                      .kind = SES_METRIC_TEXTS,
                                      .measure = measure,
                                      .finish = finish };
