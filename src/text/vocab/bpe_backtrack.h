/* Byte-level BPE without merging: tokens are read off from the left.
 *
 * A sequence of tokens is what merging makes of a text if and only if it makes of each two neighbors
 * just these two. So from the left: the longest token, or the next shorter one, that can stand after
 * the one before; back by one where none can. Whether two tokens can stand side by side is told by the
 * merges they came of, and remembered. Time grows with the text's length, whatever the text.
 *
 * This holds where every token comes of one merge, of parts that came of earlier ones; most
 * vocabularies are so. Tokens are known by their order then: bytes by themselves, others by 256 and the
 * rank of their merge. What is asked for all the time is kept small: it has to stay near the processor. */
#ifndef SES_TEXT_BPE_WALK_H
#define SES_TEXT_BPE_WALK_H

#include "bpe.h"
#include "trie.h"

enum { SES_BACKTRACK_PAIR_BITS = 16, SES_BACKTRACK_FILTER_BITS = 20, SES_BACKTRACK_ORDER_BITS = 21 };

typedef struct ses_backtrack_parts {
    uint32_t left, right;
} ses_backtrack_parts;

typedef struct ses_bpe_backtrack {
    ses_trie trie;              /* tokens by the bytes they stand for; values are orders */
    ses_backtrack_parts *parts; /* [orders] */
    int32_t *id;                /* [orders] in the vocabulary */
    uint32_t *two;    /* [65536] the order that bytes a, b merge to, at a << 8 | b; 0: they do not */
    uint64_t *filter; /* a bit for each hash of another pair that merges: most that do not are told by it */
    uint64_t *slot;   /* left, right, order of those pairs; 0: free */
    size_t mask;
    uint32_t *pair; /* [1 << SES_BACKTRACK_PAIR_BITS] what is known of two tokens side by side; 0: nothing */
    ses_arena mem;
} ses_bpe_backtrack;

/* *fits false: the vocabulary is of another kind. id: of single bytes. */
bool ses_bpe_backtrack_open(ses_bpe_backtrack *w, const ses_bpe *m, const int32_t id[256], bool *fits,
                            ses_err *e);
void ses_bpe_backtrack_close(ses_bpe_backtrack *w);

/* Ids and lengths of the tokens of n > 0 bytes; room for n of each. One thread at a time. */
bool ses_bpe_backtrack_encode(ses_bpe_backtrack *w, const char *text, size_t n, int32_t *id, uint32_t *len,
                              size_t *count, ses_arena *scratch, ses_err *e);

#endif
