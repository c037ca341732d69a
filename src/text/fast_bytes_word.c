/* fast_bytes: words that are not in the small cache. */
#include "fast_bytes.h"

#include "base/utf8.h"
#include "byte_chars.h"

#include <string.h>

/* ---- taking words apart ---- */

typedef struct parts {
    int32_t *id;
    uint32_t *len;
    size_t n;
} parts;

/* Merging needs no preparation; reading off does, and is faster after it. */
static bool prepare(const ses_bytes_fast *f, ses_bytes_work *w, ses_err *e)
{
    bool fits;
    if (!ses_bpe_walk_open(&w->walk, f->m, f->id, &fits, e)) return false;
    w->walks = fits ? SES_WALK_READY : SES_WALK_NEVER;
    return true;
}

/* Tokens of n bytes. id and len have room for n. */
static bool take_apart(const ses_bytes_fast *f, ses_bytes_work *w, const char *word, size_t n, parts *p,
                       ses_arena *scratch, ses_err *e)
{
    if (f->m->ignore_merges && n <= SES_BYTES_LONG) { /* the word itself, if it is a token */
        char spelled[2 * SES_BYTES_LONG];
        size_t k = 0;
        for (size_t i = 0; i < n; i++) k += ses_utf8_encode(ses_byte_char((uint8_t)word[i]), spelled + k);
        p->id[0] = ses_vocab_id(&f->m->vocab, spelled, k);
        p->len[0] = (uint32_t)n;
        p->n = 1;
        if (p->id[0] >= 0) return true;
    }
    if (w->walks == SES_WALK_LATER && (w->merged += n) > SES_BYTES_MERGED && !prepare(f, w, e)) return false;
    if (w->walks == SES_WALK_READY)
        return ses_bpe_walk_run(&w->walk, word, n, p->id, p->len, &p->n, scratch, e);
    for (size_t i = 0; i < n; i++) p->id[i] = f->id[(uint8_t)word[i]], p->len[i] = 1;
    p->n = n;
    return ses_merges_apply(&f->m->merges, p->id, p->len, &p->n, NULL, scratch, e);
}

static bool inner(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

/* A token that holds part of a character's bytes is said to come from all of it. */
static ses_offset whole_chars(const char *word, size_t n, size_t begin, size_t end)
{
    while (begin && inner(word[begin])) begin--;
    while (end < n && inner(word[end])) end++;
    return (ses_offset){ (uint32_t)begin, (uint32_t)end };
}

static void put_token(ses_run *r, int32_t id, ses_offset o, uint32_t at)
{
    r->id[r->n] = id;
    r->byte[r->n] = (ses_offset){ at + o.begin, at + o.end };
    r->word[r->n++] = (int32_t)r->words;
}

/* ---- caches ---- */

static uint32_t large_hash(const ses_bytes_fast *f, const char *key)
{
    uint64_t h = (uint8_t)key[63], a[2];
    for (size_t i = 0, n = h & 63; i < n; i += 16) {
        memcpy(a, key + i, sizeof a);
        h = ses_word_hash16(&f->hash, a[0] ^ h, a[1]);
    }
    return 2 * (uint32_t)(h >> (64 - SES_BYTES_LARGE_BITS));
}

uint32_t ses_bytes_long_key(const ses_bytes_fast *f, ses_bytes_work *w, size_t j, size_t at, size_t len)
{
    char *key = w->key[j];
    if (len > SES_BYTES_LONG) return 0;
    memset(key, 0, 64);
    memcpy(key, w->text + at, len);
    key[63] = (char)len;
    uint32_t slot = large_hash(f, key);
    __builtin_prefetch(w->large[slot].key);
    __builtin_prefetch(w->large[slot].id);
    __builtin_prefetch(w->large[slot].begin);
    return slot;
}

/* A new word takes the second place: the first is for words that have come again. */
static ses_bytes_entry *keep_small(ses_bytes_entry *bucket, const char *word, size_t n, const parts *p)
{
    bucket += bucket->key[15] != 0;
    memset(bucket->key, 0, 16);
    memcpy(bucket->key, word, n);
    bucket->key[15] = (uint8_t)n;
    bucket->n = (uint8_t)p->n;
    for (size_t i = 0, begin = 0; i < p->n; begin += p->len[i++]) {
        ses_offset o = whole_chars(word, n, begin, begin + p->len[i]);
        bucket->id[i] = p->id[i];
        bucket->place[i] = (uint8_t)(o.begin << 4 | o.end);
    }
    return bucket;
}

static void keep_large(ses_bytes_large *bucket, const char *key, const parts *p)
{
    size_t n = (uint8_t)key[63];
    bucket[1] = bucket[0];
    memcpy(bucket->key, key, 64);
    bucket->n = (uint8_t)p->n;
    for (size_t i = 0, begin = 0; i < p->n; begin += p->len[i++]) {
        ses_offset o = whole_chars(key, n, begin, begin + p->len[i]);
        bucket->id[i] = p->id[i];
        bucket->begin[i] = (uint8_t)o.begin;
        bucket->end[i] = (uint8_t)o.end;
    }
}

static void put_large(ses_run *r, const ses_bytes_large *x, uint32_t at)
{
    for (size_t i = 0; i < x->n; i++) {
        r->id[r->n + i] = x->id[i];
        r->byte[r->n + i] = (ses_offset){ at + x->begin[i], at + x->end[i] };
        r->word[r->n + i] = (int32_t)r->words;
    }
    r->n += x->n;
    r->words++;
}

static void put_parts(ses_run *r, const parts *p, const char *word, size_t n, uint32_t at)
{
    for (size_t i = 0, begin = 0; i < p->n; begin += p->len[i++])
        put_token(r, p->id[i], whole_chars(word, n, begin, begin + p->len[i]), at);
    r->words++;
}

static const ses_bytes_large *large_find(const ses_bytes_large *x, const char *key)
{
    return !memcmp(x->key, key, 64) ? x : !memcmp(x[1].key, key, 64) ? x + 1 : NULL;
}

/* Taken apart, and kept where it fits; a short word with many tokens in both caches. */
static bool put_new(const ses_bytes_fast *f, ses_bytes_work *w, ses_tokens *k, const char *key, uint32_t at,
                    ses_bytes_entry *small, ses_bytes_large *large, ses_err *e)
{
    int32_t id[64];
    uint32_t len[64];
    parts p = { id, len, 0 };
    size_t n = (uint8_t)key[63];
    if (!take_apart(f, w, key, n, &p, &k->scratch, e)) return false;
    if (small && p.n <= SES_LEN(small->id)) {
        keep_small(small, key, n, &p);
    } else if (p.n <= SES_BYTES_IDS) {
        keep_large(large ? large : &w->large[large_hash(f, key)], key, &p);
        if (small) {
            parts none = { id, len, 0 };
            keep_small(small, key, n, &none)->n = SES_BYTES_ELSEWHERE;
        }
    }
    put_parts(&k->run, &p, key, n, at);
    return true;
}

bool ses_bytes_put_long(const ses_bytes_fast *f, ses_bytes_work *w, ses_tokens *k, size_t base, size_t at,
                        size_t len, uint32_t slot, size_t j, ses_err *e)
{
    uint32_t from = (uint32_t)(base + at);
    if (len > SES_BYTES_LONG) return ses_bytes_whole(f, w, k, w->text + at, len, from, 0, e);
    const ses_bytes_large *x = large_find(&w->large[slot], w->key[j]);
    if (!x) return put_new(f, w, k, w->key[j], from, NULL, &w->large[slot], e);
    put_large(&k->run, x, from);
    return true;
}

bool ses_bytes_far(const ses_bytes_fast *f, ses_bytes_work *w, ses_tokens *k, const char *word, size_t n,
                   uint32_t at, ses_err *e)
{
    char key[64] = { 0 };
    memcpy(key, word, n);
    key[63] = (char)n;
    ses_bytes_large *large = &w->large[large_hash(f, key)];
    const ses_bytes_large *x = large_find(large, key);
    if (!x) return put_new(f, w, k, key, at, NULL, large, e);
    put_large(&k->run, x, at);
    return true;
}

bool ses_bytes_miss(const ses_bytes_fast *f, ses_bytes_work *w, ses_tokens *k, const char *word, size_t n,
                    uint32_t at, ses_bytes_entry *bucket, ses_err *e)
{
    char key[64] = { 0 };
    memcpy(key, word, n);
    key[63] = (char)n;
    return put_new(f, w, k, key, at, bucket, NULL, e);
}

/* The space in front has the range of the first character, of so many bytes; what is after it lies one
 * place earlier in the text. */
static ses_offset without_space(const char *word, size_t n, size_t begin, size_t end, size_t first)
{
    ses_offset o = whole_chars(word, n, begin, end);
    if (o.end == 1) return (ses_offset){ 0, (uint32_t)first };
    return (ses_offset){ o.begin ? o.begin - 1 : 0, o.end - 1 };
}

bool ses_bytes_whole(const ses_bytes_fast *f, ses_bytes_work *w, ses_tokens *k, const char *word, size_t n,
                     uint32_t at, size_t space, ses_err *e)
{
    ses_mark mark = ses_arena_mark(&k->scratch);
    parts p = { ses_arena_alloc(&k->scratch, n * sizeof *p.id, e), NULL, 0 };
    p.len = p.id ? ses_arena_alloc(&k->scratch, n * sizeof *p.len, e) : NULL;
    bool ok = p.len && take_apart(f, w, word, n, &p, &k->scratch, e) &&
              ses_run_reserve(&k->run, p.n + SES_BYTES_WINDOW + SES_BYTES_SLACK, e);
    for (size_t i = 0, begin = 0; ok && i < p.n; begin += p.len[i++]) {
        size_t end = begin + p.len[i];
        put_token(&k->run, p.id[i],
                  space ? without_space(word, n, begin, end, space) : whole_chars(word, n, begin, end), at);
    }
    if (ok) k->run.words++;
    ses_arena_rewind(&k->scratch, mark);
    return ok;
}

/* ---- words, one by one ---- */

bool ses_bytes_words_ref(const ses_bytes_fast *f, ses_bytes_work *w, ses_tokens *k, size_t base, size_t count,
                         ses_err *e)
{
    ses_run *r = &k->run;
    for (size_t i = 0; i < count; i++) {
        size_t at = w->begin[i], len = (size_t)w->begin[i + 1] - at;
        uint32_t from = (uint32_t)(base + at);
        if (len > SES_BYTES_SHORT) {
            uint32_t slot = ses_bytes_long_key(f, w, 0, at, len);
            if (!ses_bytes_put_long(f, w, k, base, at, len, slot, 0, e)) return false;
            continue;
        }
        uint64_t key[2] = { 0 };
        memcpy(key, w->text + at, len);
        ((uint8_t *)key)[15] = (uint8_t)len;
        ses_bytes_entry *x =
            &w->small[2 * (ses_word_hash16(&f->hash, key[0], key[1]) >> (64 - SES_BYTES_SMALL_BITS))];
        const ses_bytes_entry *hit = !memcmp(x->key, key, 16) ? x : !memcmp(x[1].key, key, 16) ? x + 1 : NULL;
        if (!hit) {
            if (!ses_bytes_miss(f, w, k, w->text + at, len, from, x, e)) return false;
            continue;
        }
        if (hit->n == SES_BYTES_ELSEWHERE) {
            if (!ses_bytes_far(f, w, k, w->text + at, len, from, e)) return false;
            continue;
        }
        for (size_t j = 0; j < hit->n; j++)
            put_token(r, hit->id[j], (ses_offset){ hit->place[j] >> 4, hit->place[j] & 15u }, from);
        r->words++;
    }
    return true;
}
