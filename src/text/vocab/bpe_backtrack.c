/* Byte-level BPE by backtracking over a trie of tokens: the pair test, its cache, and the search. */
#include "bpe_backtrack.h"

#include "base/alloc.h"
#include "base/unicode/utf8.h"
#include "byte_chars.h"

#include <string.h>

/* The bytes that a token's characters represent; 0: the token has other characters, or none. */
static size_t bytes_of(const ses_vocab *v, int32_t id, char *out)
{
    size_t n = 0, len = 0;
    const char *s = ses_vocab_token(v, id, &n);
    for (size_t i = 0, step; s && i < n; i += step) {
        uint32_t c;
        step = ses_utf8_decode(s + i, n - i, &c);
        int b = step ? ses_char_byte(c) : -1;
        if (b < 0) return 0;
        out[len++] = (char)b;
    }
    return len;
}

/* ---- merge table ---- */

/* Mix two 21-bit orders into 42 bits without loss: part of the result is the table index, the rest
 * identifies the pair. */
static inline uint64_t mix(uint32_t left, uint32_t right)
{
    const uint64_t all = ((uint64_t)1 << 2 * SES_BACKTRACK_ORDER_BITS) - 1;
    uint64_t h = (uint64_t)left << SES_BACKTRACK_ORDER_BITS | right;
    h = h * 0x9E3779B97F4A7C15u & all;
    return (h ^ h >> SES_BACKTRACK_ORDER_BITS) * 0xD6E8FEB86659FD93u & all;
}

static inline uint64_t pack(uint32_t left, uint32_t right, uint32_t order)
{
    return ((uint64_t)left << SES_BACKTRACK_ORDER_BITS | right) << SES_BACKTRACK_ORDER_BITS | order;
}

static void put_merge(ses_bpe_backtrack *w, uint32_t left, uint32_t right, uint32_t order)
{
    if (left < 256 && right < 256) {
        w->byte_pair[left << 8 | right] = order;
        return;
    }
    uint64_t h = mix(left, right), bit = h >> (2 * SES_BACKTRACK_ORDER_BITS - SES_BACKTRACK_FILTER_BITS);
    w->filter[bit / 64] |= (uint64_t)1 << bit % 64;
    for (h &= w->mask; w->slot[h];) h = (h + 1) & w->mask;
    w->slot[h] = pack(left, right, order);
}

/* The order that two tokens merge to; 0: they do not merge. */
static inline uint32_t merged_order(const ses_bpe_backtrack *w, uint32_t left, uint32_t right)
{
    if (left < 256 && right < 256) return w->byte_pair[left << 8 | right];
    uint64_t h = mix(left, right), bit = h >> (2 * SES_BACKTRACK_ORDER_BITS - SES_BACKTRACK_FILTER_BITS);
    if (!(w->filter[bit / 64] >> bit % 64 & 1)) return 0;
    uint64_t key = pack(left, right, 0) >> SES_BACKTRACK_ORDER_BITS;
    for (h &= w->mask; w->slot[h]; h = (h + 1) & w->mask)
        if (w->slot[h] >> SES_BACKTRACK_ORDER_BITS == key)
            return w->slot[h] & ((1u << SES_BACKTRACK_ORDER_BITS) - 1);
    return 0;
}

/* Whether merging preserves the boundary between two tokens. The merges next to the boundary are undone
 * one by one, the latest first; no pair that then meets at the boundary may merge before the neighboring
 * part was formed. Of equal ranks the left one comes first. limit: first merge that is too late. */
static bool may_be_adjacent(const ses_bpe_backtrack *w, uint32_t left, uint32_t right, uint32_t limit)
{
    for (;;) {
        uint32_t order = merged_order(w, left, right);
        if (order && order < limit) return false;
        if (left < 256 && right < 256) return true;
        if (left > right) {
            limit = left;
            left = w->parts[left].right;
        } else {
            limit = right + 1;
            right = w->parts[right].left;
        }
    }
}

/* ---- opening ---- */

/* Fill the parts and the length of each token, by order. Returns false if two merges yield the same token,
 * or if a part has a higher order than the whole. order: [vocabulary] filled with the order of each id;
 * UINT32_MAX: none. */
static bool read_merges(ses_bpe_backtrack *w, const ses_bpe *m, const int32_t id[256], uint32_t *order,
                        uint32_t *len)
{
    for (uint32_t b = 0; b < 256; b++) {
        if (order[id[b]] != UINT32_MAX) return false;
        order[id[b]] = b;
        w->id[b] = id[b];
        len[b] = 1;
    }
    for (uint32_t r = 0; r < m->merges.ranks; r++) {
        if (m->merges.ranked[r] == UINT32_MAX) continue;
        const ses_merge *s = &m->merges.slot[m->merges.ranked[r]];
        uint32_t left = order[s->left], right = order[s->right], own = 256 + r;
        if (order[s->id] != UINT32_MAX || left == UINT32_MAX || right == UINT32_MAX) return false;
        order[s->id] = own;
        w->id[own] = s->id;
        w->parts[own] = (ses_backtrack_parts){ left, right };
        len[own] = len[left] + len[right];
        put_merge(w, left, right, own);
    }
    return true;
}

/* Add the tokens that encode to themselves to the trie. */
static bool build_trie(ses_bpe_backtrack *w, const ses_bpe *m, uint32_t *len, ses_err *e)
{
    size_t orders = 256 + (size_t)m->merges.ranks, bytes = 0;
    for (size_t i = 0; i < orders; i++) bytes += len[i];
    ses_arena own = { 0 };
    ses_string *key = ses_arena_array(&own, orders, sizeof *key, e);
    char *text = ses_arena_array(&own, bytes + m->vocab.filled, 1, e);
    bool ok = key && text;
    for (size_t i = 256; ok && i < orders; i++) { /* parts come before wholes */
        ses_backtrack_parts p = w->parts[i];
        if (len[i] && !(len[p.left] && len[p.right] && may_be_adjacent(w, p.left, p.right, (uint32_t)i)))
            len[i] = 0;
    }
    for (size_t i = 0; ok && i < orders; i++) {
        if (!len[i]) continue;
        key[i] = (ses_string){ text, bytes_of(&m->vocab, w->id[i], text) };
        ok = key[i].n == len[i] ||
             ses_fail(e, SES_EFORMAT, "token %d differs from the result of its merge", (int)w->id[i]);
        text += key[i].n;
    }
    ok = ok && ses_trie_build(&w->trie, key, orders, &w->mem, e);
    ses_arena_free(&own);
    return ok;
}

/* Allocate empty tables. */
static bool reserve(ses_bpe_backtrack *w, size_t orders, ses_err *e)
{
    size_t slots = 256;
    while (slots < 2 * orders) slots *= 2;
    w->mask = slots - 1;
    w->parts = ses_arena_array(&w->mem, orders, sizeof *w->parts, e);
    w->id = ses_arena_array(&w->mem, orders, sizeof *w->id, e);
    w->byte_pair = ses_arena_array(&w->mem, 65536, sizeof *w->byte_pair, e);
    w->filter = ses_arena_array(&w->mem, ((size_t)1 << SES_BACKTRACK_FILTER_BITS) / 64, sizeof *w->filter, e);
    w->slot = ses_arena_array(&w->mem, slots, sizeof *w->slot, e);
    w->pair = ses_arena_array(&w->mem, (size_t)1 << SES_BACKTRACK_PAIR_BITS, sizeof *w->pair, e);
    return w->parts && w->id && w->byte_pair && w->filter && w->slot && w->pair;
}

bool ses_bpe_backtrack_open(ses_bpe_backtrack *w, const ses_bpe *m, const int32_t id[256], bool *fits,
                            ses_err *e)
{
    size_t size = (size_t)m->vocab.size, orders = 256 + (size_t)m->merges.ranks;
    *w = (ses_bpe_backtrack){ 0 };
    *fits = orders < (size_t)1 << SES_BACKTRACK_ORDER_BITS;
    if (!*fits) return true;
    ses_arena own = { 0 };
    uint32_t *order = ses_arena_alloc(&own, size * sizeof *order, e);
    uint32_t *len = order ? ses_arena_array(&own, orders, sizeof *len, e) : NULL;
    bool ok = len && reserve(w, orders, e);
    if (ok) memset(order, 0xff, size * sizeof *order);
    *fits = ok && read_merges(w, m, id, order, len);
    if (*fits) ok = build_trie(w, m, len, e);
    ses_arena_free(&own);
    if (!*fits || !ok) ses_bpe_backtrack_close(w);
    return ok;
}

void ses_bpe_backtrack_close(ses_bpe_backtrack *w)
{
    ses_arena_free(&w->mem);
    *w = (ses_bpe_backtrack){ 0 };
}

/* ---- encoding ---- */

enum {
    /* bits of a mixed pair beside the table index */
    REST_BITS = 2 * SES_BACKTRACK_ORDER_BITS - SES_BACKTRACK_PAIR_BITS
};

/* A cache entry holds the rest of the pair << 2, bit 1 set, and in bit 0 whether the two tokens may be
 * adjacent. */
static inline bool are_adjacent(ses_bpe_backtrack *w, uint32_t left, uint32_t right)
{
    uint64_t h = mix(left, right);
    uint32_t *at = &w->pair[h >> REST_BITS], rest = (uint32_t)(h & ((1u << REST_BITS) - 1)) << 2 | 2;
    if ((*at & ~1u) == rest) return *at & 1;
    bool yes = may_be_adjacent(w, left, right, UINT32_MAX);
    *at = rest | yes;
    return yes;
}

typedef struct prefix {
    uint32_t order, len;
} prefix;

/* The tokens that p starts with, the longest last. */
static inline size_t prefixes(const ses_bpe_backtrack *w, const char *p, size_t n, prefix *out)
{
    uint32_t base = w->trie.root;
    size_t count = 0;
    int32_t value;
    for (size_t i = 0; i < n && ses_trie_step(&w->trie, &base, (uint8_t)p[i], &value); i++) {
        out[count] = (prefix){ (uint32_t)value, (uint32_t)i + 1 };
        count += value >= 0;
    }
    return count;
}

bool ses_bpe_backtrack_encode(ses_bpe_backtrack *w, const char *text, size_t n, int32_t *id, uint32_t *len,
                              size_t *count, ses_arena *scratch, ses_err *e)
{
    /* bitmap of positions from which no token sequence continues */
    uint64_t small_bitmap[4] = { 0 }, *failed = small_bitmap;
    prefix some[64], *token = some;
    ses_mark mark = ses_arena_mark(scratch);
    if (n >= 256) failed = ses_arena_array(scratch, n / 64 + 1, sizeof *failed, e);
    if (failed && w->trie.longest >= SES_LEN(some))
        token = ses_arena_alloc(scratch, (w->trie.longest + (size_t)1) * sizeof *token, e);
    if (!failed || !token) return false;
    size_t k = 0, pos = 0, left = prefixes(w, text, n, token);
    while (pos < n) {
        if (!left) { /* the previous token cannot be used */
            failed[pos / 64] |= (uint64_t)1 << pos % 64;
            if (!k) break;
            pos -= len[--k];
            left = prefixes(w, text + pos, len[k] - 1, token);
            continue;
        }
        prefix next = token[--left];
        size_t end = pos + next.len;
        if (failed[end / 64] >> end % 64 & 1 || (k && !are_adjacent(w, (uint32_t)id[k - 1], next.order)))
            continue;
        id[k] = (int32_t)next.order;
        len[k++] = next.len;
        pos = end;
        left = prefixes(w, text + pos, n - pos, token);
    }
    ses_arena_rewind(scratch, mark);
    for (size_t i = 0; i < k; i++) id[i] = w->id[id[i]];
    *count = k;
    return pos == n || ses_fail(e, SES_EFORMAT, "contradictory merges");
}
