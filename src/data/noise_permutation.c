/* XLNet's reading order (Yang et al. 2019): tokens to be predicted are read in a random order behind all
 * others; each sees what was read before it. */
#include "noise.h"

/* Functional tokens ([SEP], [CLS]) are read among the predicted ones and, unlike those, see themselves. */
void ses_permutation_mask(const uint8_t *role, int64_t n, ses_rng_stream *d, int32_t *turn, uint8_t *hidden)
{
    for (int64_t i = 0; i < n; i++) turn[i] = (int32_t)i;
    ses_draw_shuffle(d, turn, n);
    for (int64_t i = 0; i < n; i++)
        if (role[i] == SES_PERM_CONTEXT) turn[i] = -1; /* before all */
    for (int64_t i = 0; i < n; i++) {
        int64_t mine = turn[i] + (role[i] != SES_PERM_TARGET); /* a target does not see itself */
        for (int64_t j = 0; j < n; j++) hidden[i * n + j] = role[j] != SES_PERM_CONTEXT && turn[j] >= mine;
    }
}
