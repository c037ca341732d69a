/* Normal random numbers. */
#include "rng.h"

#include <math.h>

double ses_rand_normal(ses_rng_key key, uint64_t i)
{
    uint32_t b[4];
    ses_philox(b, key, i >> 1);
    const uint32_t *u = b + 2 * (i & 1);
    double r = sqrt(-2 * log((u[0] + 1.0) * 0x1p-32));
    return r * cos(6.283185307179586 * u[1] * 0x1p-32);
}
