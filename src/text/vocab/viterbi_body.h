/* Viterbi search for Unigram models: the segmentation with the highest sum of scores; of equal ones, the
 * first found. A template, included with SES_VITERBI_REAL (type of the sums) and SES_VITERBI(name) (naming
 * of the instance). Sums run from the left, one addition per piece, exactly as in SentencePiece and HF
 * Tokenizers: another order would round differently. */
#include "trie.h"

#include <math.h>

#ifndef SES_VITERBI_INLINE /* inlined so that `second` is a compile-time constant */
#define SES_VITERBI_INLINE static inline __attribute__((always_inline))
#endif

/* Piece of a single ASCII character, or the unknown token. */
typedef struct SES_VITERBI(single) {
    SES_VITERBI_REAL weight;
    uint32_t id;
} SES_VITERBI(single);

typedef struct SES_VITERBI(pieces) {
    const ses_trie *trie; /* values are ids */
    /* indexed by id; -INFINITY: unusable piece; weight[-1] is -INFINITY too */
    const SES_VITERBI_REAL *weight;
    SES_VITERBI_REAL unknown; /* weight of a character that no piece covers */
    int32_t unk_id;
    const uint64_t *pair; /* ses_trie_pairs */
    SES_VITERBI(single) single[128];
} SES_VITERBI(pieces);

/* Best path to each position of the text: its sum (-INFINITY: none) and its last piece, start << 32 | id.
 * second: sum of the best path with a different last piece; NULL: not computed. */
typedef struct SES_VITERBI(list) {
    SES_VITERBI_REAL *sum, *second;
    uint64_t *last;
} SES_VITERBI(list);

static inline bool SES_VITERBI(pieces_open)(SES_VITERBI(pieces) * t, const ses_trie *trie,
                                            const SES_VITERBI_REAL *weight, SES_VITERBI_REAL unknown,
                                            int32_t unk_id, ses_arena *mem, ses_err *e)
{
    *t = (SES_VITERBI(pieces)){ .trie = trie, .weight = weight, .unknown = unknown, .unk_id = unk_id };
    for (int c = 0; c < 128; c++) {
        int32_t id = ses_trie_find(trie, &(char){ (char)c }, 1);
        bool used = id >= 0 && weight[id] > -INFINITY;
        t->single[c] = (SES_VITERBI(single)){ used ? weight[id] : unknown, (uint32_t)(used ? id : unk_id) };
    }
    t->pair = ses_trie_pairs(trie, mem, e);
    return t->pair != NULL;
}

static inline bool SES_VITERBI(list_open)(SES_VITERBI(list) * at, size_t n, SES_VITERBI_REAL sum, bool second,
                                          ses_arena *scratch, ses_err *e)
{
    *at = (SES_VITERBI(list)){ .sum = ses_arena_alloc(scratch, (n + 1) * sizeof *at->sum, e) };
    at->last = at->sum ? ses_arena_alloc(scratch, (n + 1) * sizeof *at->last, e) : NULL;
    if (!at->last) return false;
    for (size_t i = 0; i <= n; i++) at->sum[i] = -INFINITY, at->last[i] = 0;
    at->sum[0] = sum;
    if (!second) return true;
    at->second = ses_arena_alloc(scratch, (n + 1) * sizeof *at->second, e);
    for (size_t i = 0; at->second && i <= n; i++) at->second[i] = -INFINITY;
    return at->second != NULL;
}

/* The entry of one position. */
typedef struct SES_VITERBI(entry) {
    SES_VITERBI_REAL sum, second;
    uint64_t last;
} SES_VITERBI(entry);

SES_VITERBI_INLINE SES_VITERBI(entry) SES_VITERBI(load)(SES_VITERBI(list) at, size_t i, bool second)
{
    return (SES_VITERBI(entry)){ at.sum[i], second ? at.second[i] : 0, at.last[i] };
}

SES_VITERBI_INLINE void SES_VITERBI(store)(SES_VITERBI(list) at, size_t i, SES_VITERBI(entry) p, bool second)
{
    at.sum[i] = p.sum;
    if (second) at.second[i] = p.second;
    at.last[i] = p.last;
}

/* Keep the better path; of equal ones the old. Branch-free: the comparison is unpredictable. */
SES_VITERBI_INLINE void SES_VITERBI(offer)(SES_VITERBI(entry) * to, SES_VITERBI_REAL sum, uint64_t last,
                                           bool second)
{
    SES_VITERBI_REAL old = to->sum, worse = sum < old ? sum : old;
    uint64_t mask = 0 - (uint64_t)(sum > old);
    to->sum = sum > old ? sum : old;
    to->last ^= (to->last ^ last) & mask;
    if (second) to->second = worse > to->second ? worse : to->second;
}

/* Offer all pieces that start at i, beginning at the trie node reached by k - i bytes. Returns whether one
 * of them ends at `single`. */
SES_VITERBI_INLINE bool SES_VITERBI(offer_rest)(const SES_VITERBI(pieces) * t, const char *p, size_t n,
                                                size_t i, size_t k, uint32_t base, size_t single,
                                                SES_VITERBI(list) at, bool second)
{
    const SES_VITERBI_REAL sum = at.sum[i];
    bool found = false;
    int32_t id;
    while (k < n && ses_trie_step(t->trie, &base, (uint8_t)p[k], &id)) {
        k++;
        if (id < 0 || t->weight[id] == -INFINITY) continue;
        SES_VITERBI(entry) to = SES_VITERBI(load)(at, k, second);
        SES_VITERBI(offer)(&to, t->weight[id] + sum, (uint64_t)i << 32 | (uint32_t)id, second);
        SES_VITERBI(store)(at, k, to, second);
        found |= k == single;
    }
    return found;
}

/* Offer the character of `step` bytes at i as unknown. */
SES_VITERBI_INLINE void SES_VITERBI(offer_unknown)(const SES_VITERBI(pieces) * t, size_t i, size_t step,
                                                   SES_VITERBI(list) at, bool second)
{
    SES_VITERBI(entry) to = SES_VITERBI(load)(at, i + step, second);
    SES_VITERBI(offer)(&to, t->unknown + at.sum[i], (uint64_t)i << 32 | (uint32_t)t->unk_id, second);
    SES_VITERBI(store)(at, i + step, to, second);
}

/* Offer all pieces from position i on, until a non-ASCII character, the last few bytes of the text, or a
 * sum with magnitude above `bound`; returns that position. Most trie lookups end within four bytes: these
 * steps are branch-free, because their end is unpredictable, and the next four positions stay in
 * registers. */
SES_VITERBI_INLINE size_t SES_VITERBI(offer_ascii)(const SES_VITERBI(pieces) * t, const char *text, size_t n,
                                                   size_t i, SES_VITERBI_REAL bound, SES_VITERBI(list) at,
                                                   bool second)
{
    const uint8_t *p = (const uint8_t *)text;
    const ses_trie trie = *t->trie;
    const SES_VITERBI_REAL *weight = t->weight;
    const uint64_t *pair = t->pair;
    if (i + 5 > n || p[i] >= 0x80) return i;
    SES_VITERBI_REAL sum = at.sum[i];
    SES_VITERBI(entry)
    a = SES_VITERBI(load)(at, i + 1, second), b = SES_VITERBI(load)(at, i + 2, second),
    c = SES_VITERBI(load)(at, i + 3, second), d = SES_VITERBI(load)(at, i + 4, second);
    for (; i + 5 <= n && p[i] < 0x80 && sum >= -bound && sum <= bound; i++) {
        const SES_VITERBI(single) *one = &t->single[p[i]];
        const uint64_t from = (uint64_t)i << 32;
        uint64_t u2 = pair[p[i] << 8 | p[i + 1]], u3 = ses_trie_next(&trie, u2, p[i + 2]),
                 u4 = ses_trie_next(&trie, u3, p[i + 3]), u5 = ses_trie_next(&trie, u4, p[i + 4]);
        /* value 0: no piece ends here; its weight is -INFINITY */
        uint64_t v2 = ses_trie_value(u2), v3 = ses_trie_value(u3), v4 = ses_trie_value(u4);
        SES_VITERBI(offer)(&a, one->weight + sum, from | one->id, second);
        SES_VITERBI(offer)(&b, weight[(int64_t)v2 - 1] + sum, from | (uint32_t)(v2 - 1), second);
        SES_VITERBI(offer)(&c, weight[(int64_t)v3 - 1] + sum, from | (uint32_t)(v3 - 1), second);
        SES_VITERBI(offer)(&d, weight[(int64_t)v4 - 1] + sum, from | (uint32_t)(v4 - 1), second);
        if (u5) SES_VITERBI(offer_rest)(t, text, n, i, i + 4, ses_trie_base(u4), 0, at, second);
        SES_VITERBI(store)(at, i + 1, a, second);
        sum = a.sum;
        a = b, b = c, c = d, d = SES_VITERBI(load)(at, i + 5, second);
    }
    SES_VITERBI(store)(at, i + 1, a, second);
    SES_VITERBI(store)(at, i + 2, b, second);
    SES_VITERBI(store)(at, i + 3, c, second);
    SES_VITERBI(store)(at, i + 4, d, second);
    return i;
}
