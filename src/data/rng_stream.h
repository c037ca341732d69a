/* Random stream: successive draws for one passage, a function of (seed, number, purpose). A passage is
 * corrupted the same way on any thread and in a resumed run. A stream is a plain value without ownership. */
#ifndef SES_DATA_DRAWS_H
#define SES_DATA_DRAWS_H

#include "base/rng.h"

typedef struct ses_rng_stream {
    ses_rng_key key;
    uint64_t next;
    uint32_t block[4];
} ses_rng_stream;

static inline ses_rng_stream ses_rng_stream_of(uint64_t seed, uint64_t number, uint32_t purpose)
{
    return (ses_rng_stream){ .key = { .seed = seed ^ (number >> 32) * 0x9E3779B97F4A7C15u,
                                      .step = (uint32_t)number,
                                      .site = purpose } };
}

static inline uint32_t ses_draw_u32(ses_rng_stream *d)
{
    if (d->next % 4 == 0) ses_philox(d->block, d->key, d->next / 4);
    return d->block[d->next++ % 4];
}

static inline double ses_draw_unit(ses_rng_stream *d) { return ses_draw_u32(d) * 0x1p-32; } /* in [0, 1) */

/* Uniform in [0, n), for n up to 2^32; the bias is at most n / 2^32. */
static inline int64_t ses_draw_below(ses_rng_stream *d, int64_t n)
{
    return (int64_t)(((uint64_t)ses_draw_u32(d) * (uint64_t)n) >> 32);
}

/* Stochastic rounding: one of the two integers around x, with expectation x. */
static inline int64_t ses_draw_round(ses_rng_stream *d, double x) { return (int64_t)(x + ses_draw_unit(d)); }

int64_t ses_draw_geometric(ses_rng_stream *d, double p, int64_t max); /* 1 .. max; P(k) ~ (1 - p)^(k - 1) */
int64_t ses_draw_harmonic(ses_rng_stream *d, int64_t max);            /* 1 .. max; P(k) ~ 1 / k */
int64_t ses_draw_poisson(ses_rng_stream *d, double mean);             /* 0, 1, ... */
void ses_draw_shuffle(ses_rng_stream *d, int32_t *x, int64_t n);      /* shuffles x */

#endif
