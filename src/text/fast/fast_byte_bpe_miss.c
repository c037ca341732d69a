/* Fast path for byte-level BPE: encodes words that are not in the cache, and stores them. */
#include "fast_byte_bpe.h"

#include "base/unicode/utf8.h"
#include "text/vocab/byte_chars.h"
#include "word_store_emit.h"

#include <string.h>

/* ---- encoding ---- */

typedef struct parts {
    int32_t *id;
    uint32_t *len;
    size_t n;
} parts;

/* Build the backtracking encoder, once enough bytes were merged. It is faster than merging, but takes time
 * to build. */
static bool build_backtrack(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_err *e)
{
    bool fits;
    if (!ses_bpe_backtrack_open(&w->backtrack, f->m, f->id, &fits, e)) return false;
    w->backtrack_state = fits ? SES_BACKTRACK_READY : SES_BACKTRACK_NEVER;
    return true;
}

/* Encode n bytes. id and len have capacity n. */
static bool encode_word(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, const char *word, size_t n,
                        parts *p, ses_arena *scratch, ses_err *e)
{
    if (f->m->ignore_merges && n <= SES_WORD_STORE_LONG) { /* the word itself, if it is a token */
        char spelled[2 * SES_WORD_STORE_LONG];
        size_t k = 0;
        for (size_t i = 0; i < n; i++) k += ses_utf8_encode(ses_byte_char((uint8_t)word[i]), spelled + k);
        p->id[0] = ses_vocab_id(&f->m->vocab, spelled, k);
        p->len[0] = (uint32_t)n;
        p->n = 1;
        if (p->id[0] >= 0) return true;
    }
    if (w->backtrack_state == SES_BACKTRACK_LATER && (w->merged += n) > SES_BYTE_BPE_BACKTRACK_AFTER &&
        !build_backtrack(f, w, e))
        return false;
    if (w->backtrack_state == SES_BACKTRACK_READY)
        return ses_bpe_backtrack_encode(&w->backtrack, word, n, p->id, p->len, &p->n, scratch, e);
    for (size_t i = 0; i < n; i++) p->id[i] = f->id[(uint8_t)word[i]], p->len[i] = 1;
    p->n = n;
    return ses_merges_apply(&f->m->merges, p->id, p->len, &p->n, NULL, scratch, e);
}

/* A token that covers part of a character's bytes gets the range of the whole character. */
static ses_offset whole_chars(const char *word, size_t n, size_t begin, size_t end)
{
    while (begin && ses_utf8_continues(word[begin])) begin--;
    while (end < n && ses_utf8_continues(word[end])) end++;
    return (ses_offset){ (uint32_t)begin, (uint32_t)end };
}

static void put_token(ses_token_buf *r, int32_t id, ses_offset o, uint32_t at)
{
    r->id[r->n] = id;
    r->byte_offset[r->n] = (ses_offset){ at + o.begin, at + o.end };
    r->word_id[r->n++] = (int32_t)r->n_words;
}

/* ---- caches ---- */

/* A new word replaces the second entry of its bucket; the first is for words that were found again. A word
 * whose record was overwritten replaces its own entry. */
static ses_word_cache_entry *cache_small(ses_word_cache_entry *bucket, const char *word, size_t n,
                                         const parts *p)
{
    uint8_t key[16] = { 0 };
    memcpy(key, word, n);
    key[15] = (uint8_t)n;
    bucket += bucket->key[15] && memcmp(bucket->key, key, sizeof key);
    memcpy(bucket->key, key, sizeof key);
    bucket->n = (uint8_t)p->n;
    for (size_t i = 0, begin = 0; i < p->n; begin += p->len[i++]) {
        ses_offset o = whole_chars(word, n, begin, begin + p->len[i]);
        bucket->id[i] = p->id[i];
        bucket->range[i] = (uint8_t)(o.begin << 4 | o.end);
    }
    return bucket;
}

/* Store the tokens of a word; returns the position in the store, or 0. */
static uint32_t store_word(ses_word_store *s, ses_string word, const parts *p)
{
    uint32_t position;
    ses_word_record like = {
        .len = (uint16_t)word.n, .n = (uint16_t)p->n, .words = 1, .tiles = ses_is_ascii(word.p, word.n)
    };
    ses_word_record *x = ses_word_store_put(s, &like, word.p, &position);
    if (!x) return 0;
    ses_word_record_parts to = ses_word_record_parts_of(x);
    memcpy(to.id, p->id, p->n * sizeof *to.id);
    for (size_t i = 0, begin = 0; i < p->n; begin += p->len[i++]) {
        ses_word_record_set_offset(&to, i, whole_chars(word.p, word.n, begin, begin + p->len[i]));
    }
    return position;
}

static void put_parts(ses_token_buf *r, const parts *p, const char *word, size_t n, uint32_t at)
{
    for (size_t i = 0, begin = 0; i < p->n; begin += p->len[i++])
        put_token(r, p->id[i], whole_chars(word, n, begin, begin + p->len[i]), at);
    r->n_words++;
}

bool ses_byte_bpe_encode_miss(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_encode_ctx *k,
                              ses_string word, uint32_t at, ses_word_cache_entry *bucket, uint64_t hash,
                              ses_err *e)
{
    int32_t id[SES_WORD_STORE_LONG];
    uint32_t len[SES_WORD_STORE_LONG];
    parts p = { id, len, 0 };
    if (word.n > SES_WORD_STORE_LONG) return ses_byte_bpe_encode_long(f, w, k, word.p, word.n, at, e);
    if (!encode_word(f, w, word.p, word.n, &p, &k->scratch, e)) return false;
    put_parts(&k->tokens, &p, word.p, word.n, at);
    if (bucket && p.n <= SES_LEN(bucket->id)) {
        cache_small(bucket, word.p, word.n, &p);
        return true;
    }
    uint32_t position = store_word(&w->store, word, &p);
    if (position && bucket) {
        parts none = { id, len, 0 };
        ses_word_cache_entry *x = cache_small(bucket, word.p, word.n, &none);
        x->n = SES_BYTE_BPE_IN_STORE;
        x->id[0] = (int32_t)position;
    } else if (position) {
        ses_word_store_add_index(&w->store, hash, position);
    }
    return true;
}

bool ses_byte_bpe_encode_long(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_encode_ctx *k,
                              const char *word, size_t n, uint32_t at, ses_err *e)
{
    ses_mark mark = ses_arena_mark(&k->scratch);
    parts p = { ses_arena_alloc(&k->scratch, n * sizeof *p.id, e), NULL, 0 };
    p.len = p.id ? ses_arena_alloc(&k->scratch, n * sizeof *p.len, e) : NULL;
    bool ok = p.len && encode_word(f, w, word, n, &p, &k->scratch, e) &&
              ses_token_buf_reserve(&k->tokens, p.n + SES_BYTE_BPE_WINDOW + SES_BYTE_BPE_SLACK, e);
    if (ok) put_parts(&k->tokens, &p, word, n, at);
    ses_arena_rewind(&k->scratch, mark);
    return ok;
}

/* ---- words, one by one ---- */

bool ses_byte_bpe_encode_words_ref(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_encode_ctx *k,
                                   size_t base, size_t count, ses_err *e)
{
    ses_token_buf *r = &k->tokens;
    for (size_t i = 0; i < count; i++) {
        ses_string word = { w->text + w->begin[i], (size_t)w->begin[i + 1] - w->begin[i] };
        uint32_t from = (uint32_t)(base + w->begin[i]);
        const ses_word_record *record = NULL;
        ses_word_cache_entry *x = NULL;
        uint64_t hash = 0, key[2] = { 0 };
        if (word.n <= SES_BYTE_BPE_SHORT) {
            memcpy(key, word.p, word.n);
            ((uint8_t *)key)[15] = (uint8_t)word.n;
            hash = ses_word_hash16(&f->hash, key[0], key[1]);
            x = &w->cache[2 * (hash >> (64 - SES_BYTE_BPE_CACHE_BITS))];
            const ses_word_cache_entry *hit = !memcmp(x->key, key, 16)     ? x
                                              : !memcmp(x[1].key, key, 16) ? x + 1
                                                                           : NULL;
            if (hit && hit->n != SES_BYTE_BPE_IN_STORE) {
                for (size_t j = 0; j < hit->n; j++)
                    put_token(r, hit->id[j], (ses_offset){ hit->range[j] >> 4, hit->range[j] & 15u }, from);
                r->n_words++;
                continue;
            }
            if (hit) record = ses_word_store_at(&w->store, (uint32_t)hit->id[0]);
        } else if (word.n <= SES_WORD_STORE_LONG) {
            hash = ses_word_store_hash(&f->hash, word.p, word.n, 0);
            record = ses_word_store_at(&w->store, ses_word_store_find(&w->store, hash));
            if (record && !ses_word_record_matches(record, word.p, word.n, 0)) record = NULL;
        }
        if (record)
            ses_word_record_emit(r, record, from);
        else if (!ses_byte_bpe_encode_miss(f, w, k, word, from, x, hash, e))
            return false;
    }
    return true;
}
