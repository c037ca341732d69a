/* Byte-level BPE by backtracking, in linear time.
 *
 * A token sequence is the result of BPE merging if and only if every two adjacent tokens, taken alone,
 * would merge to exactly these two. So the search goes from left to right: take the longest token, or the
 * next shorter one, that may follow the previous token; if there is none, go back by one token. Whether
 * two tokens may be adjacent follows from the merges that formed them and is cached.
 *
 * Requires that every token is the result of exactly one merge, of parts with lower ranks; most
 * vocabularies satisfy this. Tokens are identified by their order: the byte value, or 256 + rank of the
 * merge. The hot tables are small enough to stay in the CPU cache. A ses_bpe_backtrack belongs to one
 * thread. */
#ifndef SES_TEXT_BPE_BACKTRACK_H
#define SES_TEXT_BPE_BACKTRACK_H

#include "bpe.h"
#include "trie.h"

enum { SES_BACKTRACK_PAIR_BITS = 16, SES_BACKTRACK_FILTER_BITS = 20, SES_BACKTRACK_ORDER_BITS = 21 };

typedef struct ses_backtrack_parts {
    uint32_t left, right;
} ses_backtrack_parts;

typedef struct ses_bpe_backtrack {
    ses_trie trie;              /* tokens by their bytes; values are orders */
    ses_backtrack_parts *parts; /* [orders] */
    int32_t *id;                /* [orders] id in the vocabulary */
    uint32_t *byte_pair;        /* [65536] order that bytes a, b merge to, at a << 8 | b; 0: none */
    uint64_t *filter;           /* one bit per hash of a merging pair: rejects most others */
    uint64_t *slot;             /* left, right, order of the merging pairs; 0: free */
    size_t mask;
    uint32_t *pair; /* [1 << SES_BACKTRACK_PAIR_BITS] cache of adjacency tests; 0: empty */
    ses_arena mem;
} ses_bpe_backtrack;

/* *fits false: the vocabulary does not satisfy the requirement. id: ids of the 256 bytes. */
bool ses_bpe_backtrack_open(ses_bpe_backtrack *w, const ses_bpe *m, const int32_t id[256], bool *fits,
                            ses_err *e);
void ses_bpe_backtrack_close(ses_bpe_backtrack *w);

/* Write ids and byte lengths of the tokens of n > 0 bytes; both arrays have capacity n. *count: tokens. */
bool ses_bpe_backtrack_encode(ses_bpe_backtrack *w, const char *text, size_t n, int32_t *id, uint32_t *len,
                              size_t *count, ses_arena *scratch, ses_err *e);

#endif
