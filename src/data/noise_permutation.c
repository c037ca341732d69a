/* XLNet's permutation mask (Yang et al. 2019): targets come after the context, in random order; each token
 * attends to the tokens before it in this order. */
#include "noise.h"

/* Functional tokens ([SEP], [CLS]) are in the order too, but unlike targets they attend to themselves. */
void ses_permutation_mask(const uint8_t *role, int64_t n, ses_rng_stream *d, int32_t *rank, uint8_t *hidden)
{
    for (int64_t i = 0; i < n; i++) rank[i] = (int32_t)i;
    ses_draw_shuffle(d, rank, n);
    for (int64_t i = 0; i < n; i++)
        if (role[i] == SES_PERM_CONTEXT) rank[i] = -1; /* before all others */
    for (int64_t i = 0; i < n; i++) {
        int64_t visible = rank[i] + (role[i] != SES_PERM_TARGET); /* ranks below it; a target hides itself */
        for (int64_t j = 0; j < n; j++) hidden[i * n + j] = role[j] != SES_PERM_CONTEXT && rank[j] >= visible;
    }
}
