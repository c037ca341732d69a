/* Draws words in proportion to count^power, in constant time (alias method, Vose 1991). */
#ifndef SES_VECTORS_SAMPLING_TABLE_H
#define SES_VECTORS_SAMPLING_TABLE_H

#include "vectors/word_vocab.h"

/* A draw that falls into cell i takes i below the threshold, else the alias. */
typedef struct ses_sampling_cell {
    uint32_t threshold;
    int32_t alias;
} ses_sampling_cell;

/* n cells; free with ses_free. */
ses_sampling_cell *ses_sampling_table(const ses_word_vocab *v, double power, ses_err *e);

/* The word of a random number: its high part selects the cell, the rest is compared with the threshold. */
static inline int32_t ses_sampling_draw(const ses_sampling_cell *cell, size_t n, uint32_t random)
{
    uint64_t at = (uint64_t)random * n;
    const ses_sampling_cell *c = &cell[at >> 32];
    return (uint32_t)at < c->threshold ? (int32_t)(at >> 32) : c->alias;
}

#endif
