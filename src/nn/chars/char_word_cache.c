/* Cache of word vectors. */
#include "char_word_cache.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/strmap.h"

#include <string.h>

struct ses_word_cache {
    ses_strmap index; /* characters as bytes to the row of x */
    ses_arena keys;
    ses_real *x; /* [cap, width] */
    size_t n, cap, max_bytes;
    int64_t width;
};

ses_word_cache *ses_word_cache_new(size_t max_bytes, ses_err *e)
{
    ses_word_cache *c = ses_alloc(sizeof *c, e);
    if (c) c->max_bytes = max_bytes;
    return c;
}

static void clear(ses_word_cache *c)
{
    ses_strmap_free(&c->index);
    ses_arena_reset(&c->keys);
    c->n = 0;
}

void ses_word_cache_free(ses_word_cache *c)
{
    if (!c) return;
    clear(c);
    ses_arena_free(&c->keys);
    ses_free(c->x);
    ses_free(c);
}

size_t ses_word_cache_count(const ses_word_cache *c) { return c ? c->n : 0; }

const ses_real *ses_word_cache_find(const ses_word_cache *c, const int16_t *word, int64_t chars)
{
    int64_t row;
    if (!c || !ses_strmap_find(&c->index, (const char *)word, (size_t)chars * sizeof *word, &row))
        return NULL;
    return c->x + row * c->width;
}

/* Capacity for one more row. */
static bool reserve(ses_word_cache *c, ses_err *e)
{
    if (c->n < c->cap) return true;
    size_t row = (size_t)c->width * sizeof *c->x, most = c->max_bytes / row, cap = c->cap ? 2 * c->cap : 1024;
    if (cap > most) cap = most;
    if (cap <= c->cap) {
        clear(c);
        return c->cap > 0;
    }
    ses_real *x = ses_realloc_array(c->x, cap, row, e);
    if (!x) return false;
    c->x = x;
    c->cap = cap;
    return true;
}

bool ses_word_cache_put(ses_word_cache *c, const int16_t *word, int64_t chars, const ses_real *x,
                        int64_t width, ses_err *e)
{
    size_t bytes = (size_t)chars * sizeof *word;
    bool fresh = false;
    c->width = width;
    if (c->max_bytes < (size_t)width * sizeof *x) return true; /* no room for one */
    if (!reserve(c, e)) return false;
    const char *key = ses_arena_strndup(&c->keys, (const char *)word, bytes, e);
    if (!key || !ses_strmap_insert(&c->index, key, bytes, (int64_t)c->n, &fresh, e)) return false;
    if (fresh) memcpy(c->x + c->n++ * (size_t)width, x, (size_t)width * sizeof *x);
    return true;
}
