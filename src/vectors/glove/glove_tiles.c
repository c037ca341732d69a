/* Division of words into groups, and keys of pairs. The order within a tile is a Feistel network over the two
 * indices in their groups: a permutation whose round function multiplies by random constants. */
#include "glove_tiles.h"

#include "base/rng.h"

enum { LEAST_ROWS = 64, SITE_MIX = 0x474c4f01 };

ses_glove_tiles ses_glove_tiles_of(int64_t words, int64_t max_groups, uint64_t seed)
{
    ses_glove_tiles t = { .words = words, .groups = words / LEAST_ROWS, .bits = 1 };
    if (t.groups > max_groups) t.groups = max_groups;
    if (t.groups < 1) t.groups = 1;
    t.rows = (words + t.groups - 1) / t.groups;
    while (t.rows > (int64_t)1 << t.bits) t.bits++;
    for (int i = 0; i < SES_GLOVE_ROUNDS; i++) {
        uint32_t b[4];
        ses_philox(b, (ses_rng_key){ seed, (uint32_t)i, SITE_MIX }, 0);
        t.mix[i][0] = (uint64_t)b[0] << 32 | b[1];
        t.mix[i][1] = (uint64_t)b[2] << 32 | b[3] | 1;
    }
    return t;
}

int64_t ses_glove_row(const ses_glove_tiles *t, int64_t rank)
{
    int64_t lap = rank / t->groups, i = rank % t->groups;
    return (lap & 1 ? t->groups - 1 - i : i) * t->rows + lap;
}

/* The upper bits of a product depend on all bits of x. */
static uint64_t shuffle_round(const ses_glove_tiles *t, int i, uint64_t x)
{
    x = (x ^ t->mix[i][0]) * t->mix[i][1];
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return x >> (64 - t->bits);
}

uint64_t ses_glove_key(const ses_glove_tiles *t, int64_t word_row, int64_t context_row)
{
    int64_t g = word_row / t->rows, h = context_row / t->rows, phase = (h - g + t->groups) % t->groups;
    uint64_t x = (uint64_t)(word_row % t->rows), y = (uint64_t)(context_row % t->rows);
    for (int i = 0; i < SES_GLOVE_ROUNDS; i += 2) {
        x ^= shuffle_round(t, i, y);
        y ^= shuffle_round(t, i + 1, x);
    }
    return ((uint64_t)(phase * t->groups + g) << t->bits | x) << t->bits | y;
}

void ses_glove_key_rows(const ses_glove_tiles *t, uint64_t key, int32_t *word_row, int32_t *context_row)
{
    uint64_t mask = ((uint64_t)1 << t->bits) - 1, y = key & mask, x = key >> t->bits & mask;
    int64_t tile = ses_glove_key_tile(t, key), phase = tile / t->groups, g = tile % t->groups;
    for (int i = SES_GLOVE_ROUNDS - 2; i >= 0; i -= 2) {
        y ^= shuffle_round(t, i + 1, x);
        x ^= shuffle_round(t, i, y);
    }
    *word_row = (int32_t)(g * t->rows + (int64_t)x);
    *context_row = (int32_t)((g + phase) % t->groups * t->rows + (int64_t)y);
}
