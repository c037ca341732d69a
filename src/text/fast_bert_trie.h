/* Walking the trie of fast_bert. */
#ifndef SES_TEXT_FAST_BERT_TRIE_H
#define SES_TEXT_FAST_BERT_TRIE_H

#include "fast_bert.h"

enum { SES_BERT_ENDS = 1 << 30 }; /* in an edge's target: a token ends there */

static inline size_t ses_bert_slot(const ses_bert_trie *t, uint32_t key)
{
    return (size_t)(key * 0x9E3779B97F4A7C15u >> t->shift);
}

/* Where the edge leads; 0: there is none. */
static inline uint32_t ses_bert_step(const ses_bert_trie *t, uint32_t node, uint8_t byte)
{
    uint32_t key = node << 8 | byte;
    size_t mask = ((size_t)1 << (64 - t->shift)) - 1;
    for (size_t at = ses_bert_slot(t, key);; at = (at + 1) & mask) {
        uint64_t edge = t->edge[at];
        if ((uint32_t)edge == key) return (uint32_t)(edge >> 32);
        if (!edge) return 0;
    }
}

/* The longest token that begins at p: its bytes, 0 if none. */
static inline size_t ses_bert_longest(const ses_bert_trie *t, const uint8_t *p, size_t n, int32_t *id)
{
    uint32_t to = t->root[p[0]], best = 0;
    size_t i = 1, len = 0;
    while (to) {
        if (to & SES_BERT_ENDS) len = i, best = to;
        if (i == n) break;
        to = ses_bert_step(t, to & (SES_BERT_ENDS - 1), p[i++]);
    }
    *id = t->value[best & (SES_BERT_ENDS - 1)];
    return len;
}

#endif
