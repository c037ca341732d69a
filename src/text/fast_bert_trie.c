#include "fast_bert_trie.h"

#include "base/alloc.h"

#include <string.h>

enum { MAX_NODES = (1 << 24) - 1 };

static void put_edge(ses_bert_trie *t, uint64_t edge)
{
    size_t mask = ((size_t)1 << (64 - t->shift)) - 1, at = ses_bert_slot(t, (uint32_t)edge);
    while (t->edge[at]) at = (at + 1) & mask;
    t->edge[at] = edge;
}

/* Twice the room; at most half of it is taken. */
static bool grow(ses_bert_trie *t, ses_err *e)
{
    size_t old = t->edge ? (size_t)1 << (64 - t->shift) : 0,
           size = old ? 2 * old : (size_t)1 << (64 - t->shift);
    uint64_t *edge = ses_alloc_array(size, sizeof *edge, e), *was = t->edge;
    int32_t *value = edge ? ses_realloc_array(t->value, size / 2 + 2, sizeof *value, e) : NULL;
    if (!value) {
        ses_free(edge);
        return false;
    }
    t->value = value;
    t->edge = edge;
    t->cap = (uint32_t)(size / 2);
    t->shift -= old > 0;
    for (size_t i = 0; i < old; i++)
        if (was[i]) put_edge(t, was[i]);
    ses_free(was);
    return true;
}

static bool put(ses_bert_trie *t, const uint8_t *p, size_t n, int32_t id, ses_err *e)
{
    uint32_t node = 1;
    for (size_t i = 0; i < n; i++) {
        uint32_t to = ses_bert_step(t, node, p[i]);
        if (!to) {
            if (t->n + 1 >= t->cap && !grow(t, e)) return false;
            if (t->n == MAX_NODES) return ses_fail(e, SES_EUNSUPPORTED, "a vocabulary of too many bytes");
            to = ++t->n;
            t->value[to] = -1;
            put_edge(t, (uint64_t)to << 32 | node << 8 | p[i]);
        }
        node = to;
    }
    t->value[node] = id;
    return true;
}

/* Once all tokens are in: mark the edges to where they end, and list the root's. */
static void finish(ses_bert_trie *t)
{
    for (size_t i = 0; i < (size_t)1 << (64 - t->shift); i++) {
        uint64_t *edge = &t->edge[i];
        if (*edge && t->value[*edge >> 32] >= 0) *edge |= (uint64_t)SES_BERT_ENDS << 32;
    }
    for (uint32_t c = 0; c < 256; c++) t->root[c] = ses_bert_step(t, 1, (uint8_t)c);
}

bool ses_bert_trie_open(ses_bert_trie *t, const ses_vocab *v, ses_string prefix, ses_err *e)
{
    *t = (ses_bert_trie){ .n = 1, .shift = 52 };
    while (!prefix.n && t->shift > 40 && (int64_t)1 << (64 - t->shift) < 3 * (int64_t)v->count) t->shift--;
    if (!grow(t, e)) return false;
    t->value[0] = t->value[1] = -1;
    for (int32_t id = 0; id < v->size; id++) {
        size_t n = 0;
        const char *s = ses_vocab_token(v, id, &n);
        if (!s || n <= prefix.n || memcmp(s, prefix.p, prefix.n)) continue;
        if (!put(t, (const uint8_t *)s + prefix.n, n - prefix.n, id, e)) return false;
    }
    finish(t);
    return true;
}

void ses_bert_trie_close(ses_bert_trie *t)
{
    ses_free(t->edge);
    ses_free(t->value);
    *t = (ses_bert_trie){ 0 };
}
