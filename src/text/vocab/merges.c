/* The merge table of a BPE model: reading, saving, and the filter of character pairs that merges can join. */
#include "merges.h"

#include "base/str.h"
#include "base/unicode/utf8.h"

#include <string.h>

bool ses_merges_reserve(ses_merges *m, size_t count, ses_arena *mem, ses_err *e)
{
    *m = (ses_merges){ 0 };
    if (count > INT32_MAX / 4) return ses_fail(e, SES_EARG, "%zu merges are too many", count);
    int bits = 4;
    while ((size_t)1 << bits < 2 * count) bits++;
    size_t slots = (size_t)1 << bits;
    m->mask = slots - 1;
    m->shift = 64 - bits;
    m->factor = ses_hash_key_new().k0 | 1;
    m->slot = ses_arena_array(mem, slots, sizeof *m->slot, e);
    m->ranked = ses_arena_array(mem, count, sizeof *m->ranked, e);
    if (!m->slot || !m->ranked) return false;
    memset(m->slot, 0xff, slots * sizeof *m->slot);
    return true;
}

void ses_merges_put(ses_merges *m, int32_t left, int32_t right, uint32_t rank, int32_t id)
{
    size_t i = ses_merges_slot(m, left, right);
    while (m->slot[i].rank != UINT32_MAX && (m->slot[i].left != left || m->slot[i].right != right))
        i = (i + 1) & m->mask;
    m->slot[i] = (ses_merge){ left, right, rank, id };
    if (rank >= m->ranks) m->ranks = rank + 1;
}

void ses_merges_add(ses_merges *m, int32_t left, int32_t right, int32_t id)
{
    const ses_merge *old = ses_merges_find(m, left, right);
    if (old) m->ranked[old->rank] = UINT32_MAX;
    uint32_t rank = m->ranks;
    ses_merges_put(m, left, right, rank, id);
    m->ranked[rank] = (uint32_t)(ses_merges_find(m, left, right) - m->slot);
}

static uint16_t hash_char(const char *p, size_t n)
{
    uint32_t x = 0;
    for (size_t i = 0; i < n; i++) x = x << 8 | (uint8_t)p[i];
    return (uint16_t)(x * 2654435761u >> 16);
}

static ses_token_edge edge_of(ses_string s)
{
    size_t first = 1, last = s.n;
    if (!s.n) return (ses_token_edge){ 0, 0 };
    while (first < s.n && first < 4 && ses_utf8_continues(s.p[first])) first++;
    while (last > 1 && last + 3 > s.n && ses_utf8_continues(s.p[last - 1])) last--;
    return (ses_token_edge){ hash_char(s.p, first), hash_char(s.p + last - 1, s.n - last + 1) };
}

bool ses_merges_build_filter(ses_merges *m, int32_t n, ses_merges_name_fn *name, const void *ctx,
                             ses_arena *mem, ses_err *e)
{
    m->edge = ses_arena_array(mem, (size_t)n, sizeof *m->edge, e);
    uint64_t *filter = ses_arena_array(mem, ((size_t)1 << SES_MERGES_FILTER_BITS) / 64, sizeof *filter, e);
    if (!m->edge || !filter) return false;
    m->edges = n;
    for (int32_t i = 0; i < n; i++) m->edge[i] = edge_of(name(ctx, i));
    for (size_t i = 0; i <= m->mask; i++) {
        const ses_merge *s = &m->slot[i];
        if (s->rank == UINT32_MAX || s->left >= n || s->right >= n) continue;
        uint32_t bit = ses_merges_edge_hash(m->edge[s->left], m->edge[s->right]);
        filter[bit / 64] |= (uint64_t)1 << bit % 64;
    }
    m->filter = filter;
    return true;
}

/* The two parts of a merge, written as "a b" or as a pair. */
static bool read_parts(const ses_json *entry, bool pairs, ses_string *a, ses_string *b, ses_err *e)
{
    if (pairs) {
        a->p = ses_json_string(ses_json_at(entry, 0), &a->n);
        b->p = ses_json_string(ses_json_at(entry, 1), &b->n);
        if (ses_json_type_of(entry) != SES_JSON_ARRAY || ses_json_len(entry) != 2 || !a->p || !b->p)
            return ses_fail(e, SES_EFORMAT, "must be a pair of strings, like the first merge");
        return true;
    }
    a->p = ses_json_string(entry, &a->n);
    if (!a->p) return ses_fail(e, SES_EFORMAT, "must be a string \"a b\" or a pair [\"a\", \"b\"]");
    const char *space = memchr(a->p, ' ', a->n);
    if (!space || memchr(space + 1, ' ', (size_t)(a->p + a->n - space - 1)))
        return ses_fail(e, SES_EFORMAT, "\"%s\" is not two tokens separated by a space",
                        ses_quoted_of(a->p, a->n).s);
    b->p = space + 1;
    b->n = (size_t)(a->p + a->n - b->p);
    a->n = (size_t)(space - a->p);
    return true;
}

static int32_t require_id(const ses_vocab *vocab, ses_string s, ses_err *e)
{
    int32_t id = ses_vocab_id(vocab, s.p, s.n);
    if (id < 0) ses_fail(e, SES_EFORMAT, "\"%s\" is not in the vocabulary", ses_quoted_of(s.p, s.n).s);
    return id;
}

/* The id of a and b joined. Merges are mostly in the order of the resulting ids, so `guess` is tried
 * first. */
static int32_t joined_id(const ses_vocab *vocab, ses_string a, ses_string b, int32_t guess, ses_buf *buf,
                         ses_err *e)
{
    size_t n;
    const char *token = ses_vocab_token(vocab, guess, &n);
    if (token && n == a.n + b.n && !memcmp(token, a.p, a.n) && !memcmp(token + a.n, b.p, b.n)) return guess;
    buf->len = 0;
    ses_buf_append(buf, a.p, a.n);
    ses_buf_append(buf, b.p, b.n);
    if (!ses_buf_ok(buf, e)) return -1;
    return require_id(vocab, (ses_string){ buf->data, buf->len }, e);
}

static bool add_entry(ses_merges *m, const ses_json *entry, bool pairs, const ses_vocab *vocab,
                      size_t n_prefix, int32_t *last, ses_buf *buf, ses_err *e)
{
    ses_string a, b;
    if (!read_parts(entry, pairs, &a, &b, e)) return false;
    int32_t left = require_id(vocab, a, e), right = left < 0 ? -1 : require_id(vocab, b, e);
    if (right < 0) return false;
    if (b.n < n_prefix)
        return ses_fail(e, SES_EFORMAT, "\"%s\" is shorter than continuing_subword_prefix",
                        ses_quoted_of(b.p, b.n).s);
    b.p += n_prefix, b.n -= n_prefix;
    int32_t id = joined_id(vocab, a, b, *last + 1, buf, e);
    if (id < 0) return false;
    *last = id;
    if (a.n + b.n > m->longest) m->longest = (uint32_t)(a.n + b.n);
    ses_merges_add(m, left, right, id);
    return true;
}

bool ses_merges_open(ses_merges *m, const ses_json *list, const ses_vocab *vocab, size_t n_prefix,
                     ses_arena *mem, ses_err *e)
{
    static const char version[] = "#version";
    size_t count = ses_json_len(list);
    if (ses_json_type_of(list) != SES_JSON_ARRAY) return ses_fail(e, SES_EFORMAT, "must be a list of merges");
    if (!ses_merges_reserve(m, count, mem, e)) return false;
    bool pairs = ses_json_type_of(ses_json_at(list, 0)) == SES_JSON_ARRAY, ok = true;
    ses_buf buf = { 0 };
    int32_t last = -1;
    for (size_t i = 0; ok && i < count; i++) {
        size_t n;
        const ses_json *entry = ses_json_at(list, i);
        const char *line = pairs ? NULL : ses_json_string(entry, &n);
        if (line && n >= sizeof version - 1 && !memcmp(line, version, sizeof version - 1)) continue;
        ok = add_entry(m, entry, pairs, vocab, n_prefix, &last, &buf, e) || ses_wrap(e, "entry %zu", i);
    }
    ses_buf_free(&buf);
    return ok;
}

void ses_merges_save(const ses_merges *m, const ses_vocab *vocab, ses_json_writer *w)
{
    ses_json_begin_array(w);
    for (uint32_t r = 0; r < m->ranks; r++) {
        if (m->ranked[r] == UINT32_MAX) continue;
        const ses_merge *s = &m->slot[m->ranked[r]];
        ses_json_begin_array(w);
        for (int k = 0; k < 2; k++) {
            size_t n;
            const char *token = ses_vocab_token(vocab, k ? s->right : s->left, &n);
            ses_json_put_stringn(w, token, n);
        }
        ses_json_end_array(w);
    }
    ses_json_end_array(w);
}
