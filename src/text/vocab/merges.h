/* The merge table of a BPE model: pairs of ids, their rank (merge order, lowest first) and the resulting
 * id. A hash table on an arena, read-only after filling. */
#ifndef SES_TEXT_MERGES_H
#define SES_TEXT_MERGES_H

#include "sesame/tokenizer.h"
#include "vocab.h"

typedef struct ses_merge {
    int32_t left, right;
    uint32_t rank; /* UINT32_MAX: free slot */
    int32_t id;    /* result of the merge */
} ses_merge;

/* Hashes of the first and last character of a token. */
typedef struct ses_token_edge {
    uint16_t first, last;
} ses_token_edge;

enum { SES_MERGES_FILTER_BITS = 19 };

typedef struct ses_merges {
    ses_merge *slot; /* open addressing, at most half full */
    size_t mask;
    int shift;
    uint64_t factor;  /* odd and random per table, so that collisions cannot be prepared */
    uint32_t *ranked; /* [ranks] slot of each rank; UINT32_MAX: replaced by a later merge */
    uint32_t ranks;
    uint32_t longest;     /* longest merge result in bytes */
    ses_token_edge *edge; /* [edges], indexed by id */
    int32_t edges;
    /* One bit per hash of two adjacent characters that some merge can join; NULL: no filter. */
    uint64_t *filter;
} ses_merges;

bool ses_merges_reserve(ses_merges *m, size_t count, ses_arena *mem, ses_err *e);
/* The last of equal pairs wins. */
void ses_merges_add(ses_merges *m, int32_t left, int32_t right, int32_t id);
/* Add with an explicit rank, which several pairs may share; such a table cannot be saved. Ids may be any but
 * -1. */
void ses_merges_put(ses_merges *m, int32_t left, int32_t right, uint32_t rank, int32_t id);

/* Call after all merges are added: finds the character pairs that never meet inside a token, so that long
 * words can be split between them. name(ctx, id) is the string of an id below n; a merge result is both
 * strings concatenated. */
typedef ses_string ses_merges_name_fn(const void *ctx, int32_t id);
bool ses_merges_build_filter(ses_merges *m, int32_t n, ses_merges_name_fn *name, const void *ctx,
                             ses_arena *mem, ses_err *e);

/* Read ["a b", ...] or [["a", "b"], ...]. n_prefix: bytes of the continuing-subword prefix, removed from
 * the second part when joining. */
bool ses_merges_open(ses_merges *m, const ses_json *list, const ses_vocab *vocab, size_t n_prefix,
                     ses_arena *mem, ses_err *e);
void ses_merges_save(const ses_merges *m, const ses_vocab *vocab, ses_json_writer *w); /* as pairs */

static inline size_t ses_merges_slot(const ses_merges *m, int32_t left, int32_t right)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (size_t)((pair ^ pair >> 29) * m->factor >> m->shift);
}

/* NULL: the pair does not merge. */
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

/* Whether any merge could cross the boundary between two symbols, now or after they have grown. */
static inline bool ses_merges_may_cross(const ses_merges *m, int32_t left, int32_t right)
{
    if ((uint32_t)left >= (uint32_t)m->edges || (uint32_t)right >= (uint32_t)m->edges) return true;
    uint32_t bit = ses_merges_edge_hash(m->edge[left], m->edge[right]);
    return m->filter[bit / 64] >> bit % 64 & 1;
}

/* Records for chosen ids the last pair that formed them, so that the result can be split again. */
typedef struct ses_merge_trace {
    const uint8_t *wanted; /* indexed by id */
    int32_t (*parts)[2];   /* indexed by id */
} ses_merge_trace;

/* Merge n symbols, given as ids and byte lengths, until no pair merges; overwrites them. The pair with the
 * lowest rank is merged first, the leftmost of equal ones. *n: remaining symbols. O(n log n). */
/* trace may be NULL */
bool ses_merges_apply(const ses_merges *m, int32_t *id, uint32_t *len, size_t *n,
                      const ses_merge_trace *trace, ses_arena *scratch, ses_err *e);

#endif
