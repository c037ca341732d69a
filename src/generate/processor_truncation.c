/* Processors of sampling that leave the unlikely out: Fan et al. 2018 (top-k), Holtzman et al. 2019
 * (top-p), Meister et al. 2022 (typical), Hewitt et al. 2022 (epsilon, eta), Nguyen et al. 2024 (min-p),
 * top-h by entropy. Tokens ruled out before have no part: their probability is 0. */
#include "logits_processor.h"

#include <math.h>

/* Rank r of n ranked tokens and all below it are ruled out, but the first `keep`. */
static void cut_from(ses_logits_ctx *s, int64_t r, int64_t n)
{
    for (r = r < s->keep ? s->keep : r; r < n; r++) s->score[s->rank[r].id] = -INFINITY;
}

static bool want_top_k(const ses_generate_options *o) { return o->do_sample && o->top_k > 0; }
static void top_k(ses_logits_ctx *s)
{
    float least =
        ses_logits_kth_score(s, s->o->top_k > s->keep ? s->o->top_k : s->keep); /* equals stay together */
    for (int64_t i = 0; i < s->vocab; i++)
        if (s->score[i] < least) s->score[i] = -INFINITY;
}
const ses_logits_processor ses_process_top_k = { want_top_k, top_k };

static bool want_top_p(const ses_generate_options *o) { return o->do_sample && o->top_p < 1; }
static void top_p(ses_logits_ctx *s)
{
    int64_t n = ses_logits_rank(s), r = n;
    double lse = ses_log_sum_exp(s->score, s->vocab), sum = 0;
    /* from the least likely up, while they are together at most 1 - p */
    while (r > 0 && (sum += exp((double)s->rank[r - 1].x - lse)) <= 1 - s->o->top_p) r--;
    cut_from(s, r, n);
}
const ses_logits_processor ses_process_top_p = { want_top_p, top_p };

static bool want_min_p(const ses_generate_options *o) { return o->do_sample && o->min_p > 0; }
static void min_p(ses_logits_ctx *s)
{
    int64_t n = ses_logits_rank(s), r = n;
    while (r > 0 && exp((double)s->rank[r - 1].x - (double)s->rank[0].x) < s->o->min_p) r--;
    cut_from(s, r, n);
}
const ses_logits_processor ses_process_min_p = { want_min_p, min_p };

/* The entropy of what is ranked. */
static double entropy(const ses_logits_ctx *s, int64_t n, double lse)
{
    double h = 0;
    for (int64_t r = 0; r < n; r++) {
        double l = (double)s->rank[r].x - lse;
        h -= l * exp(l);
    }
    return h;
}

static bool want_typical(const ses_generate_options *o) { return o->do_sample && o->typical_p < 1; }
static void typical_p(ses_logits_ctx *s)
{
    int64_t n = ses_logits_rank(s), last = 0;
    double lse = ses_log_sum_exp(s->score, s->vocab), h = entropy(s, n, lse), sum = 0;
    for (int64_t r = 0; r < n; r++) s->rank[r].x = -(float)fabs(lse - (double)s->rank[r].x - h);
    ses_ranked_sort(s->rank, n); /* what surprises as much as expected comes first */
    for (int64_t r = 0; r < n; r++) {
        sum += exp((double)s->score[s->rank[r].id] - lse);
        last += sum < s->o->typical_p;
    }
    if (last >= n) return;
    for (int64_t r = n; r > s->keep && s->rank[r - 1].x < s->rank[last].x; r--)
        ses_logits_ban(s, s->rank[r - 1].id);
}
const ses_logits_processor ses_process_typical_p = { want_typical, typical_p };

/* Probabilities below `least` are ruled out; equals of the last kept one stay. */
static void cut_below(ses_logits_ctx *s, double least, double lse, int64_t n)
{
    int64_t r = n;
    while (r > s->keep && exp((double)s->rank[r - 1].x - lse) < least &&
           s->rank[r - 1].x < s->rank[s->keep - 1].x)
        r--;
    cut_from(s, r, n);
}

static bool want_epsilon(const ses_generate_options *o) { return o->do_sample && o->epsilon_cutoff > 0; }
static void epsilon_cutoff(ses_logits_ctx *s)
{
    int64_t n = ses_logits_rank(s);
    cut_below(s, s->o->epsilon_cutoff, ses_log_sum_exp(s->score, s->vocab), n);
}
const ses_logits_processor ses_process_epsilon_cutoff = { want_epsilon, epsilon_cutoff };

static bool want_eta(const ses_generate_options *o) { return o->do_sample && o->eta_cutoff > 0; }
static void eta_cutoff(ses_logits_ctx *s)
{
    int64_t n = ses_logits_rank(s);
    double lse = ses_log_sum_exp(s->score, s->vocab), eps = s->o->eta_cutoff;
    cut_below(s, fmin(eps, sqrt(eps) * exp(-entropy(s, n, lse))), lse, n);
}
const ses_logits_processor ses_process_eta_cutoff = { want_eta, eta_cutoff };

static bool want_top_h(const ses_generate_options *o) { return o->do_sample && o->top_h > 0; }
static void top_h(ses_logits_ctx *s)
{
    enum { AMONG = 100 }; /* the reference looks at no more */
    int64_t all = ses_logits_rank(s), n = all < AMONG ? all : AMONG, r = 1;
    double sum = 0, lse, h;
    for (int64_t i = 0; i < n; i++) sum += exp((double)s->rank[i].x - (double)s->rank[0].x);
    lse = n ? (double)s->rank[0].x + log(sum) : 0;
    h = entropy(s, n, lse) * s->o->top_h;
    sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double l = (double)s->rank[i].x - lse;
        sum -= l * exp(l);
        if (i && sum <= h) r = i + 1;
    }
    cut_from(s, r, all);
}
const ses_logits_processor ses_process_top_h = { want_top_h, top_h };
