/* Builds a double-array trie from keys in sorted order. */
#include "trie.h"

#include "base/alloc.h"
#include "sort_keys.h"

#include <string.h>

/* ---- finding free units ----
 *
 * Units are in blocks of 256, so that b ^ c stays in the block of b. A node with children c1, c2, ... fits
 * a block if its bitmaps of free units, permuted by ^ c1, ^ c2, ..., have a common bit. */

enum { OPEN = 24 }; /* blocks with free units that are remembered */

typedef struct block {
    uint64_t free[4]; /* bitmap of free units */
    uint64_t base[4]; /* bitmap of values not used as a base */
} block;

typedef struct block_builder {
    uint64_t *unit;
    block *block;
    size_t n_block, cap_block;
    uint32_t open[OPEN];
    size_t n_open;
} block_builder;

/* Swap bits i and i + by for all i in mask, if `wanted`; branch-free, because key bytes are unpredictable. */
static inline uint64_t swap_bits(uint64_t x, uint64_t mask, unsigned by, bool wanted)
{
    uint64_t t = (x ^ x >> by) & mask & (0 - (uint64_t)wanted);
    return x ^ t ^ t << by;
}

/* Permute the bits of a word: bit i moves to i ^ c. */
static inline uint64_t shuffle(uint64_t x, unsigned c)
{
    x = swap_bits(x, 0x5555555555555555, 1, c & 1);
    x = swap_bits(x, 0x3333333333333333, 2, c & 2);
    x = swap_bits(x, 0x0f0f0f0f0f0f0f0f, 4, c & 4);
    x = swap_bits(x, 0x00ff00ff00ff00ff, 8, c & 8);
    x = swap_bits(x, 0x0000ffff0000ffff, 16, c & 16);
    return swap_bits(x, 0x00000000ffffffff, 32, c & 32);
}

/* A base in this block for a node with these children; -1: does not fit. */
static int fit_in_block(const block *b, const uint8_t *child, size_t n)
{
    for (unsigned w = 0; w < 4; w++) {
        uint64_t fit = b->base[w];
        for (size_t i = 0; i < n && fit; i++) fit &= shuffle(b->free[w ^ child[i] >> 6], child[i] & 63);
        if (fit) return (int)(w * 64) + __builtin_ctzll(fit);
    }
    return -1;
}

/* The same for one child: any free unit determines the base. */
static int fit_one(const block *b, uint8_t child)
{
    for (unsigned w = 0; w < 4; w++) {
        if (!b->free[w]) continue;
        unsigned base = (w * 64 + (unsigned)__builtin_ctzll(b->free[w])) ^ child;
        if (b->base[base >> 6] >> (base & 63) & 1) return (int)base;
    }
    return fit_in_block(b, &child, 1);
}

static bool add_block(block_builder *b, ses_err *e)
{
    if (b->n_block == b->cap_block) {
        size_t cap = b->cap_block ? 2 * b->cap_block : 64;
        block *blocks = ses_realloc_array(b->block, cap, sizeof *blocks, e);
        if (!blocks) return false;
        b->block = blocks;
        uint64_t *unit = ses_realloc_array(b->unit, cap, 256 * sizeof *unit, e);
        if (!unit) return false;
        b->unit = unit;
        b->cap_block = cap;
    }
    if (b->n_block >= UINT32_MAX / 256) return ses_fail(e, SES_EARG, "too many pieces for a trie");
    memset(&b->block[b->n_block], 0xff, sizeof *b->block);
    memset(b->unit + b->n_block * 256, 0, 256 * sizeof *b->unit);
    if (b->n_open == OPEN) { /* drop the fullest block */
        size_t worst = 0;
        int shortest = 257;
        for (size_t i = 0; i < OPEN; i++) {
            const block *k = &b->block[b->open[i]];
            int left = 0;
            for (int w = 0; w < 4; w++) left += __builtin_popcountll(k->free[w]);
            if (left < shortest) shortest = left, worst = i;
        }
        b->open[worst] = b->open[--b->n_open];
    }
    b->open[b->n_open++] = (uint32_t)b->n_block++;
    return true;
}

static bool find_base(block_builder *b, const uint8_t *child, size_t n, uint32_t *base, ses_err *e)
{
    for (size_t k = b->n_open;; k--) {
        if (!k) {
            if (!add_block(b, e)) return false;
            k = b->n_open;
        }
        uint32_t at = b->open[k - 1];
        block *bl = &b->block[at];
        int found = n == 1 ? fit_one(bl, *child) : fit_in_block(bl, child, n);
        if (found < 0) {
            if (n == 1) b->open[k - 1] = b->open[--b->n_open]; /* full */
            continue;
        }
        *base = at * 256 + (uint32_t)found;
        bl->base[found >> 6] &= ~((uint64_t)1 << (found & 63));
        for (size_t i = 0; i < n; i++) {
            unsigned u = (unsigned)found ^ child[i];
            bl->free[u >> 6] &= ~((uint64_t)1 << (u & 63));
        }
        return true;
    }
}

/* ---- building nodes from sorted keys ---- */

/* The keys in sorted order, and their bytes concatenated in that order for sequential reading. */
typedef struct sorted {
    uint32_t *index;  /* [n] index of the original key */
    uint32_t *common; /* [n] length of the common prefix with the previous key */
    uint32_t *len;    /* [n] */
    uint32_t *start;  /* [n] offset in the concatenated bytes */
    size_t n;
} sorted;

typedef struct todo { /* a node to build: the range of keys that pass through it */
    uint32_t begin, end, depth;
    uint32_t unit; /* its unit; UINT32_MAX: the root */
} todo;

typedef struct stack {
    todo *item;
    size_t n, cap;
} stack;

static bool push(stack *s, todo t, ses_err *e)
{
    if (!ses_array_reserve(&s->item, &s->cap, s->n + 1, sizeof *s->item, e)) return false;
    s->item[s->n++] = t;
    return true;
}

static uint32_t common_prefix(const char *a, size_t n, const char *b, size_t m)
{
    size_t i = 0, shortest = n < m ? n : m;
    while (i < shortest && a[i] == b[i]) i++;
    return (uint32_t)i;
}

/* Collect everything needed to build nodes; the keys themselves are not used afterwards. */
static bool sort_keys(sorted *s, const ses_string *key, size_t n, char **packed, ses_err *e)
{
    size_t bytes = 0, at = 0;
    for (size_t i = 0; i < n; i++) bytes += key[i].n;
    if (bytes > UINT32_MAX)
        return ses_fail(e, SES_EARG, "%zu bytes of pieces are too many for a trie", bytes);
    s->index = ses_sort_keys(key, n, e);
    s->common = ses_alloc_array(n + 1, sizeof *s->common, e);
    s->len = ses_alloc_array(n + 1, sizeof *s->len, e);
    s->start = ses_alloc_array(n + 1, sizeof *s->start, e);
    *packed = ses_alloc_aligned(bytes + 1, e);
    if (!s->index || !s->common || !s->len || !s->start || !*packed) return false;
    for (size_t i = 0; i < n; i++) {
        const ses_string *k = &key[s->index[i]];
        size_t to = s->n;
        if (!k->p) continue;
        if (k->n) memcpy(*packed + at, k->p, k->n);
        s->start[to] = (uint32_t)at;
        s->len[to] = (uint32_t)k->n;
        s->index[to] = s->index[i];
        if (to) s->common[to] = common_prefix(*packed + s->start[to - 1], s->len[to - 1], *packed + at, k->n);
        at += k->n;
        s->n++;
    }
    return true;
}

typedef struct trie_builder {
    block_builder b;
    sorted s;
    char *packed;
    stack todo;
} trie_builder;

/* Append the rest of a key that shares no further prefix, from the unit of its byte depth - 1 on. Most
 * nodes are in such chains. */
static bool add_chain(trie_builder *m, uint32_t unit, uint32_t key, uint32_t depth, ses_err *e)
{
    const uint8_t *p = (const uint8_t *)m->packed + m->s.start[key];
    for (uint32_t end = m->s.len[key]; depth < end; depth++) {
        uint32_t base;
        if (!find_base(&m->b, p + depth, 1, &base, e)) return false;
        m->b.unit[unit] |= (uint64_t)base << 32;
        unit = base ^ p[depth];
        m->b.unit[unit] = 0x100u | p[depth];
    }
    m->b.unit[unit] |= (uint64_t)(m->s.index[key] + 1) << 9;
    return true;
}

static bool add_node(trie_builder *m, ses_trie *t, todo node, ses_err *e)
{
    const sorted *s = &m->s;
    uint8_t child[256];
    uint32_t first[257], i = node.begin, depth = node.depth;
    size_t n = 0;
    int32_t value = -1;
    for (; i < node.end && s->len[i] == depth; i++) {
        if (value >= 0 && !t->again) t->same[0] = value, t->same[1] = (int32_t)s->index[i], t->again = true;
        value = (int32_t)s->index[i];
    }
    while (i < node.end) {
        child[n] = (uint8_t)m->packed[s->start[i] + depth];
        first[n++] = i++;
        while (i < node.end && s->common[i] > depth) i++;
    }
    first[n] = node.end;
    uint32_t base = 0; /* base of a leaf: block 0 is never used */
    if (n && !find_base(&m->b, child, n, &base, e)) return false;
    if (node.unit == UINT32_MAX)
        t->root = base, t->empty = value;
    else
        m->b.unit[node.unit] |= (uint64_t)base << 32 | (uint64_t)(value + 1) << 9;
    for (size_t k = n; k--;) {
        uint32_t u = base ^ child[k];
        m->b.unit[u] = 0x100u | child[k];
        if (first[k + 1] - first[k] > 1 && !push(&m->todo, (todo){ first[k], first[k + 1], depth + 1, u }, e))
            return false;
    }
    for (size_t k = 0; k < n; k++)
        if (first[k + 1] - first[k] == 1 && !add_chain(m, base ^ child[k], first[k], depth + 1, e))
            return false;
    return true;
}

bool ses_trie_build(ses_trie *t, const ses_string *key, size_t n, ses_arena *mem, ses_err *e)
{
    *t = (ses_trie){ .empty = -1 };
    if (n > SES_TRIE_MAX) return ses_fail(e, SES_EARG, "%zu pieces exceed the limit of %d", n, SES_TRIE_MAX);
    for (size_t i = 0; i < n; i++)
        if (key[i].n > t->longest) t->longest = key[i].n < UINT32_MAX ? (uint32_t)key[i].n : UINT32_MAX;
    trie_builder m = { 0 };
    bool ok = sort_keys(&m.s, key, n, &m.packed, e) && add_block(&m.b, e) &&
              push(&m.todo, (todo){ 0, (uint32_t)m.s.n, 0, UINT32_MAX }, e);
    m.b.n_open = 0; /* block 0 stays empty */
    while (ok && m.todo.n) ok = add_node(&m, t, m.todo.item[--m.todo.n], e);
    uint64_t *unit = ok ? ses_arena_alloc(mem, m.b.n_block * 256 * sizeof *unit, e) : NULL;
    if (unit) memcpy(unit, m.b.unit, m.b.n_block * 256 * sizeof *unit);
    t->unit = unit;
    t->n = m.b.n_block * 256;
    ses_free(m.s.index);
    ses_free(m.s.common);
    ses_free(m.s.len);
    ses_free(m.packed);
    ses_free(m.s.start);
    ses_free(m.b.unit);
    ses_free(m.b.block);
    ses_free(m.todo.item);
    return unit != NULL;
}

int32_t ses_trie_find(const ses_trie *t, const char *key, size_t n)
{
    uint32_t base = t->root;
    int32_t value = t->empty;
    for (size_t i = 0; i < n; i++)
        if (!ses_trie_step(t, &base, (uint8_t)key[i], &value)) return -1;
    return value;
}

const uint64_t *ses_trie_pairs(const ses_trie *t, ses_arena *mem, ses_err *e)
{
    uint64_t *pair = ses_arena_array(mem, 128 << 8, sizeof *pair, e);
    for (unsigned a = 0; pair && a < 128; a++) {
        uint64_t u = ses_trie_next(t, (uint64_t)t->root << 32, (uint8_t)a);
        for (unsigned b = 0; u && b < 256; b++) pair[a << 8 | b] = ses_trie_next(t, u, (uint8_t)b);
    }
    return pair;
}
