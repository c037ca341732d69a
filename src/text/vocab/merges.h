/* The merges of a BPE model: pairs of ids, the order in which they are merged (the rank, lowest first) and
 * what they become. A hash table on an arena, read-only once filled. */
#ifndef SES_TEXT_MERGES_H
#define SES_TEXT_MERGES_H

#include "sesame/tokenizer.h"
#include "vocab.h"

typedef struct ses_merge {
    int32_t left, right;
    uint32_t rank; /* UINT32_MAX: a free slot */
    int32_t id;    /* of left and right joined */
} ses_merge;

/* The characters a token begins and ends with, hashed. */
typedef struct ses_token_edge {
    uint16_t first, last;
} ses_token_edge;

enum { SES_MERGES_FILTER_BITS = 19 };

typedef struct ses_merges {
    ses_merge *slot; /* open addressing, at most half are taken */
    size_t mask;
    int shift;
    uint64_t factor;  /* odd, drawn anew for each table, so that nobody can prepare pairs that collide */
    uint32_t *ranked; /* [ranks] the slot of each rank, UINT32_MAX: replaced by a later one */
    uint32_t ranks;
    uint32_t longest;     /* of the ids merged, in bytes */
    ses_token_edge *edge; /* [edges] by id */
    int32_t edges;
    /* A bit for each hash of two characters that some merge brings together; NULL: not known. */
    uint64_t *joint;
} ses_merges;

bool ses_merges_reserve(ses_merges *m, size_t count, ses_arena *mem, ses_err *e);
/* The last of equal pairs counts. */
void ses_merges_add(ses_merges *m, int32_t left, int32_t right, int32_t id);
/* With a rank of its own, which others may have too; such a table cannot be saved. Ids may be any but -1. */
void ses_merges_put(ses_merges *m, int32_t left, int32_t right, uint32_t rank, int32_t id);

/* Once all merges are in: find out which characters never come together in a token, so that long words can be
 * cut there. Ids below n are called name(ctx, id), and what is merged is called by both names end to end. */
typedef ses_string ses_merges_name_fn(const void *ctx, int32_t id);
bool ses_merges_build_filter(ses_merges *m, int32_t n, ses_merges_name_fn *name, const void *ctx,
                             ses_arena *mem, ses_err *e);

/* ["a b", ...] or [["a", "b"], ...]. The second part loses n_prefix bytes (the continuing-subword prefix)
 * when they are joined. */
bool ses_merges_open(ses_merges *m, const ses_json *list, const ses_vocab *vocab, size_t n_prefix,
                     ses_arena *mem, ses_err *e);
void ses_merges_save(const ses_merges *m, const ses_vocab *vocab, ses_json_writer *w); /* as pairs */

static inline size_t ses_merges_slot(const ses_merges *m, int32_t left, int32_t right)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (size_t)((pair ^ pair >> 29) * m->factor >> m->shift);
}

/* NULL: these two are never merged. */
static inline const ses_merge *ses_merges_find(const ses_merges *m, int32_t left, int32_t right)
{
    for (size_t i = ses_merges_slot(m, left, right);; i = (i + 1) & m->mask) {
        const ses_merge *s = &m->slot[i];
        if (s->left == left && s->right == right) return s;
        if (s->rank == UINT32_MAX) return NULL;
    }
}

static inline uint32_t ses_merges_edge_hash(ses_token_edge left, ses_token_edge right)
{
    return ((uint32_t)left.last << 16 | right.first) * 2654435761u >> (32 - SES_MERGES_FILTER_BITS);
}

/* Whether anything could be merged across the border of two symbols, now or when they have grown. */
static inline bool ses_merges_may_cross(const ses_merges *m, int32_t left, int32_t right)
{
    if ((uint32_t)left >= (uint32_t)m->edges || (uint32_t)right >= (uint32_t)m->edges) return true;
    uint32_t bit = ses_merges_edge_hash(m->edge[left], m->edge[right]);
    return m->joint[bit / 64] >> bit % 64 & 1;
}

/* For results that must be taken apart again: of the pairs that came up and would make id, the last. */
typedef struct ses_merge_trace {
    const uint8_t *wanted; /* by id */
    int32_t (*parts)[2];   /* by id */
} ses_merge_trace;

/* Merge n symbols, ids and byte lengths side by side, until no pair is left that merges: always the pair of
 * lowest rank, the leftmost of those. Works in place; *n is what remains. Time n log n. */
bool ses_merges_apply(const ses_merges *m, int32_t *id, uint32_t *len, size_t *n,
                      const ses_merge_trace *watch, ses_arena *scratch, ses_err *e); /* watch may be NULL */

#endif
