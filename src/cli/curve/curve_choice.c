/* Means over the seeds, and the method to use for a size. All methods of a size and seed have the same
 * examples, so that scores are compared seed by seed. */
#include "curve.h"

#include <math.h>

enum { MAX_SEEDS = 1000 };

ses_curve_point ses_curve_point_of(const ses_curve *v, size_t size, size_t method)
{
    double score[MAX_SEEDS];
    size_t n = 0;
    ses_curve_point p = { .examples = 0 };
    for (size_t k = 0; k < ses_curve_seeds_of(v, size, method) && k < MAX_SEEDS; k++) {
        const ses_curve_run *x = ses_curve_run_at(v, size, method, k);
        if (!ses_curve_is_done(x)) continue;
        score[n++] = x->score;
        p.train_seconds += x->train_seconds;
        p.joules += x->joules;
        p.examples += x->examples;
    }
    p.score = ses_mean_interval_of(score, n, v->a->confidence / 100);
    p.train_seconds = n ? p.train_seconds / (double)n : NAN;
    p.joules = n ? p.joules / (double)n : NAN;
    if (n) p.examples = (p.examples + (int64_t)n / 2) / (int64_t)n;
    return p;
}

/* The cell of a seed; a method that does not depend on the seed has one for all. */
static const ses_curve_run *paired(const ses_curve *v, size_t size, size_t method, size_t seed)
{
    return ses_curve_run_at(v, size, method, seed < ses_curve_seeds_of(v, size, method) ? seed : 0);
}

/* How much better method a is than b, seed by seed. */
static ses_mean_interval difference(const ses_curve *v, size_t size, size_t a, size_t b)
{
    double x[MAX_SEEDS];
    size_t n = 0, na = ses_curve_seeds_of(v, size, a), nb = ses_curve_seeds_of(v, size, b);
    for (size_t k = 0; k < (na > nb ? na : nb) && k < MAX_SEEDS; k++) {
        const ses_curve_run *p = paired(v, size, a, k), *q = paired(v, size, b, k);
        if (ses_curve_is_done(p) && ses_curve_is_done(q))
            x[n++] = v->lower_is_better ? q->score - p->score : p->score - q->score;
    }
    return ses_mean_interval_of(x, n, v->a->confidence / 100);
}

/* Whether method m may be as good as the best one. *known becomes false if a single pair cannot tell. */
static bool is_in_noise(const ses_curve *v, size_t size, size_t best, size_t m, bool *known)
{
    ses_mean_interval d = difference(v, size, best, m);
    bool exact =
        v->n_seeds > 1 && ses_curve_seeds_of(v, size, best) == 1 && ses_curve_seeds_of(v, size, m) == 1;
    if (d.n >= 2) return d.low <= 0;
    if (d.n && !exact) *known = false;
    return d.n && exact && d.mean <= 0; /* no seed, no noise */
}

/* Whether all seeds of a method have a score. A mean of some seeds may be of the easier samples. */
static bool is_complete(const ses_curve *v, size_t size, size_t method)
{
    for (size_t k = 0; k < ses_curve_seeds_of(v, size, method); k++)
        if (!ses_curve_is_done(ses_curve_run_at(v, size, method, k))) return false;
    return true;
}

ses_curve_choice ses_curve_choose(const ses_curve *v, size_t size)
{
    ses_curve_choice c = { .method = SIZE_MAX, .best = SIZE_MAX, .known = true };
    double best = NAN, seconds = INFINITY;
    for (size_t m = 0; m < v->n_methods; m++) {
        double mean = ses_curve_point_of(v, size, m).score.mean;
        if (!is_complete(v, size, m)) {
            c.incomplete += !isnan(mean);
            continue;
        }
        if (isnan(mean) || (!isnan(best) && (v->lower_is_better ? mean >= best : mean <= best))) continue;
        best = mean;
        c.best = m;
    }
    for (size_t m = 0; m < v->n_methods && c.best != SIZE_MAX; m++) {
        ses_curve_point p = ses_curve_point_of(v, size, m);
        if (!is_complete(v, size, m) || (m != c.best && !is_in_noise(v, size, c.best, m, &c.known))) continue;
        c.within_noise++;
        if (p.train_seconds < seconds || c.method == SIZE_MAX) c.method = m, seconds = p.train_seconds;
    }
    return c;
}
