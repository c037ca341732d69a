/* Fast path for word-local pipelines: encodes chunks that are not in the cache, and stores them. Also the
 * reference version of the lookup loop. */
#include "fast_words.h"

#include <string.h>

/* ---- caching ---- */

/* Tokens of one chunk in k->tokens: from index n on, words from `words` on. */
typedef struct chunk_tokens {
    const char *text; /* the whole text */
    uint32_t begin, end, words;
    size_t n, overrides;
} chunk_tokens;

static bool fits_small(const chunk_tokens *g, const ses_encode_ctx *k)
{
    return g->end - g->begin <= SES_WORDS_SHORT && k->tokens.n - g->n <= 3 && k->n_overrides == g->overrides;
}

/* A new chunk replaces the second entry of its bucket; the first is for chunks that were found again. A
 * chunk whose record was overwritten replaces its own entry. */
static ses_word_cache_entry *cache_small(ses_word_cache_entry *bucket, const chunk_tokens *g,
                                         const ses_token_buf *r, ses_chunk_position position)
{
    size_t len = g->end - g->begin, n = r->n - g->n;
    uint8_t key[16] = { 0 };
    memcpy(key, g->text + g->begin, len);
    key[15] = ses_words_tag(len, position);
    bucket += bucket->key[15] && memcmp(bucket->key, key, sizeof key);
    memset(bucket, 0, sizeof *bucket);
    memcpy(bucket->key, key, sizeof key);
    bucket->layout = (uint8_t)(n | (r->n_words - g->words) << 5);
    for (size_t i = 0; i < n; i++) {
        ses_offset o = r->byte_offset[g->n + i];
        uint32_t word = (uint32_t)r->word_id[g->n + i] - g->words;
        bucket->id[i] = r->id[g->n + i];
        bucket->range[i] = (uint8_t)((o.begin - g->begin) << 4 | (o.end - g->begin));
        if (i) bucket->layout |= (uint8_t)(word << (i == 1 ? 2 : 3));
    }
    return bucket;
}

/* Bytes needed to store the token strings of chunk g; 0 if they all equal the source text. False: cannot
 * be cached. */
static bool measure_names(const chunk_tokens *g, const ses_encode_ctx *k, int32_t surface, uint16_t *names)
{
    size_t bytes = 0, called = 0;
    bool same = true;
    for (size_t i = g->n; k->n_overrides > g->overrides && i < k->tokens.n; i++)
        called += k->tokens.id[i] == surface;
    for (size_t i = g->overrides; i < k->n_overrides; i++) {
        const ses_token_override *m = &k->override[i];
        ses_offset o = k->tokens.byte_offset[m->index];
        if (m->is_added) return false;
        same &= m->n == o.end - o.begin && !memcmp(k->override_text.data + m->begin, g->text + o.begin, m->n);
        bytes += sizeof(uint16_t) + m->n;
    }
    if (same) bytes = 0;
    *names = (uint16_t)bytes;
    return bytes <= UINT16_MAX && called == k->n_overrides - g->overrides;
}

static void put_names(const chunk_tokens *g, const ses_encode_ctx *k, uint8_t *to)
{
    for (size_t i = g->overrides; i < k->n_overrides; i++) {
        const ses_token_override *m = &k->override[i];
        uint16_t n = (uint16_t)m->n;
        memcpy(to, &n, sizeof n);
        memcpy(to + sizeof n, k->override_text.data + m->begin, n);
        to += sizeof n + n;
    }
}

/* Store the tokens of a chunk; returns the position in the store, or 0. */
static uint32_t store_chunk(ses_word_store *s, const chunk_tokens *g, const ses_encode_ctx *k,
                            int32_t surface, uint8_t tag)
{
    const ses_token_buf *r = &k->tokens;
    size_t n = r->n - g->n, len = g->end - g->begin, words = r->n_words - g->words;
    uint32_t at;
    uint16_t names;
    if (len > SES_WORD_STORE_LONG || n > SES_WORD_STORE_LONG || n > len + SES_WORDS_EXTRA_TOKENS ||
        words > UINT8_MAX)
        return 0;
    if (!measure_names(g, k, surface, &names)) return 0;
    ses_word_record like = {
        .len = (uint16_t)len, .n = (uint16_t)n, .tag = tag, .words = (uint8_t)words, .names = names
    };
    like.surface = k->n_overrides > g->overrides;
    like.tiles = n > 0;
    for (size_t i = g->n; i < r->n; i++) {
        like.tiles &= i + 1 == r->n || r->byte_offset[i].end == r->byte_offset[i + 1].begin;
        like.split |= (uint32_t)r->word_id[i] != g->words;
    }
    const ses_word_record *x = ses_word_store_put(s, &like, g->text + g->begin, &at);
    if (!x) return 0;
    ses_word_record_parts to = ses_word_record_parts_of(x);
    for (size_t i = 0; i < n; i++) {
        to.id[i] = r->id[g->n + i];
        ses_offset o = r->byte_offset[g->n + i];
        ses_word_record_set_offset(&to, i, (ses_offset){ o.begin - g->begin, o.end - g->begin });
        if (like.split) to.word[i] = (uint8_t)((uint32_t)r->word_id[g->n + i] - g->words);
    }
    if (names) put_names(g, k, to.names);
    return at;
}

/* Whether all token offsets are inside the chunk. Not so if offsets are shifted by one character. */
static bool is_inside(const chunk_tokens *g, const ses_token_buf *r)
{
    for (size_t i = g->n; i < r->n; i++)
        if (r->byte_offset[i].begin < g->begin || r->byte_offset[i].end > g->end ||
            r->byte_offset[i].begin > r->byte_offset[i].end)
            return false;
    return true;
}

/* A space and split-safe ASCII: no normalizer depends on its neighbors. */
static bool is_plain(const ses_words_fast *f, const char *p, size_t n)
{
    size_t i = 1;
    while (i < n && f->split_safe[(uint8_t)p[i]] == 1) i++;
    return !f->may_create_spaces && *p == ' ' && i == n;
}

/* *alone: chunk g is independent of its neighbors anywhere. *odd: it depends on them here. */
static bool check_context(const ses_words_fast *f, ses_words_work *w, const chunk_tokens *g,
                          const uint32_t ends[2], bool *independent, bool *dependent, ses_err *e)
{
    ses_string chunk = { g->text + g->begin, g->end - g->begin };
    bool left = g->begin > ends[0], right = g->end < ends[1], begins = true;
    *independent = true;
    if (!f->needs_context_check || is_plain(f, chunk.p, chunk.n)) return true;
    if (!left && !right && chunk.n > SES_WORDS_SHORT) return true; /* the whole span, cached as such */
    if (!ses_words_context_free(f, w, chunk, left, true, independent, e)) return false;
    *dependent = !*independent && right;
    if (*independent || right || !left) return true;
    if (!ses_words_context_free(f, w, chunk, true, false, &begins, e)) return false; /* no chunk follows */
    *dependent = !begins;
    return true;
}

bool ses_words_encode_miss(const ses_words_fast *f, ses_words_work *w, ses_encode_ctx *k, const char *text,
                           const uint32_t ends[2], size_t i, ses_word_cache_entry *bucket, uint64_t hash,
                           bool *dependent, ses_err *e)
{
    chunk_tokens g = { text,        w->chunk_start[i], w->chunk_start[i + 1], k->tokens.n_words,
                       k->tokens.n, k->n_overrides };
    ses_chunk_position position = ses_chunk_position_of(w, g.begin, ends);
    bool independent, past = k->past_piece_end;
    if (!check_context(f, w, &g, ends, &independent, dependent, e)) return false;
    if (*dependent) return true;
    k->past_piece_end = false;
    bool ok = f->spm ? ses_words_spm_chunk(f, w, k, text, g.begin, g.end, ends, &independent, dependent, e)
                     : ses_encode_by_stages(k, text, g.begin, g.end, NULL, e);
    if (!ok) return false;
    if (k->past_piece_end) return true; /* the offset of a token is not relative to the chunk */
    k->past_piece_end = past;
    if (*dependent || !independent || !is_inside(&g, &k->tokens)) return true;
    if (bucket && fits_small(&g, k)) {
        cache_small(bucket, &g, &k->tokens, position);
        return true;
    }
    uint8_t tag = bucket ? (uint8_t)position : ses_words_long_tag(f, w, g.begin, g.end, ends);
    uint32_t record = store_chunk(&w->store, &g, k, f->surface, tag);
    if (record && bucket) {
        chunk_tokens none = g;
        none.n = k->tokens.n;
        ses_word_cache_entry *x = cache_small(bucket, &none, &k->tokens, position);
        x->layout = SES_WORDS_IN_STORE;
        x->id[0] = (int32_t)record;
    } else if (record) {
        ses_word_store_add_index(&w->store, hash, record);
    }
    return true;
}

bool ses_words_put_surface(const ses_words_fast *f, const ses_word_record *x, ses_encode_ctx *k,
                           const char *text, uint32_t at, ses_err *e)
{
    ses_token_buf *r = &k->tokens;
    ses_word_record_parts p = ses_word_record_parts_of(x);
    const uint8_t *name = p.names;
    for (size_t i = 0; i < x->n; i++) {
        ses_offset o = ses_word_record_offset(&p, i);
        if (x->surface && p.id[i] == f->surface) {
            ses_string s = { text + at + o.begin, o.end - o.begin };
            if (x->names) {
                uint16_t n;
                memcpy(&n, name, sizeof n);
                s = (ses_string){ (const char *)name + sizeof n, n };
                name += sizeof n + n;
            }
            if (!ses_token_override_put(k, s.p, s.n, false, e)) return false;
        }
        r->id[r->n] = p.id[i];
        r->byte_offset[r->n] = (ses_offset){ at + o.begin, at + o.end };
        r->word_id[r->n++] = (int32_t)(r->n_words + (x->split ? p.word[i] : 0u));
    }
    r->n_words += x->words;
    return true;
}

/* ---- reference version of the lookup loop ---- */

static bool put_entry(ses_token_buf *r, const ses_word_cache_entry *x, uint32_t at, ses_err *e)
{
    if (!ses_token_buf_reserve(r, 3, e)) return false;
    for (unsigned j = 0; j < (x->layout & 3u); j++) {
        unsigned word = j == 0 ? 0 : j == 1 ? x->layout >> 2 & 1u : x->layout >> 3 & 3u;
        r->id[r->n] = x->id[j];
        r->byte_offset[r->n] = (ses_offset){ at + (x->range[j] >> 4), at + (x->range[j] & 15u) };
        r->word_id[r->n++] = (int32_t)(r->n_words + word);
    }
    r->n_words += x->layout >> 5 & 3u;
    return true;
}

bool ses_words_put_ref(const ses_words_fast *f, ses_words_work *w, ses_encode_ctx *k, const char *text,
                       const uint32_t ends[2], size_t from, size_t count, bool *dependent, ses_err *e)
{
    for (size_t i = from; i < count && !*dependent; i++) {
        uint32_t at = w->chunk_start[i];
        size_t len = w->chunk_start[i + 1] - at;
        ses_chunk_position position = ses_chunk_position_of(w, at, ends);
        const ses_word_record *record = NULL;
        ses_word_cache_entry *x = NULL;
        uint64_t hash = 0, key[2] = { 0 };
        bool ok;
        if (len <= SES_WORDS_SHORT) {
            memcpy(key, text + at, len);
            ((uint8_t *)key)[15] = ses_words_tag(len, position);
            hash = ses_word_hash16(&f->hash, key[0], key[1]);
            x = &w->cache[2 * (hash >> (64 - SES_WORDS_CACHE_BITS))];
            const ses_word_cache_entry *hit = !memcmp(x->key, key, 16)     ? x
                                              : !memcmp(x[1].key, key, 16) ? x + 1
                                                                           : NULL;
            if (hit && !(hit->layout & SES_WORDS_IN_STORE)) {
                if (!put_entry(&k->tokens, hit, at, e)) return false;
                continue;
            }
            if (hit) record = ses_word_store_at(&w->store, (uint32_t)hit->id[0]);
        } else if (len <= SES_WORD_STORE_LONG) {
            uint8_t tag = ses_words_long_tag(f, w, at, w->chunk_start[i + 1], ends);
            hash = ses_word_store_hash(&f->hash, text + at, len, tag);
            record = ses_word_store_at(&w->store, ses_word_store_find(&w->store, hash));
            if (record && !ses_word_record_matches(record, text + at, len, tag)) record = NULL;
        }
        if (record)
            ok = ses_token_buf_reserve(&k->tokens, record->n, e) &&
                 ses_words_put_surface(f, record, k, text, at, e);
        else
            ok = ses_words_encode_miss(f, w, k, text, ends, i, x, hash, dependent, e);
        if (!ok) return false;
    }
    return true;
}
