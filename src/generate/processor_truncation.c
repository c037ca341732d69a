/* Truncation sampling: processors that ban unlikely tokens. Fan et al. 2018 (top-k), Holtzman et al. 2019
 * (top-p), Meister et al. 2022 (typical), Hewitt et al. 2022 (epsilon, eta), Nguyen et al. 2024 (min-p),
 * top-h by entropy. Tokens banned before have probability 0. */
#include "logits_processor.h"

#include <math.h>

/* Bans the ranked tokens from rank r on, except the first min_keep. */
static void ban_from(ses_logits_ctx *c, int64_t r, int64_t n)
{
    for (r = r < c->min_keep ? c->min_keep : r; r < n; r++) c->score[c->rank[r].id] = -INFINITY;
}

static bool has_top_k(const ses_generate_options *o) { return o->do_sample && o->top_k > 0; }
static void top_k(ses_logits_ctx *c)
{
    float kth = ses_logits_kth_score(c, c->o->top_k > c->min_keep ? c->o->top_k : c->min_keep);
    for (int64_t i = 0; i < c->vocab_size; i++)
        if (c->score[i] < kth) c->score[i] = -INFINITY; /* tokens equal to the k-th stay */
}
const ses_logits_processor ses_processor_top_k = { has_top_k, top_k };

static bool has_top_p(const ses_generate_options *o) { return o->do_sample && o->top_p < 1; }
static void top_p(ses_logits_ctx *c)
{
    int64_t n = ses_logits_rank(c), r = n;
    double lse = ses_log_sum_exp(c->score, c->vocab_size), sum = 0;
    /* from the least likely up, while their total is at most 1 - p */
    while (r > 0 && (sum += exp((double)c->rank[r - 1].x - lse)) <= 1 - c->o->top_p) r--;
    ban_from(c, r, n);
}
const ses_logits_processor ses_processor_top_p = { has_top_p, top_p };

static bool has_min_p(const ses_generate_options *o) { return o->do_sample && o->min_p > 0; }
static void min_p(ses_logits_ctx *c)
{
    int64_t n = ses_logits_rank(c), r = n;
    while (r > 0 && exp((double)c->rank[r - 1].x - (double)c->rank[0].x) < c->o->min_p) r--;
    ban_from(c, r, n);
}
const ses_logits_processor ses_processor_min_p = { has_min_p, min_p };

/* Entropy of the n ranked tokens. */
static double entropy(const ses_logits_ctx *c, int64_t n, double lse)
{
    double h = 0;
    for (int64_t r = 0; r < n; r++) {
        double l = (double)c->rank[r].x - lse;
        h -= l * exp(l);
    }
    return h;
}

static bool has_typical(const ses_generate_options *o) { return o->do_sample && o->typical_p < 1; }
static void typical_p(ses_logits_ctx *c)
{
    int64_t n = ses_logits_rank(c), last = 0;
    double lse = ses_log_sum_exp(c->score, c->vocab_size), h = entropy(c, n, lse), sum = 0;
    for (int64_t r = 0; r < n; r++) c->rank[r].x = -(float)fabs(lse - (double)c->rank[r].x - h);
    ses_ranked_sort(c->rank, n); /* information closest to the entropy first */
    for (int64_t r = 0; r < n; r++) {
        sum += exp((double)c->score[c->rank[r].id] - lse);
        last += sum < c->o->typical_p;
    }
    if (last >= n) return;
    for (int64_t r = n; r > c->min_keep && c->rank[r - 1].x < c->rank[last].x; r--)
        ses_logits_ban(c, c->rank[r - 1].id);
}
const ses_logits_processor ses_processor_typical_p = { has_typical, typical_p };

/* Bans tokens with a probability below min_prob, except tokens equal to the last one kept. */
static void ban_below(ses_logits_ctx *c, double min_prob, double lse, int64_t n)
{
    int64_t r = n;
    while (r > c->min_keep && exp((double)c->rank[r - 1].x - lse) < min_prob &&
           c->rank[r - 1].x < c->rank[c->min_keep - 1].x)
        r--;
    ban_from(c, r, n);
}

static bool has_epsilon(const ses_generate_options *o) { return o->do_sample && o->epsilon_cutoff > 0; }
static void epsilon_cutoff(ses_logits_ctx *c)
{
    int64_t n = ses_logits_rank(c);
    ban_below(c, c->o->epsilon_cutoff, ses_log_sum_exp(c->score, c->vocab_size), n);
}
const ses_logits_processor ses_processor_epsilon_cutoff = { has_epsilon, epsilon_cutoff };

static bool has_eta(const ses_generate_options *o) { return o->do_sample && o->eta_cutoff > 0; }
static void eta_cutoff(ses_logits_ctx *c)
{
    int64_t n = ses_logits_rank(c);
    double lse = ses_log_sum_exp(c->score, c->vocab_size), eps = c->o->eta_cutoff;
    ban_below(c, fmin(eps, sqrt(eps) * exp(-entropy(c, n, lse))), lse, n);
}
const ses_logits_processor ses_processor_eta_cutoff = { has_eta, eta_cutoff };

static bool has_top_h(const ses_generate_options *o) { return o->do_sample && o->top_h > 0; }
static void top_h(ses_logits_ctx *c)
{
    enum { MAX_TOKENS = 100 }; /* as in transformers */
    int64_t all = ses_logits_rank(c), n = all < MAX_TOKENS ? all : MAX_TOKENS, r = 1;
    double sum = 0, lse, h;
    for (int64_t i = 0; i < n; i++) sum += exp((double)c->rank[i].x - (double)c->rank[0].x);
    lse = n ? (double)c->rank[0].x + log(sum) : 0;
    h = entropy(c, n, lse) * c->o->top_h;
    sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double l = (double)c->rank[i].x - lse;
        sum -= l * exp(l);
        if (i && sum <= h) r = i + 1;
    }
    ban_from(c, r, all);
}
const ses_logits_processor ses_processor_top_h = { has_top_h, top_h };
