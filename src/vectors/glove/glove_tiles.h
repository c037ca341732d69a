/* Tiles of a co-occurrence matrix. Words are divided into groups; tile (g, h) has the pairs of a word of
 * group g and a context of group h. Phase p has the tiles (g, (g + p) mod groups): they share neither words
 * nor contexts, so threads can train them at once, and the result does not depend on their number (Gemulla et
 * al. 2011). Ranks are dealt out to the groups back and forth, so that groups have similar numbers of pairs.
 *
 * The key of a pair sorts pairs by tile, phase by phase, and within a tile in an order that is random but a
 * function of the seed only: a sort by key adds up equal pairs, forms the tiles and shuffles. */
#ifndef SES_VECTORS_GLOVE_TILES_H
#define SES_VECTORS_GLOVE_TILES_H

#include "sesame/base.h"

/* Groups for threads, and for a GPU, which trains a tile on each of many warps. */
enum { SES_GLOVE_CPU_GROUPS = 64, SES_GLOVE_MAX_GROUPS = 256, SES_GLOVE_ROUNDS = 4 };

typedef struct ses_glove_tiles {
    int64_t words, groups, rows; /* rows: words of a group, rounded up */
    int bits;                    /* width of a word's index in its group */
    uint64_t mix[SES_GLOVE_ROUNDS][2];
} ses_glove_tiles;

/* max_groups: at most SES_GLOVE_MAX_GROUPS */
ses_glove_tiles ses_glove_tiles_of(int64_t words, int64_t max_groups, uint64_t seed);

/* Row of a word in the weight matrices, which have groups * rows rows: groups are contiguous. */
int64_t ses_glove_row(const ses_glove_tiles *t, int64_t rank);
uint64_t ses_glove_key(const ses_glove_tiles *t, int64_t word_row, int64_t context_row);
/* The inverse. */
void ses_glove_key_rows(const ses_glove_tiles *t, uint64_t key, int32_t *word_row, int32_t *context_row);
static inline int ses_glove_key_bits(const ses_glove_tiles *t) /* width of the largest key */
{
    int bits = 2 * t->bits;
    while (bits < 64 && ((uint64_t)(t->groups * t->groups - 1) >> (bits - 2 * t->bits))) bits++;
    return bits;
}
static inline int64_t ses_glove_key_tile(const ses_glove_tiles *t, uint64_t key)
{
    return (int64_t)(key >> 2 * t->bits);
}

#endif
