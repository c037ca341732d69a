/* Trie over bytes as a double array: all keys that begin a text are found in one walk, one memory access a
 * byte.
 *
 * A node is a number, its base. The child of base b by byte c is the unit at b ^ c, if that unit carries c;
 * no two nodes have the same base, so a unit that carries c belongs to b and no other. */
#ifndef SES_TEXT_TRIE_H
#define SES_TEXT_TRIE_H

#include "base/arena.h"
#include "sesame/tokenizer.h"

typedef struct ses_trie {
    const uint64_t *unit; /* base << 32 | (value + 1) << 9 | 0x100 | byte; 0: free */
    size_t n;             /* a multiple of 256 */
    uint32_t root;
    int32_t empty;    /* value of the empty key; -1: none */
    uint32_t longest; /* key, in bytes */
    bool again;       /* two keys are equal: */
    int32_t same[2];
} ses_trie;

enum { SES_TRIE_MAX = (1 << 23) - 2 }; /* keys */

/* Key i has value i; of equal keys the last counts; one with p NULL is left out. The keys may go
 * afterwards. */
bool ses_trie_build(ses_trie *t, const ses_string *key, size_t n, ses_arena *mem, ses_err *e);

/* From node *base by byte c: false when no key goes on so. *value: of the key that ends here, or -1. */
static inline bool ses_trie_step(const ses_trie *t, uint32_t *base, uint8_t c, int32_t *value)
{
    uint64_t u = t->unit[*base ^ c];
    if ((u & 0x1ff) != (0x100u | c)) return false;
    *base = (uint32_t)(u >> 32);
    *value = (int32_t)(u >> 9 & 0x7fffff) - 1;
    return true;
}

/* The same by units, without a branch: from unit u by byte c; 0, where no key goes on, leads to 0 again. */
static inline uint64_t ses_trie_next(const ses_trie *t, uint64_t u, uint8_t c)
{
    uint64_t v = t->unit[(uint32_t)(u >> 32) ^ c];
    return v & (0 - (uint64_t)((v & 0x1ff) == (0x100u | c)));
}

static inline uint32_t ses_trie_value(uint64_t u) { return (uint32_t)(u >> 9 & 0x7fffff); } /* + 1; 0: none */
static inline uint32_t ses_trie_base(uint64_t u) { return (uint32_t)(u >> 32); }

/* [128 * 256] the unit that two bytes a, b lead to from the root, at a << 8 | b. */
const uint64_t *ses_trie_pairs(const ses_trie *t, ses_arena *mem, ses_err *e);

int32_t ses_trie_find(const ses_trie *t, const char *key, size_t n); /* -1: no such key */

#endif
