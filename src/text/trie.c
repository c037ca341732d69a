#include "trie.h"

#include "base/alloc.h"
#include "sort_keys.h"

#include <string.h>

/* ---- places for nodes ----
 *
 * Units come in blocks of 256, so that b ^ c stays in b's block. For a node with children c1, c2, ... a
 * block has a place where its bitmap of free units, shuffled by ^ c1, ^ c2, ..., still has a bit
 * in common. */

enum { OPEN = 24 }; /* blocks with room that are kept in mind */

typedef struct block {
    uint64_t free[4]; /* units nobody has */
    uint64_t base[4]; /* numbers that are no node's base */
} block;

typedef struct builder {
    uint64_t *unit;
    block *block;
    size_t n_block, cap_block;
    uint32_t open[OPEN];
    size_t n_open;
} builder;

/* The bits of a word in the order i ^ c. */
static uint64_t shuffle(uint64_t x, unsigned c)
{
    if (c & 1) x = (x & 0x5555555555555555) << 1 | (x >> 1 & 0x5555555555555555);
    if (c & 2) x = (x & 0x3333333333333333) << 2 | (x >> 2 & 0x3333333333333333);
    if (c & 4) x = (x & 0x0f0f0f0f0f0f0f0f) << 4 | (x >> 4 & 0x0f0f0f0f0f0f0f0f);
    if (c & 8) x = (x & 0x00ff00ff00ff00ff) << 8 | (x >> 8 & 0x00ff00ff00ff00ff);
    if (c & 16) x = (x & 0x0000ffff0000ffff) << 16 | (x >> 16 & 0x0000ffff0000ffff);
    if (c & 32) x = x << 32 | x >> 32;
    return x;
}

/* A base in this block for a node with these children; -1: no room. */
static int place_in(const block *b, const uint8_t *child, size_t n)
{
    for (unsigned w = 0; w < 4; w++) {
        uint64_t fit = b->base[w];
        for (size_t i = 0; i < n && fit; i++) fit &= shuffle(b->free[w ^ child[i] >> 6], child[i] & 63);
        if (fit) return (int)(w * 64) + __builtin_ctzll(fit);
    }
    return -1;
}

static bool add_block(builder *b, ses_err *e)
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
    if (b->n_open == OPEN) { /* the fullest is given up */
        size_t worst = 0;
        int least = 257;
        for (size_t i = 0; i < OPEN; i++) {
            const block *k = &b->block[b->open[i]];
            int left = 0;
            for (int w = 0; w < 4; w++) left += __builtin_popcountll(k->free[w]);
            if (left < least) least = left, worst = i;
        }
        b->open[worst] = b->open[--b->n_open];
    }
    b->open[b->n_open++] = (uint32_t)b->n_block++;
    return true;
}

static bool place(builder *b, const uint8_t *child, size_t n, uint32_t *base, ses_err *e)
{
    for (size_t k = b->n_open;; k--) {
        if (!k) {
            if (!add_block(b, e)) return false;
            k = b->n_open;
        }
        uint32_t at = b->open[k - 1];
        block *bl = &b->block[at];
        int found = place_in(bl, child, n);
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

/* ---- nodes from sorted keys ---- */

typedef struct todo { /* a node: the keys that go through it, in order */
    uint32_t begin, end, depth;
    uint32_t unit; /* its place; UINT32_MAX: the root */
} todo;

typedef struct stack {
    todo *item;
    size_t n, cap;
} stack;

static bool push(stack *s, todo t, ses_err *e)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 1024;
        todo *item = ses_realloc_array(s->item, cap, sizeof *item, e);
        if (!item) return false;
        s->item = item;
        s->cap = cap;
    }
    s->item[s->n++] = t;
    return true;
}

static bool add_node(builder *b, ses_trie *t, const ses_string *key, const uint32_t *order, todo node,
                     stack *s, ses_err *e)
{
    uint8_t child[256];
    uint32_t first[257];
    size_t n = 0;
    int32_t value = -1;
    uint32_t i = node.begin;
    for (; i < node.end && key[order[i]].n == node.depth; i++)
        if (key[order[i]].p) value = (int32_t)order[i];
    for (; i < node.end; i++) {
        uint8_t c = (uint8_t)key[order[i]].p[node.depth];
        if (!n || child[n - 1] != c) child[n] = c, first[n++] = i;
    }
    first[n] = node.end;
    uint32_t base = 0; /* of a leaf: block 0 is never used */
    if (n && !place(b, child, n, &base, e)) return false;
    if (node.unit == UINT32_MAX)
        t->root = base, t->empty = value;
    else
        b->unit[node.unit] |= (uint64_t)base << 32 | (uint64_t)(value + 1) << 9;
    for (size_t k = n; k--;) {
        uint32_t u = base ^ child[k];
        b->unit[u] = 0x100u | child[k];
        if (!push(s, (todo){ first[k], first[k + 1], node.depth + 1, u }, e)) return false;
    }
    return true;
}

bool ses_trie_build(ses_trie *t, const ses_string *key, size_t n, ses_arena *mem, ses_err *e)
{
    *t = (ses_trie){ .empty = -1 };
    if (n > SES_TRIE_MAX) return ses_fail(e, SES_EARG, "%zu pieces; %d is the limit", n, SES_TRIE_MAX);
    for (size_t i = 0; i < n; i++)
        if (key[i].n > t->longest) t->longest = key[i].n < UINT32_MAX ? (uint32_t)key[i].n : UINT32_MAX;
    builder b = { 0 };
    stack s = { 0 };
    uint32_t *order = ses_sort_keys(key, n, e);
    bool ok = order && add_block(&b, e) && push(&s, (todo){ 0, (uint32_t)n, 0, UINT32_MAX }, e);
    b.n_open = 0; /* block 0 stays empty */
    while (ok && s.n) ok = add_node(&b, t, key, order, s.item[--s.n], &s, e);
    uint64_t *unit = ok ? ses_arena_alloc(mem, b.n_block * 256 * sizeof *unit, e) : NULL;
    if (unit) memcpy(unit, b.unit, b.n_block * 256 * sizeof *unit);
    t->unit = unit;
    t->n = b.n_block * 256;
    ses_free(order);
    ses_free(b.unit);
    ses_free(b.block);
    ses_free(s.item);
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
