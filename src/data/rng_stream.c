/* Draws from discrete distributions, and shuffling. */
#include "rng_stream.h"

#include <math.h>

int64_t ses_draw_geometric(ses_rng_stream *d, double p, int64_t max)
{
    double q = 1 - p, all = 1 - pow(q, (double)max), u = ses_draw_unit(d) * all;
    if (q <= 0 || all <= 0) return 1;
    int64_t k = 1 + (int64_t)(log1p(-u) / log(q));
    return k < max ? k : max;
}

int64_t ses_draw_harmonic(ses_rng_stream *d, int64_t max)
{
    double all = 0, u = ses_draw_unit(d);
    for (int64_t k = 1; k <= max; k++) all += 1 / (double)k;
    for (int64_t k = 1; k < max; k++)
        if ((u -= 1 / (all * (double)k)) < 0) return k;
    return max;
}

int64_t ses_draw_poisson(ses_rng_stream *d, double mean)
{
    double p = exp(-mean), u = ses_draw_unit(d);
    int64_t k = 0;
    while (u >= p && k < 1000) {
        u -= p;
        p *= mean / (double)++k;
    }
    return k;
}

void ses_draw_shuffle(ses_rng_stream *d, int32_t *x, int64_t n)
{
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = ses_draw_below(d, i + 1);
        int32_t t = x[i];
        x[i] = x[j], x[j] = t;
    }
}
