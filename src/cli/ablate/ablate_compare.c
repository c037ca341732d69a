/* The order of the runs in a column next to the published one. */
#include "ablate_compare.h"

#include "math/correlation.h"

#include <math.h>
#include <string.h>

const char *ses_order_name(ses_order o)
{
    static const char *const name[] = { "same order", "differs", "within noise", "one result" };
    return name[o];
}

/* Higher is better for both. */
static double score_of(const ses_ablate *s, size_t run, size_t column, bool published)
{
    const ses_ablate_column *c = &s->column[column];
    const ses_ablate_entry *x = ses_ablate_entry_at(s, run, column);
    double v = published ? x->published : c->scale * x->interval.mean;
    return c->lower_is_better ? -v : v;
}

/* Runs with both numbers, the best of the publication first; equal ones in the order of the table. */
static size_t sort_runs(const ses_ablate *s, size_t column, size_t *run)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_runs; i++) {
        double own = score_of(s, i, column, false), other = score_of(s, i, column, true);
        if (isnan(own) || isnan(other)) continue;
        size_t at = n++;
        for (; at > 0 && score_of(s, run[at - 1], column, true) < other; at--) run[at] = run[at - 1];
        run[at] = i;
    }
    return n;
}

static ses_ablate_pair compare_pair(const ses_ablate *s, size_t column, size_t better, size_t worse)
{
    const ses_ablate_column *c = &s->column[column];
    ses_ablate_pair p = { .better = better, .worse = worse };
    p.published = score_of(s, better, column, true) - score_of(s, worse, column, true);
    ses_mean_difference d =
        ses_mean_difference_of(&ses_ablate_entry_at(s, better, column)->interval,
                               &ses_ablate_entry_at(s, worse, column)->interval, s->a->confidence / 100);
    double sign = c->lower_is_better ? -c->scale : c->scale;
    p.own = (ses_mean_difference){ sign * d.difference, d.df, sign * d.low, sign * d.high, d.p };
    if (c->lower_is_better) p.own.low = sign * d.high, p.own.high = sign * d.low;
    p.order = isnan(d.p)                          ? SES_ORDER_UNKNOWN
              : p.own.low > 0                     ? SES_ORDER_SAME
              : p.own.high < 0 && p.published > 0 ? SES_ORDER_DIFFERS
              : p.own.high < 0                    ? SES_ORDER_SAME /* published as equal */
                                                  : SES_ORDER_NOISE;
    return p;
}

/* Whether our runs have the opposite of a published order: beyond noise, or with one result each. */
static bool contradicts(const ses_ablate_pair *p)
{
    return p->order == SES_ORDER_DIFFERS ||
           (p->order == SES_ORDER_UNKNOWN && p->own.difference < 0 && p->published > 0);
}

/* Appends "A above B (p = 0.01)" to the `used` bytes of a verdict; returns the bytes it needs. */
static size_t put_contradiction(const ses_ablate *s, const ses_ablate_pair *p, char *verdict, size_t used,
                                size_t room)
{
    char sure[40] = "one result each";
    if (p->order != SES_ORDER_UNKNOWN) snprintf(sure, sizeof sure, "p = %.2g", p->own.p);
    return (size_t)snprintf(verdict + used, room - used, "%s%.40s above %.40s (%s)",
                            used ? "; " : "differs: ", s->run[p->worse].name, s->run[p->better].name, sure);
}

/* "differs: A above B (p = 0.01); and 2 more pairs", of all pairs of runs: between neighbors there may
 * be others with equal published scores. *same: no pair has the opposite order, noise included. Returns the
 * number of pairs that differ. */
static size_t put_contradictions(const ses_ablate *s, ses_ablate_comparison *c, const size_t *run, bool *same)
{
    enum { SHOWN = 3 };
    size_t used = 0, n = 0, room = sizeof c->verdict;
    *same = true;
    for (size_t i = 0; i < c->n; i++)
        for (size_t j = i + 1; j < c->n; j++) {
            ses_ablate_pair p = compare_pair(s, c->column, run[i], run[j]);
            *same &= p.own.difference > 0 || p.published == 0;
            if (contradicts(&p) && n++ < SHOWN) used += put_contradiction(s, &p, c->verdict, used, room);
        }
    if (n > SHOWN) snprintf(c->verdict + used, room - used, "; and %zu more pairs", n - SHOWN);
    return n;
}

/* "same order", "differs: A above B (p = 0.01)", "within noise". Steps are pairs of neighbors. */
static void put_verdict(const ses_ablate *s, ses_ablate_comparison *c, const size_t *run)
{
    bool same;
    size_t sure = 0, unknown = 0;
    char *out = c->verdict;
    if (put_contradictions(s, c, run, &same)) return;
    for (size_t i = 0; i < c->n_pairs; i++) {
        sure += c->pair[i].order == SES_ORDER_SAME;
        unknown += c->pair[i].order == SES_ORDER_UNKNOWN;
    }
    if (same && c->n_pairs && sure == c->n_pairs)
        snprintf(out, sizeof c->verdict, "same order");
    else if (same && unknown)
        snprintf(out, sizeof c->verdict, "same order (one result each)");
    else if (same)
        snprintf(out, sizeof c->verdict, "same order (%zu of %zu steps beyond noise)", sure, c->n_pairs);
    else
        snprintf(out, sizeof c->verdict, "within noise");
}

bool ses_ablate_compare(ses_ablate *s, size_t column, ses_ablate_comparison *out, ses_err *e)
{
    size_t *run = ses_arena_array(&s->mem, s->n_runs, sizeof *run, e);
    double *work = run ? ses_arena_array(&s->mem, 4 * s->n_runs, sizeof *work, e) : NULL;
    *out = (ses_ablate_comparison){ .column = column, .spearman = NAN };
    if (!work) return false;
    out->n = sort_runs(s, column, run);
    if (out->n < 2) return false;
    out->pair = ses_arena_array(&s->mem, out->n - 1, sizeof *out->pair, e);
    if (!out->pair) return false;
    double *own = work, *published = work + out->n;
    for (size_t i = 0; i < out->n; i++) {
        own[i] = score_of(s, run[i], column, false);
        published[i] = score_of(s, run[i], column, true);
        if (i) out->pair[out->n_pairs++] = compare_pair(s, column, run[i - 1], run[i]);
    }
    out->spearman = ses_spearman(own, published, out->n, work + 2 * out->n);
    put_verdict(s, out, run);
    return true;
}
