/* Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011): a pure function of (seed, step, site,
 * index). Draws are stateless, so a resumed run, another number of threads or a GPU draws the same
 * numbers. */
#ifndef SES_BASE_RNG_H
#define SES_BASE_RNG_H

#include "sesame/base.h"

/* Marks functions for host and device: nvcc compiles the same source. */
#ifdef __CUDACC__
#define SES_HD __host__ __device__
#else
#define SES_HD
#endif

/* Key of a draw: the run, the step, and the use within the step. */
typedef struct ses_rng_key {
    uint64_t seed;
    uint32_t step, site;
} ses_rng_key;

SES_HD static inline void ses_philox_rounds(uint32_t out[4], ses_rng_key key, uint64_t index, int rounds)
{
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32), c2 = key.step, c3 = key.site;
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);
    for (int round = 0; round < rounds; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c0 = n0, c1 = (uint32_t)p1, c2 = n2, c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

SES_HD static inline void ses_philox(uint32_t out[4], ses_rng_key key, uint64_t index)
{
    ses_philox_rounds(out, key, index, 10);
}

/* 32 random bits for element i; four consecutive elements share a Philox block. */
SES_HD static inline uint32_t ses_rand32(ses_rng_key key, uint64_t i)
{
    uint32_t b[4];
    ses_philox(b, key, i >> 2);
    return b[i & 3];
}

/* Uniform in [0, 1), 24 bits. */
SES_HD static inline float ses_rand_unit(ses_rng_key key, uint64_t i)
{
    return (float)(ses_rand32(key, i) >> 8) * 0x1p-24f;
}

/* Dropout draws 16 bits per element: eight consecutive elements share a block. Seven rounds pass all tests of
 * the paper. */
enum { SES_DROPOUT_ROUNDS = 7 };

SES_HD static inline uint32_t ses_dropout_draw(ses_rng_key key, uint64_t i)
{
    uint32_t b[4];
    ses_philox_rounds(b, key, i >> 3, SES_DROPOUT_ROUNDS);
    return b[(i >> 1) & 3] >> 16 * (i & 1) & 0xffff;
}

/* Dropout keeps element i if its draw is at least this threshold; the rate is exact to 1 / 131072. */
SES_HD static inline uint32_t ses_dropout_threshold(double p)
{
    return p <= 0 ? 0 : p >= 1 ? 65536 : (uint32_t)(p * 65536 + 0.5);
}

/* Index of the draw for key j of an attention row: within 32 keys, key 8 b + 2 c + d uses draw 8 c + 2 b + d.
 * A lane of a GPU's tensor cores holds columns 2 c and 2 c + 1 of every 8, so all its draws are in one block.
 * Rows start at multiples of 32. */
SES_HD static inline uint64_t ses_dropout_swizzle(uint64_t j)
{
    return (j & ~(uint64_t)30) | (j >> 3 & 3) << 1 | (j >> 1 & 3) << 3;
}

SES_HD static inline uint64_t ses_dropout_row_stride(uint64_t keys) { return (keys + 31) & ~(uint64_t)31; }

double ses_rand_normal(ses_rng_key key, uint64_t i); /* mean 0, deviation 1 (Box-Muller) */

#endif
