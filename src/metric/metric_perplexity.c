/* Perplexity: exp of the mean negative log likelihood per token, over the tokens of all examples; and per
 * word, if the numbers of words are known. */
#include "metric_impl.h"

#include <math.h>

enum { NLL, TOKENS, WORDS, WIDTH };

static bool measure(const ses_metric *m, ses_example_stats *r, ses_err *e)
{
    (void)m;
    const ses_evaluation *v = r->v;
    if (!ses_example_stats_new(r, WIDTH, WIDTH, e)) return false;
    for (size_t i = 0; i < v->n; i++) {
        double *x = r->x + WIDTH * i;
        int64_t words = v->n_words ? v->n_words[i] : 0;
        x[NLL] = v->nll[i], x[TOKENS] = (double)v->n_nll[i], x[WORDS] = (double)words;
        if (v->n_nll[i] < 0 || words < 0)
            return ses_fail(e, SES_EARG, "example %zu: the %s count is negative", i,
                            words < 0 ? "word" : "token");
    }
    return true;
}

static void finish(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    ses_example_stats_sum(r, p, r->work);
    double mean = r->work[TOKENS] > 0 ? r->work[NLL] / r->work[TOKENS] : NAN;
    ses_scores_put(out, mean, "loss");
    ses_scores_put(out, exp(mean), "perplexity");
    if (r->v->n_words)
        ses_scores_put(out, r->work[WORDS] > 0 ? exp(r->work[NLL] / r->work[WORDS]) : NAN, "word_perplexity");
}

const ses_metric ses_metric_perplexity = { .name = "perplexity",
                                           .description = "exp of the mean loss per token and per word",
                                           .lower_is_better = "loss|perplexity|word_perplexity",
                                           .kind = SES_METRIC_NLL,
                                           .measure = measure,
                                           .finish = finish };
