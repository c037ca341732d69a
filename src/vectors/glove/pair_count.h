/* Counts of pairs with 64-bit keys: a hash table to collect them, and a sort by key. Sums are integers, so
 * that they do not depend on the order of additions. A table belongs to one thread. */
#ifndef SES_VECTORS_PAIR_COUNT_H
#define SES_VECTORS_PAIR_COUNT_H

#include "sesame/base.h"

typedef struct ses_pair_count {
    uint64_t key, sum;
} ses_pair_count;

typedef struct ses_pair_table {
    ses_pair_count *slot; /* key 0: free */
    size_t used, slots;   /* slots: a power of two; at most half are in use */
    size_t max_slots;     /* largest power of two it may grow to */
} ses_pair_table;

/* bytes: limit, also while the table grows; at least a few kilobytes are used. */
bool ses_pair_table_init(ses_pair_table *t, size_t bytes, ses_err *e);
void ses_pair_table_free(ses_pair_table *t);
/* Makes room for n new keys; *full: there is none, and the table must be emptied. */
bool ses_pair_table_reserve(ses_pair_table *t, size_t n, bool *full, ses_err *e);

static inline size_t ses_pair_slot(const ses_pair_table *t, uint64_t key)
{
    return (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (t->slots - 1);
}

/* Adds to a key, not 0, whose probing starts at slot i. Room must have been reserved. */
static inline void ses_pair_table_add(ses_pair_table *t, uint64_t key, size_t i, uint64_t amount)
{
    while (t->slot[i].key != key) {
        if (!t->slot[i].key) {
            t->slot[i].key = key;
            t->used++;
            break;
        }
        i = (i + 1) & (t->slots - 1);
    }
    t->slot[i].sum += amount;
}

/* Sorts by the low `bits` bits of the keys, in place; equal keys in any order. */
void ses_pair_sort(ses_pair_count *p, size_t n, int bits);
/* Adds up equal neighbours; returns the number of pairs left. */
size_t ses_pair_unite(ses_pair_count *p, size_t n);

#endif
