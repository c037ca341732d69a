/* Byte-level BPE without merging: tokens are read off from the left.
 *
 * A sequence of tokens is what merging makes of a text if and only if it makes of each two neighbors
 * just these two. So from the left: the longest token, or the next shorter one, that can stand after
 * the one before; back by one where none can. Whether two tokens can stand side by side is told by the
 * merges they came of, and remembered. Time grows with the text's length, whatever the text.
 *
 * This holds where every token comes of one merge, of parts that came of earlier ones; most
 * vocabularies are so. */
#ifndef SES_TEXT_BPE_WALK_H
#define SES_TEXT_BPE_WALK_H

#include "bpe.h"
#include "trie.h"

enum { SES_WALK_PAIR_BITS = 16, SES_WALK_FILTER_BITS = 20 };

/* How a token came to be. */
typedef struct ses_walk_node {
    int32_t left, right;
    uint32_t rank; /* of its merge, from 1; 0: a byte */
    uint32_t spare;
} ses_walk_node;

typedef struct ses_walk_size {
    uint32_t len;    /* in bytes; 0: never made */
    int32_t shorter; /* the longest token that it begins with, or -1 */
} ses_walk_size;

typedef struct ses_bpe_walk {
    const ses_merges *merges;
    ses_trie trie;       /* tokens by the bytes they stand for; values are ids */
    ses_walk_node *node; /* [size] */
    ses_walk_size *size; /* [size] */
    uint64_t *pair; /* [1 << SES_WALK_PAIR_BITS] left << 33 | right << 1 | may stand side by side; 0: free */
    uint64_t *filter; /* a bit for each hash of a pair that merges: most that do not are told by it */
    ses_arena mem;
} ses_bpe_walk;

/* *fits false: the vocabulary is of another kind. id: of single bytes. */
bool ses_bpe_walk_open(ses_bpe_walk *w, const ses_bpe *m, const int32_t id[256], bool *fits, ses_err *e);
void ses_bpe_walk_close(ses_bpe_walk *w);

/* Ids and lengths of the tokens of n > 0 bytes; room for n of each. One thread at a time. */
bool ses_bpe_walk_run(ses_bpe_walk *w, const char *text, size_t n, int32_t *id, uint32_t *len, size_t *count,
                      ses_arena *scratch, ses_err *e);

#endif
