/* rand() of the GNU C library after srand(seed): additive feedback over 31 words. */
#ifndef SES_VECTORS_GLIBC_RANDOM_H
#define SES_VECTORS_GLIBC_RANDOM_H

#include "sesame/base.h"

enum { SES_GLIBC_RAND_MAX = 2147483647 };

typedef struct ses_glibc_random {
    uint32_t r[34];
    int at;
} ses_glibc_random;

static inline uint32_t ses_glibc_step(ses_glibc_random *g)
{
    uint32_t x = g->r[(g->at + 31) % 34] + g->r[(g->at + 3) % 34]; /* 3 and 31 steps back */
    g->r[g->at] = x;
    g->at = (g->at + 1) % 34;
    return x;
}

static inline ses_glibc_random ses_glibc_random_of(uint32_t seed)
{
    ses_glibc_random g = { .at = 0 };
    int64_t x = seed ? (int32_t)seed : 1;
    g.r[0] = (uint32_t)x;
    for (int i = 1; i < 31; i++) {
        x = (16807 * x) % 2147483647;
        if (x < 0) x += 2147483647;
        g.r[i] = (uint32_t)x;
    }
    for (int i = 31; i < 34; i++) g.r[i] = g.r[i - 31];
    for (int i = 0; i < 310; i++) ses_glibc_step(&g);
    return g;
}

static inline int32_t ses_glibc_rand(ses_glibc_random *g) { return (int32_t)(ses_glibc_step(g) >> 1); }

#endif
