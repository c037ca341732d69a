#include "bpe_walk.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "byte_chars.h"

#include <string.h>

/* ---- opening ---- */

/* The bytes a token's characters stand for; 0: it has others, or none. */
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

static inline uint64_t pair_hash(int32_t left, int32_t right)
{
    return ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
}

/* What each token is made of; false where two merges make one, or a part comes later than the whole. */
static bool read_merges(ses_bpe_walk *w, const ses_bpe *m, const int32_t id[256])
{
    for (int b = 0; b < 256; b++) w->size[id[b]].len = 1;
    for (uint32_t r = 0; r < m->merges.ranks; r++) {
        if (m->merges.ranked[r] == UINT32_MAX) continue;
        const ses_merge *s = &m->merges.slot[m->merges.ranked[r]];
        if (w->size[s->id].len || !w->size[s->left].len || !w->size[s->right].len) return false;
        w->size[s->id].len = w->size[s->left].len + w->size[s->right].len;
        w->node[s->id].rank = r + 1;
        w->node[s->id].left = s->left;
        w->node[s->id].right = s->right;
        uint64_t h = pair_hash(s->left, s->right) >> (64 - SES_WALK_FILTER_BITS);
        w->filter[h / 64] |= (uint64_t)1 << h % 64;
    }
    return true;
}

static inline const ses_merge *find(const ses_bpe_walk *w, int32_t left, int32_t right)
{
    uint64_t h = pair_hash(left, right) >> (64 - SES_WALK_FILTER_BITS);
    return w->filter[h / 64] >> h % 64 & 1 ? ses_merges_find(w->merges, left, right) : NULL;
}

/* Whether merging leaves the boundary of two tokens alone. The merges nearest to it are undone one
 * after the other, the later one first; none of the pairs that then lie at the boundary may merge
 * before the part beside it was made. Of equal ranks the left one is first. */
static bool may_meet(const ses_bpe_walk *w, int32_t left, int32_t right, uint32_t limit)
{
    for (;;) {
        const ses_merge *s = find(w, left, right);
        if (s && s->rank + 1 < limit) return false;
        uint32_t a = w->node[left].rank, b = w->node[right].rank;
        if (!a && !b) return true;
        if (a > b) {
            limit = a;
            left = w->node[left].right;
        } else {
            limit = b + 1;
            right = w->node[right].left;
        }
    }
}

/* Tokens that are their own encoding, into the trie. */
static bool build_trie(ses_bpe_walk *w, const ses_bpe *m, ses_err *e)
{
    size_t size = (size_t)m->vocab.size, bytes = 0;
    for (size_t i = 0; i < size; i++) bytes += w->size[i].len;
    ses_arena own = { 0 };
    ses_string *key = ses_arena_array(&own, size, sizeof *key, e);
    char *text = ses_arena_array(&own, bytes + m->vocab.filled, 1, e);
    bool ok = key && text;
    for (uint32_t r = 0; ok && r < m->merges.ranks; r++) { /* parts before wholes */
        if (m->merges.ranked[r] == UINT32_MAX) continue;
        const ses_merge *s = &m->merges.slot[m->merges.ranked[r]];
        bool made = w->size[s->left].len && w->size[s->right].len && may_meet(w, s->left, s->right, r + 1);
        if (!made) w->size[s->id].len = 0;
    }
    for (size_t i = 0; ok && i < size; i++) {
        if (!w->size[i].len) continue;
        key[i] = (ses_string){ text, bytes_of(&m->vocab, (int32_t)i, text) };
        ok = key[i].n == w->size[i].len ||
             ses_fail(e, SES_EFORMAT, "token %zu is not what its merge makes", i);
        text += key[i].n;
    }
    ok = ok && ses_trie_build(&w->trie, key, size, &w->mem, e);
    for (size_t i = 0; ok && i < size; i++) {
        uint32_t base = w->trie.root;
        int32_t value;
        w->size[i].shorter = -1;
        for (size_t k = 0; k + 1 < key[i].n && ses_trie_step(&w->trie, &base, (uint8_t)key[i].p[k], &value);
             k++)
            if (value >= 0) w->size[i].shorter = value;
    }
    ses_arena_free(&own);
    return ok;
}

bool ses_bpe_walk_open(ses_bpe_walk *w, const ses_bpe *m, const int32_t id[256], bool *fits, ses_err *e)
{
    size_t size = (size_t)m->vocab.size;
    *w = (ses_bpe_walk){ .merges = &m->merges };
    w->node = ses_arena_array(&w->mem, size, sizeof *w->node, e);
    w->size = ses_arena_array(&w->mem, size, sizeof *w->size, e);
    w->pair = ses_arena_array(&w->mem, (size_t)1 << SES_WALK_PAIR_BITS, sizeof *w->pair, e);
    w->filter = ses_arena_array(&w->mem, ((size_t)1 << SES_WALK_FILTER_BITS) / 64, sizeof *w->filter, e);
    bool ok = w->node && w->size && w->pair && w->filter;
    *fits = ok && read_merges(w, m, id);
    if (*fits) ok = build_trie(w, m, e);
    if (!*fits || !ok) ses_bpe_walk_close(w);
    return ok;
}

void ses_bpe_walk_close(ses_bpe_walk *w)
{
    ses_arena_free(&w->mem);
    *w = (ses_bpe_walk){ 0 };
}

/* ---- running ---- */

static inline bool meet(ses_bpe_walk *w, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 33 | (uint64_t)(uint32_t)right << 1;
    uint64_t *at =
        &w->pair[((uint64_t)(uint32_t)left * 0x9E3779B1u ^ (uint64_t)(uint32_t)right * 0x85EBCA77u) >> 8 &
                 (((uint64_t)1 << SES_WALK_PAIR_BITS) - 1)];
    if ((*at & ~(uint64_t)1) == key && key) return *at & 1;
    bool yes = may_meet(w, left, right, UINT32_MAX);
    *at = key | yes;
    return yes;
}

static inline int32_t longest(const ses_bpe_walk *w, const char *p, size_t n)
{
    uint32_t base = w->trie.root;
    int32_t best = -1, value;
    for (size_t i = 0; i < n && ses_trie_step(&w->trie, &base, (uint8_t)p[i], &value); i++)
        if (value >= 0) best = value;
    return best;
}

bool ses_bpe_walk_run(ses_bpe_walk *w, const char *text, size_t n, int32_t *id, uint32_t *len, size_t *count,
                      ses_arena *scratch, ses_err *e)
{
    uint64_t few[4] = { 0 }, *dead = few; /* a bit for each place that no sequence goes on from */
    ses_mark mark = ses_arena_mark(scratch);
    if (n >= 256) {
        dead = ses_arena_array(scratch, n / 64 + 1, sizeof *dead, e);
        if (!dead) return false;
    }
    size_t k = 0, pos = 0;
    int32_t token = longest(w, text, n);
    while (pos < n) {
        size_t end = pos + w->size[token].len;
        if (!(dead[end / 64] >> end % 64 & 1) && (!k || meet(w, id[k - 1], token))) {
            id[k] = token;
            len[k++] = (uint32_t)(end - pos);
            pos = end;
            if (pos < n) token = longest(w, text + pos, n - pos);
        } else if (w->size[token].shorter >= 0) {
            token = w->size[token].shorter;
        } else { /* the token before cannot stand */
            dead[pos / 64] |= (uint64_t)1 << pos % 64;
            if (!k) break;
            token = id[--k];
            pos -= len[k];
        }
    }
    ses_arena_rewind(scratch, mark);
    *count = k;
    return pos == n || ses_fail(e, SES_EFORMAT, "merges that contradict each other");
}
