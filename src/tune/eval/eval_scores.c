/* Scores of an evaluation by a task file: predictions of each metric, and their means with confidence
 * intervals. */
#include "eval_likelihood_impl.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

/* Inputs of the metrics, one number per document. */
typedef struct columns {
    const ses_eval_state *s;
    const ses_bootstrap *b;
    int32_t *right, *pred; /* choices; or 1 and whether the document is right */
    double *nll;
    int64_t *n_nll;
    size_t n_labels;
} columns;

static const ses_likelihood_result *result_at(const columns *c, size_t i, int64_t k)
{
    return ses_likelihood_at(c->s->likelihood, c->s->item[i].request + (size_t)k);
}

/* ---- multiple choice ---- */

/* The score by which a metric ranks choice k of document i. */
typedef double rank_fn(const columns *c, size_t i, int32_t k);

static double rank_sum(const columns *c, size_t i, int32_t k) { return result_at(c, i, k)->logprob; }

static double divide(double sum, int32_t n) { return n ? sum / n : -INFINITY; }

static double rank_chars(const columns *c, size_t i, int32_t k)
{
    return divide(result_at(c, i, k)->logprob, c->s->chars[c->s->item[i].length + (size_t)k]);
}

static double rank_bytes(const columns *c, size_t i, int32_t k)
{
    return divide(result_at(c, i, k)->logprob, c->s->bytes[c->s->item[i].length + (size_t)k]);
}

static double rank_mutual(const columns *c, size_t i, int32_t k)
{
    return result_at(c, i, k)->logprob - result_at(c, i, (int64_t)c->s->item[i].n_choices + k)->logprob;
}

/* The first of the best choices. */
static void predict(const columns *c, rank_fn *rank)
{
    for (size_t i = 0; i < c->s->n; i++) {
        double best = rank(c, i, 0);
        c->right[i] = c->s->item[i].right, c->pred[i] = 0;
        for (int32_t k = 1; k < c->s->item[i].n_choices; k++) {
            double x = rank(c, i, k);
            if (x > best) best = x, c->pred[i] = k;
        }
    }
}

/* Squared distance of the probabilities of the choices from 1 for the right choice, 0 for the others. */
static double brier(const columns *c, size_t i)
{
    const ses_eval_item *item = &c->s->item[i];
    double max = -INFINITY, sum = 0, distance = 0;
    for (int32_t k = 0; k < item->n_choices; k++) max = fmax(max, rank_sum(c, i, k));
    for (int32_t k = 0; k < item->n_choices; k++) sum += exp(rank_sum(c, i, k) - max);
    for (int32_t k = 0; k < item->n_choices; k++)
        distance += pow(exp(rank_sum(c, i, k) - max) / sum - (k == item->right), 2);
    return distance;
}

/* ---- scores ---- */

/* Standard error of a mean: sample deviation / sqrt(n). */
static double error_of(const double *x, size_t n)
{
    double mean = 0, sum = 0;
    for (size_t i = 0; i < n; i++) mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
    return n > 1 ? sqrt(sum / (double)(n - 1) / (double)n) : NAN;
}

/* Runs a metric of the library and takes one of its scores. */
static bool run_metric(const columns *c, const char *metric, const char *score, ses_eval_score *out,
                       ses_err *e)
{
    ses_scores s = { 0 };
    ses_evaluation v = { .n = c->s->n,
                         .true_labels = c->right,
                         .pred_labels = c->pred,
                         .n_labels = c->n_labels,
                         .nll = c->nll,
                         .n_nll = c->n_nll };
    bool found = false, ok = ses_metric_run(metric, &v, c->b->resamples ? c->b : NULL, &s, e);
    for (size_t i = 0; ok && i < s.n && !found; i++) {
        found = !strcmp(s.item[i].name, score);
        if (found) out->value = s.item[i].value, out->low = s.item[i].low, out->high = s.item[i].high;
    }
    if (!c->b->resamples) out->low = out->high = NAN;
    ses_scores_free(&s);
    return ok && (found || ses_fail(e, SES_EARG, "the metric %s has no score %s", metric, score));
}

/* The share of documents whose prediction is right. */
static bool score_accuracy(columns *c, ses_eval_score *out, ses_err *e)
{
    for (size_t i = 0; i < c->s->n; i++) c->nll[i] = c->right[i] == c->pred[i];
    out->error = error_of(c->nll, c->s->n);
    return run_metric(c, "accuracy", "accuracy", out, e);
}

static bool score_choice(columns *c, ses_eval_score *out, ses_err *e)
{
    static rank_fn *const rank[SES_EVAL_METRICS] = { [SES_EVAL_METRIC_acc_norm] = rank_chars,
                                                     [SES_EVAL_METRIC_acc_bytes] = rank_bytes,
                                                     [SES_EVAL_METRIC_acc_mutual_info] = rank_mutual };
    predict(c, rank[out->metric] ? rank[out->metric] : rank_sum);
    out->error = NAN;
    if (out->metric == SES_EVAL_METRIC_f1)
        return run_metric(c, "f1", c->n_labels == 2 ? "f1" : "f1_macro", out, e);
    if (out->metric == SES_EVAL_METRIC_mcc) return run_metric(c, "matthews", "matthews_correlation", out, e);
    for (size_t i = 0; i < c->s->n && out->metric == SES_EVAL_METRIC_exact_match; i++)
        c->right[i] = 1, c->pred[i] = result_at(c, i, c->s->item[i].right)->is_greedy;
    if (out->metric != SES_EVAL_METRIC_brier_score) return score_accuracy(c, out, e);
    for (size_t i = 0; i < c->s->n; i++) c->nll[i] = brier(c, i), c->n_nll[i] = 1;
    out->error = error_of(c->nll, c->s->n);
    return run_metric(c, "perplexity", "loss", out, e); /* the mean */
}

static bool score_continuation(columns *c, ses_eval_score *out, ses_err *e)
{
    out->error = NAN;
    for (size_t i = 0; i < c->s->n; i++) {
        const ses_likelihood_result *r = result_at(c, i, 0);
        c->nll[i] = -r->logprob, c->n_nll[i] = 1;
        c->right[i] = 1, c->pred[i] = r->is_greedy;
    }
    return out->metric == SES_EVAL_METRIC_acc ? score_accuracy(c, out, e)
                                              : run_metric(c, "perplexity", "perplexity", out, e);
}

static bool score_rolling(columns *c, ses_eval_score *out, ses_err *e)
{
    bool bits = out->metric == SES_EVAL_METRIC_bits_per_byte;
    out->error = NAN;
    for (size_t i = 0; i < c->s->n; i++) {
        const ses_likelihood_result *r = result_at(c, i, 0);
        c->nll[i] = -r->logprob;
        c->n_nll[i] = out->metric == SES_EVAL_METRIC_word_perplexity    ? c->s->item[i].words
                      : out->metric == SES_EVAL_METRIC_token_perplexity ? r->tokens
                                                                        : c->s->item[i].bytes;
    }
    if (!run_metric(c, "perplexity", bits ? "loss" : "perplexity", out, e)) return false;
    if (bits) out->value /= log(2), out->low /= log(2), out->high /= log(2);
    return true;
}

static bool score_generation(columns *c, ses_eval_score *out, ses_err *e)
{
    for (size_t i = 0; i < c->s->n; i++) c->right[i] = 1, c->pred[i] = c->s->item[i].is_equal;
    return score_accuracy(c, out, e);
}

static bool score_all(columns *c, ses_eval_likelihood_result *r, ses_err *e)
{
    const ses_eval_task *t = c->s->task;
    for (int i = 0; i < SES_EVAL_METRICS; i++) {
        if (!t->metric[i]) continue;
        ses_eval_score *out = &r->score[r->n_scores++];
        *out = (ses_eval_score){ .metric = (ses_eval_metric)i };
        bool ok = t->output == SES_EVAL_CHOICE         ? score_choice(c, out, e)
                  : t->output == SES_EVAL_CONTINUATION ? score_continuation(c, out, e)
                  : t->output == SES_EVAL_ROLLING      ? score_rolling(c, out, e)
                                                       : score_generation(c, out, e);
        if (!ok) return ses_wrap(e, "%s", ses_eval_metric_name[i]);
    }
    return true;
}

bool ses_eval_scores(const ses_eval_state *s, const ses_bootstrap *b, ses_eval_likelihood_result *r,
                     ses_err *e)
{
    columns c = { .s = s, .b = b, .n_labels = 2 };
    for (size_t i = 0; i < s->n; i++)
        if ((size_t)s->item[i].n_choices > c.n_labels) c.n_labels = (size_t)s->item[i].n_choices;
    c.right = ses_alloc_array(s->n, sizeof *c.right, e);
    c.pred = ses_alloc_array(s->n, sizeof *c.pred, e);
    c.nll = ses_alloc_array(s->n, sizeof *c.nll, e);
    c.n_nll = ses_alloc_array(s->n, sizeof *c.n_nll, e);
    bool ok = c.right && c.pred && c.nll && c.n_nll && score_all(&c, r, e);
    ses_free(c.right), ses_free(c.pred), ses_free(c.nll), ses_free(c.n_nll);
    return ok;
}
