/* Perplexity: exp of the mean negative log likelihood per token, over the tokens of all examples. */
#include "metric_impl.h"

#include <math.h>

static bool measure(const ses_metric *m, ses_example_stats *r, ses_err *e)
{
    (void)m;
    const ses_evaluation *v = r->v;
    if (!ses_example_stats_new(r, 2, 2, e)) return false;
    for (size_t i = 0; i < v->n; i++) {
        r->x[2 * i] = v->nll[i], r->x[2 * i + 1] = (double)v->n_nll[i];
        if (v->n_nll[i] < 0) return ses_fail(e, SES_EARG, "example %zu: the token count is negative", i);
    }
    return true;
}

static void finish(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    ses_example_stats_sum(r, p, r->work);
    double mean = r->work[1] > 0 ? r->work[0] / r->work[1] : NAN;
    ses_scores_put(out, mean, "loss");
    ses_scores_put(out, exp(mean), "perplexity");
}

const ses_metric ses_metric_perplexity = { .name = "perplexity",
                                           .description = "exp of the mean loss per token",
                                           .lower_is_better = "loss|perplexity",
                                           .kind = SES_METRIC_NLL,
                                           .measure = measure,
                                           .finish = finish };
