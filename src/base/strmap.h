/* String-keyed hash map to int64_t. Keys are borrowed: the caller keeps them alive. Entries stay in the
 * order of insertion. Hashing is keyed anew for each map, so keys from outside cannot be chosen to
 * collide. A zeroed ses_strmap is empty and ready. Not for several threads while one inserts. */
#ifndef SES_BASE_MAP_H
#define SES_BASE_MAP_H

#include "hash.h"
#include "sesame/err.h"

typedef struct ses_strmap_entry {
    const char *key;
    uint32_t len;
    uint32_t hash; /* its low half: spares most comparisons, and the keys when the table grows */
    int64_t value;
} ses_strmap_entry;

typedef struct ses_strmap {
    ses_strmap_entry *entry;
    size_t count, cap;
    uint32_t *slot; /* entry + 1, 0: free; at most half are taken */
    size_t slots;   /* power of two, or 0 */
    ses_hash_key key;
} ses_strmap;

bool ses_strmap_reserve(ses_strmap *m, size_t n, ses_err *e); /* room for n entries in all */
/* The value under key, which is `value` if the key was not there (then *fresh). NULL: no memory. */
int64_t *ses_strmap_insert(ses_strmap *m, const char *key, size_t n, int64_t value, bool *fresh, ses_err *e);
bool ses_strmap_find(const ses_strmap *m, const char *key, size_t n, int64_t *value);
void ses_strmap_free(ses_strmap *m); /* back to zero */

#endif
