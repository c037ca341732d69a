/* The Pareto front of the candidates, and the chosen one. */
#include "compress.h"

#include "base/alloc.h"
#include "math/pareto.h"

#include <math.h>

const char *ses_compress_measure_name(int by)
{
    static const char *const names[] = { "latency", "size", "memory", "energy" };
    return names[by];
}

double ses_compress_cost_of(const ses_compress *z, const ses_candidate *x)
{
    if (!x->is_measured) return NAN;
    switch ((ses_compress_measure)z->a->by) {
    /* times and energy in the rounds of the candidate, in which it alternated with the original */
    case SES_BY_LATENCY: return z->candidate[0].cost.latency / x->speed;
    case SES_BY_ENERGY: return z->candidate[0].cost.joules / x->energy_ratio;
    case SES_BY_SIZE: return x->cost.bytes;
    case SES_BY_MEMORY: return x->cost.memory;
    }
    return NAN;
}

bool ses_compress_choose(ses_compress *z, ses_err *e)
{
    double *score = ses_alloc_array(2 * z->n, sizeof *score, e), *cost = score ? score + z->n : NULL;
    bool *front = score ? ses_alloc_array(z->n, sizeof *front, e) : NULL, ok = front != NULL;
    for (size_t i = 0; ok && i < z->n; i++) {
        const ses_candidate *x = &z->candidate[i];
        score[i] = !x->is_measured ? NAN : z->lower_is_better ? -x->score : x->score;
        cost[i] = ses_compress_lacks_rule(z, i) ? NAN : ses_compress_cost_of(z, x); /* only noise differs */
    }
    ok = ok && ses_pareto_mark(score, cost, z->n, front, e);
    z->chosen = 0;
    for (size_t i = 0; ok && i < z->n; i++) {
        ses_candidate *x = &z->candidate[i];
        const size_t c = z->chosen;
        x->on_front = front[i];
        if (i && !isnan(cost[i]) && x->drop <= z->a->max_drop + 1e-9 &&
            (cost[i] < cost[c] || (cost[i] == cost[c] && score[i] > score[c])))
            z->chosen = i;
    }
    for (size_t i = 0; ok && i < z->n; i++) z->candidate[i].is_chosen = i == z->chosen;
    ses_free(score);
    ses_free(front);
    return ok;
}
