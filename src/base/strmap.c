/* Open-addressing hash map over an array of entries. */
#include "strmap.h"

#include "alloc.h"

#include <string.h>

enum { MAX_ENTRIES = 1 << 30 };

static void insert_slot(ses_strmap *m, uint32_t hash, size_t entry)
{
    size_t at = hash & (m->slots - 1);
    while (m->slot[at]) at = (at + 1) & (m->slots - 1);
    m->slot[at] = (uint32_t)entry + 1;
}

bool ses_strmap_reserve(ses_strmap *m, size_t n, ses_err *e)
{
    if (n <= m->cap) return true;
    if (n > MAX_ENTRIES)
        return ses_fail(e, SES_ENOMEM, "map of %zu entries, the maximum is %d", n, MAX_ENTRIES);
    size_t slots = m->slots ? m->slots : 16;
    while (slots < 2 * n) slots *= 2;
    size_t cap = slots / 2;
    uint32_t *slot = ses_alloc_array(slots, sizeof *slot, e);
    ses_strmap_entry *entry = slot ? ses_realloc_array(m->entry, cap, sizeof *entry, e) : NULL;
    if (!entry) {
        ses_free(slot);
        return false;
    }
    if (!m->slots) m->key = ses_hash_key_new();
    ses_free(m->slot);
    m->slot = slot;
    m->slots = slots;
    m->entry = entry;
    m->cap = cap;
    for (size_t i = 0; i < m->count; i++) insert_slot(m, entry[i].hash, i);
    return true;
}

static ses_strmap_entry *find(const ses_strmap *m, const char *key, size_t n, uint32_t hash)
{
    if (!m->slots) return NULL;
    for (size_t at = hash & (m->slots - 1); m->slot[at]; at = (at + 1) & (m->slots - 1)) {
        ses_strmap_entry *x = &m->entry[m->slot[at] - 1];
        if (x->hash == hash && x->len == n && memcmp(x->key, key, n) == 0) return x;
    }
    return NULL;
}

int64_t *ses_strmap_insert(ses_strmap *m, const char *key, size_t n, int64_t value, bool *fresh, ses_err *e)
{
    if (n > UINT32_MAX) {
        ses_fail(e, SES_EARG, "map key of %zu bytes", n);
        return NULL;
    }
    if (m->count == m->cap && !ses_strmap_reserve(m, m->count + 1, e)) return NULL;
    uint32_t hash = (uint32_t)ses_hash(m->key, key, n);
    ses_strmap_entry *x = find(m, key, n, hash);
    *fresh = !x;
    if (x) return &x->value;
    m->entry[m->count] = (ses_strmap_entry){ key, (uint32_t)n, hash, value };
    insert_slot(m, hash, m->count);
    return &m->entry[m->count++].value;
}

bool ses_strmap_find(const ses_strmap *m, const char *key, size_t n, int64_t *value)
{
    const ses_strmap_entry *x = m->slots ? find(m, key, n, (uint32_t)ses_hash(m->key, key, n)) : NULL;
    if (x) *value = x->value;
    return x != NULL;
}

void ses_strmap_free(ses_strmap *m)
{
    ses_free(m->entry);
    ses_free(m->slot);
    *m = (ses_strmap){ 0 };
}
