/* Hash map from strings to int64_t. Entries stay in insertion order. A zeroed ses_strmap is empty and
 * ready. Keys are borrowed: they must outlive the map. Hashes use a random key per map, so that input
 * cannot be chosen to collide. Several threads may read, if none inserts. */
#ifndef SES_BASE_STRMAP_H
#define SES_BASE_STRMAP_H

#include "hash.h"
#include "sesame/base.h"

typedef struct ses_strmap_entry {
    const char *key;
    uint32_t len;
    uint32_t hash; /* low half of the hash: avoids most comparisons, and rehashing when the table grows */
    int64_t value;
} ses_strmap_entry;

typedef struct ses_strmap {
    ses_strmap_entry *entry;
    size_t count, cap;
    uint32_t *slot; /* entry + 1; 0: free; at most half are in use */
    size_t slots;   /* power of two, or 0 */
    ses_hash_key key;
} ses_strmap;

bool ses_strmap_reserve(ses_strmap *m, size_t n, ses_err *e); /* capacity for n entries in total */
/* Inserts (key, value) if the key is new (*fresh). Returns the address of the key's value; NULL: out of
 * memory. */
int64_t *ses_strmap_insert(ses_strmap *m, const char *key, size_t n, int64_t value, bool *fresh, ses_err *e);
bool ses_strmap_find(const ses_strmap *m, const char *key, size_t n, int64_t *value);
void ses_strmap_free(ses_strmap *m); /* back to zero */

#endif
