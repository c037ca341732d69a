/* Byte trie as a double array: finds all keys that a text starts with in one pass, with one memory access
 * per byte. On an arena, read-only after building.
 *
 * A node is identified by its base. The child of base b for byte c is the unit at b ^ c, if that unit
 * stores c. Bases are unique, so a unit that stores c can only belong to b. */
#ifndef SES_TEXT_TRIE_H
#define SES_TEXT_TRIE_H

#include "base/arena.h"
#include "sesame/tokenizer.h"

typedef struct ses_trie {
    const uint64_t *unit; /* base << 32 | (value + 1) << 9 | 0x100 | byte; 0: free */
    size_t n;             /* a multiple of 256 */
    uint32_t root;
    int32_t empty;    /* value of the empty key; -1: none */
    uint32_t longest; /* longest key in bytes */
    bool again;       /* two keys are equal: their indices are in same[] */
    int32_t same[2];
} ses_trie;

enum { SES_TRIE_MAX = (1 << 23) - 2 }; /* maximum number of keys */

/* Key i gets value i. The last of equal keys wins; keys with p NULL are skipped. The keys may be freed
 * afterwards. */
bool ses_trie_build(ses_trie *t, const ses_string *key, size_t n, ses_arena *mem, ses_err *e);

/* Move from node *base by byte c; false: no key continues with c. *value: value of the key that ends here,
 * or -1. */
static inline bool ses_trie_step(const ses_trie *t, uint32_t *base, uint8_t c, int32_t *value)
{
    uint64_t u = t->unit[*base ^ c];
    if ((u & 0x1ff) != (0x100u | c)) return false;
    *base = (uint32_t)(u >> 32);
    *value = (int32_t)(u >> 9 & 0x7fffff) - 1;
    return true;
}

/* Branch-free version on units: from unit u by byte c. 0 if no key continues; 0 leads to 0 again. */
static inline uint64_t ses_trie_next(const ses_trie *t, uint64_t u, uint8_t c)
{
    uint64_t v = t->unit[(uint32_t)(u >> 32) ^ c];
    return v & (0 - (uint64_t)((v & 0x1ff) == (0x100u | c)));
}

static inline uint32_t ses_trie_value(uint64_t u)
{
    return (uint32_t)(u >> 9 & 0x7fffff);
} /* value + 1; 0: no key ends here */
static inline uint32_t ses_trie_base(uint64_t u) { return (uint32_t)(u >> 32); }

/* [128 * 256] the unit reached from the root by bytes a, b, at index a << 8 | b. */
const uint64_t *ses_trie_pairs(const ses_trie *t, ses_arena *mem, ses_err *e);

int32_t ses_trie_find(const ses_trie *t, const char *key, size_t n); /* -1: not a key */

#endif
