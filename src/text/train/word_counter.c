/* Word counts in bounded memory: if there are too many words, the rarest are dropped, repeatedly if
 * necessary. */
#include "base/alloc.h"
#include "base/strmap.h"
#include "text/vocab/sort_keys.h"
#include "tokenizer_trainer.h"

#include <string.h>

enum { USUAL_MAX = 20000000 };

struct ses_word_counter {
    ses_strmap map; /* word to count */
    ses_arena keys;
    size_t max;
    /* words with at most this count were dropped before; a dropped word that returns starts again at 0 */
    int64_t floor;
};

ses_word_counter *ses_word_counter_new(size_t max_words, ses_err *e)
{
    ses_word_counter *c = ses_alloc(sizeof *c, e);
    if (c) c->max = max_words ? max_words : USUAL_MAX;
    return c;
}

void ses_word_counter_free(ses_word_counter *c)
{
    if (!c) return;
    ses_strmap_free(&c->map);
    ses_arena_free(&c->keys);
    ses_free(c);
}

static bool put(ses_word_counter *c, const char *p, size_t n, int64_t count, ses_err *e)
{
    int64_t *value, old;
    bool fresh;
    if (ses_strmap_find(&c->map, p, n, &old)) {
        value = ses_strmap_insert(&c->map, p, n, 0, &fresh, e);
        if (value) *value += count;
        return value != NULL;
    }
    char *key = ses_arena_strndup(&c->keys, p, n, e);
    return key && ses_strmap_insert(&c->map, key, n, count, &fresh, e) != NULL;
}

/* Drop words with at most `floor` occurrences, increasing floor, until half the capacity is free. */
static bool prune(ses_word_counter *c, ses_err *e)
{
    while (c->map.count > c->max / 2) {
        ses_word_counter remaining = { .max = c->max, .floor = ++c->floor };
        bool ok = true;
        for (size_t i = 0; ok && i < c->map.count; i++) {
            const ses_strmap_entry *x = &c->map.entry[i];
            if (x->value > c->floor) ok = put(&remaining, x->key, x->len, x->value, e);
        }
        ses_strmap_free(&c->map);
        ses_arena_free(&c->keys);
        c->map = remaining.map;
        c->keys = remaining.keys;
        if (!ok) return false;
    }
    return true;
}

bool ses_word_counter_add(ses_word_counter *c, const char *p, size_t n, int64_t count, ses_err *e)
{
    return put(c, p, n, count, e) && (c->map.count <= c->max || prune(c, e));
}

bool ses_word_counter_merge(ses_word_counter *c, const ses_word_counter *from, ses_err *e)
{
    for (size_t i = 0; i < from->map.count; i++) {
        const ses_strmap_entry *x = &from->map.entry[i];
        if (!ses_word_counter_add(c, x->key, x->len, x->value, e)) return false;
    }
    return true;
}

bool ses_word_counter_sorted(const ses_word_counter *c, ses_arena *mem, ses_counted_words *out, ses_err *e)
{
    size_t n = c->map.count;
    ses_string *key = ses_alloc_array(n, sizeof *key, e);
    for (size_t i = 0; key && i < n; i++) key[i] = (ses_string){ c->map.entry[i].key, c->map.entry[i].len };
    uint32_t *order = key ? ses_sort_keys(key, n, e) : NULL;
    out->word = order ? ses_arena_array(mem, n, sizeof *out->word, e) : NULL;
    out->n = out->word ? n : 0;
    for (size_t i = 0; i < out->n; i++) {
        const ses_strmap_entry *x = &c->map.entry[order[i]];
        out->word[i] = (ses_counted_word){ x->key, x->len, x->value };
    }
    ses_free(order);
    ses_free(key);
    return out->word != NULL;
}
