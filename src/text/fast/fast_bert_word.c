/* Fast path for BERT: splits a word into tokens, and normalizes text with non-ASCII characters into words. */
#include "fast_bert.h"

#include "base/alloc.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"

#include <string.h>

/* ---- WordPiece ---- */

/* Longest token that p starts with: its length in bytes; 0: none. */
static inline size_t longest(const ses_trie *t, const uint8_t *p, size_t n, int32_t *id)
{
    uint32_t base = t->root;
    int32_t value;
    size_t len = 0;
    for (size_t i = 0; i < n && ses_trie_step(t, &base, p[i], &value);) {
        i++;
        if (value >= 0) len = i, *id = value;
        if (!base) break; /* a leaf */
    }
    return len;
}

typedef struct parts {
    size_t n;
    int32_t id[SES_BERT_MAX_WORD];
    uint16_t end[SES_BERT_MAX_WORD];
} parts;

/* Split a normalized word of at most SES_BERT_MAX_WORD bytes into tokens. */
static bool wordpiece(const ses_bert_fast *f, const uint8_t *p, size_t n, parts *out, ses_err *e)
{
    size_t chars = ses_utf8_count((const char *)p, n), at = 0;
    out->n = 0;
    while (at < n && chars <= (size_t)f->m->max_chars) {
        size_t len = longest(at ? &f->next : &f->first, p + at, n - at, &out->id[out->n]);
        if (!len) break;
        at += len;
        out->end[out->n++] = (uint16_t)at;
    }
    if (at == n) return true;
    if (f->m->unknown_id < 0)
        return ses_fail(e, SES_EARG, "unknown word, and unk_token \"%s\" is not in the vocabulary",
                        ses_quoted_of(f->m->unknown.p, f->m->unknown.n).s);
    out->n = 1;
    out->id[0] = f->m->unknown_id;
    out->end[0] = (uint16_t)n;
    return true;
}

/* ---- caches ---- */

/* An entry for a new key. Large bucket: replaces the older entry. Small bucket: replaces the second one;
 * the first is for words that were found again. */
static ses_bert_large_entry *new_large_entry(ses_bert_large_entry *bucket, const char *key)
{
    bucket[1] = bucket[0];
    memcpy(bucket->key, key, sizeof bucket->key);
    return bucket;
}

static ses_word_cache_entry *new_small_entry(ses_word_cache_entry *bucket, const char *key)
{
    bucket += bucket->key[15] != 0;
    memcpy(bucket->key, key, 15);
    bucket->key[15] = (uint8_t)key[SES_BERT_LONG];
    return bucket;
}

static const ses_bert_large_entry *find_large(const ses_bert_large_entry *bucket, const char *key)
{
    const size_t n = sizeof bucket->key;
    return !memcmp(bucket->key, key, n) ? bucket : !memcmp(bucket[1].key, key, n) ? bucket + 1 : NULL;
}

/* A cache entry in the making: the tokens of a piece and their byte ranges. */
typedef struct piece {
    size_t n;
    const int32_t *id;
    uint8_t begin[SES_BERT_MAX_TOKENS], end[SES_BERT_MAX_TOKENS], words;
    uint16_t starts; /* as in ses_bert_large_entry */
} piece;

/* Store under this key, in the small cache if it fits. small NULL: the key is too long for it. */
static void cache_piece(ses_word_cache_entry *small, ses_bert_large_entry *large, const char *key,
                        const piece *p)
{
    if (small && p->n <= SES_LEN(small->id) && p->words == 1) {
        ses_word_cache_entry *x = new_small_entry(small, key);
        x->n = (uint8_t)p->n;
        memcpy(x->id, p->id, p->n * sizeof *x->id);
        for (size_t i = 0; i < p->n; i++) x->range[i] = (uint8_t)(p->begin[i] << 4 | p->end[i]);
        return;
    }
    ses_bert_large_entry *x = new_large_entry(large, key);
    x->n = (uint8_t)p->n, x->words = p->words, x->starts = p->starts;
    memcpy(x->id, p->id, p->n * sizeof *x->id);
    memcpy(x->begin, p->begin, p->n);
    memcpy(x->end, p->end, p->n);
}

static void cache_word(ses_word_cache_entry *small, ses_bert_large_entry *large, const char *key,
                       const parts *p)
{
    piece x = { .n = p->n, .id = p->id, .words = 1, .starts = 1 };
    if (p->n > SES_BERT_MAX_TOKENS) return;
    for (size_t i = 0; i < p->n; i++) {
        x.begin[i] = (uint8_t)(i ? p->end[i - 1] : 0);
        x.end[i] = (uint8_t)p->end[i];
    }
    cache_piece(small, large, key, &x);
}

/* Tokens of a normalized word that is not in the small cache: from the large cache, else computed and
 * stored. The word is followed by 64 zeros. */
static bool resolve(const ses_bert_fast *f, ses_bert_work *w, char *word, size_t n,
                    ses_word_cache_entry *small, parts *p, ses_err *e)
{
    if (n > SES_BERT_LONG) return wordpiece(f, (const uint8_t *)word, n, p, e);
    word[SES_BERT_LONG] = (char)n;
    ses_bert_large_entry *large = &w->large[ses_bert_large_slot(f, word)];
    const ses_bert_large_entry *x = find_large(large, word);
    if (x) {
        p->n = x->n;
        for (size_t i = 0; i < x->n; i++) p->id[i] = x->id[i], p->end[i] = x->end[i];
        return true;
    }
    if (!wordpiece(f, (const uint8_t *)word, n, p, e)) return false;
    cache_word(small, large, word, p);
    return true;
}

/* Cache the tokens from `first` on, whose words start at `words`, under the bytes of the piece at `at`. */
static void cache_tokens(ses_bert_work *w, const ses_token_buf *r, size_t first, uint32_t words, uint32_t at,
                         const char *key, uint32_t slot, ses_word_cache_entry *small)
{
    piece x = { .n = r->n - first, .id = r->id + first, .words = (uint8_t)(r->n_words - words) };
    if (x.n > SES_BERT_MAX_TOKENS) return;
    for (size_t i = 0; i < x.n; i++) {
        const ses_offset *b = &r->byte_offset[first + i];
        x.begin[i] = (uint8_t)(b->begin - at);
        x.end[i] = (uint8_t)(b->end - at);
        if (!i || r->word_id[first + i] != r->word_id[first + i - 1]) x.starts |= (uint16_t)(1 << i);
    }
    cache_piece(small, &w->large[slot], key, &x);
}

/* Append the tokens of a word that normalization changes only in case. */
static bool encode_ascii_word(const ses_bert_fast *f, ses_token_buf *r, const char *word, size_t n,
                              uint32_t at, ses_err *e)
{
    parts p;
    if (!wordpiece(f, (const uint8_t *)word, n, &p, e)) return false;
    for (size_t i = 0, begin = 0; i < p.n; i++) {
        r->id[r->n] = p.id[i];
        r->byte_offset[r->n] = (ses_offset){ at + (uint32_t)begin, at + p.end[i] };
        r->word_id[r->n++] = (int32_t)r->n_words;
        begin = p.end[i];
    }
    r->n_words++;
    return true;
}

bool ses_bert_encode_miss(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k, const char *text,
                          size_t begin, size_t n, const char *key, uint32_t slot, ses_word_cache_entry *small,
                          ses_err *e)
{
    ses_token_buf *r = &k->tokens;
    size_t first = r->n;
    uint32_t words = r->n_words;
    bool non_ascii = (uint8_t)key[SES_BERT_LONG] & 0x80;
    if (!(non_ascii ? ses_bert_encode_non_ascii(f, w, k, text, begin, begin + n, e)
                    : encode_ascii_word(f, r, key, n, (uint32_t)begin, e)))
        return false;
    cache_tokens(w, r, first, words, (uint32_t)begin, key, slot, small);
    return !non_ascii || ses_token_buf_reserve(r, SES_BERT_WINDOW + SES_BERT_SLACK, e);
}

bool ses_bert_encode_long(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k, const char *text,
                          size_t base, size_t at, size_t n, ses_err *e)
{
    if (n <= SES_BERT_MAX_WORD && ses_is_ascii(w->lowered + at, n))
        return encode_ascii_word(f, &k->tokens, w->lowered + at, n, (uint32_t)(base + at), e);
    return ses_bert_encode_non_ascii(f, w, k, text, base + at, base + at + n, e) &&
           ses_token_buf_reserve(&k->tokens, SES_BERT_WINDOW + SES_BERT_SLACK, e);
}

/* ---- characters ---- */

bool ses_bert_normalize_char(const ses_bert_fast *f, uint32_t cp, ses_bert_char *c, ses_err *e)
{
    ses_text in = { 0 }, out = { 0 };
    char utf8[4];
    size_t n = ses_utf8_encode(cp, utf8), spaces = 0, letters = 0, single = 0;
    const ses_stage_list *steps = &f->t->steps[SES_NORMALIZER];
    bool ok = ses_text_put(&in, utf8, n, (ses_offset){ 0, (uint32_t)n }, e);
    ok = ok && (steps->n ? steps->step[0].stage->normalize(steps->step[0].self, &in, 0, n, &out, e)
                         : ses_text_copy(&out, &in, 0, n, e));
    c->kind = SES_BERT_BY_STAGES;
    char *p = out.byte;
    size_t len = out.n;
    if (len > 2 && p[0] == ' ' && p[len - 1] == ' ') p++, len -= 2, single++; /* CJK */
    for (size_t i = 0; i < len;) {
        uint32_t x = 0;
        i += ses_utf8_decode(p + i, len - i, &x);
        if (ses_cp_is(x, SES_CP_SPACE))
            spaces++;
        else if (ses_cp_is(x, SES_CP_PUNCT8))
            single++;
        else
            letters++;
    }
    if (!ok || ses_cp_is(cp, SES_CP_NFD_NON_MN8))
        c->kind = SES_BERT_BY_STAGES;
    else if (!len)
        c->kind = SES_BERT_REMOVED;
    else if (spaces && !letters && !single)
        c->kind = SES_BERT_SPACE;
    else if (len > sizeof c->byte || spaces)
        c->kind = SES_BERT_BY_STAGES;
    else if (single && single + letters == 1)
        c->kind = SES_BERT_SINGLE;
    else if (single == 1 && letters == 1 && len != out.n)
        c->kind = SES_BERT_SINGLE;
    else if (!single)
        c->kind = SES_BERT_LETTER;
    if (c->kind == SES_BERT_LETTER || c->kind == SES_BERT_SINGLE) {
        memcpy(c->byte, p, len);
        c->n = (uint8_t)len;
        c->chars = (uint8_t)ses_utf8_count(p, len);
        if (c->kind == SES_BERT_SINGLE) c->id = f->m->max_chars ? ses_vocab_id(&f->m->vocab, p, len) : -1;
        if (c->kind == SES_BERT_SINGLE && c->id < 0) c->id = f->m->unknown_id;
        if (c->kind == SES_BERT_SINGLE && c->id < 0)
            c->kind = SES_BERT_BY_STAGES; /* an error if the character occurs */
    }
    ses_text_free(&in);
    ses_text_free(&out);
    return ok;
}

static const ses_bert_char *find_char(const ses_bert_fast *f, ses_bert_work *w, uint32_t cp, ses_err *e)
{
    ses_bert_char **page = &w->page[cp >> 6];
    if (!*page && !(*page = ses_arena_array(&w->mem, 64, sizeof **page, e))) return NULL;
    ses_bert_char *c = &(*page)[cp & 63];
    return c->kind != SES_BERT_UNRESOLVED || ses_bert_normalize_char(f, cp, c, e) ? c : NULL;
}

/* ---- words with non-ASCII characters ---- */

/* The word being built in w->byte and w->from. */
typedef struct word {
    size_t n, chars;     /* bytes stored, characters counted */
    uint32_t begin, end; /* range in the text from the first to the last stored character */
} word;

static bool put_entry(ses_encode_ctx *k, const ses_bert_work *w, const ses_word_cache_entry *x, ses_err *e)
{
    ses_token_buf *r = &k->tokens;
    if (!ses_token_buf_reserve(r, x->n + SES_BERT_SLACK, e)) return false;
    for (size_t i = 0; i < x->n; i++) {
        r->id[r->n] = x->id[i];
        r->byte_offset[r->n] =
            (ses_offset){ w->from[x->range[i] >> 4].begin, w->from[(x->range[i] & 15) - 1].end };
        r->word_id[r->n++] = (int32_t)r->n_words;
    }
    r->n_words++;
    return true;
}

static bool put_parts(ses_encode_ctx *k, const ses_bert_work *w, const parts *p, ses_err *e)
{
    ses_token_buf *r = &k->tokens;
    if (!ses_token_buf_reserve(r, p->n + SES_BERT_SLACK, e)) return false;
    for (size_t i = 0, begin = 0; i < p->n; i++) {
        r->id[r->n] = p->id[i];
        r->byte_offset[r->n] = (ses_offset){ w->from[begin].begin, w->from[p->end[i] - 1].end };
        r->word_id[r->n++] = (int32_t)r->n_words;
        begin = p->end[i];
    }
    r->n_words++;
    return true;
}

/* Append the tokens of the word. More than max_chars characters yield the unknown token. whole: the word
 * is the entire piece, which will be cached under its original bytes, so skip the cache here. */
static bool put_word(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k, word *x, bool whole,
                     ses_err *e)
{
    size_t n = x->n;
    parts p;
    if (x->chars > (size_t)f->m->max_chars) {
        if (f->m->unknown_id < 0) return wordpiece(f, (const uint8_t *)w->byte, n, &p, e);
        p.n = 1;
        p.id[0] = f->m->unknown_id;
        p.end[0] = 1;
        w->from[0] = (ses_offset){ x->begin, x->end };
        *x = (word){ 0 };
        return put_parts(k, w, &p, e);
    }
    *x = (word){ 0 };
    if (whole) return wordpiece(f, (const uint8_t *)w->byte, n, &p, e) && put_parts(k, w, &p, e);
    memset(w->byte + n, 0, 64);
    if (n > SES_BERT_SHORT) return resolve(f, w, w->byte, n, NULL, &p, e) && put_parts(k, w, &p, e);
    uint64_t key[2];
    memcpy(key, w->byte, sizeof key);
    key[1] |= (uint64_t)n << 56;
    ses_word_cache_entry *bucket =
        &w->small[2 * (ses_word_hash16(&f->hash, key[0], key[1]) >> (64 - SES_BERT_SMALL_BITS))];
    for (const ses_word_cache_entry *y = bucket; y < bucket + 2; y++) {
        uint64_t have[2];
        memcpy(have, y->key, sizeof have);
        if (have[0] == key[0] && have[1] == key[1]) return put_entry(k, w, y, e);
    }
    return resolve(f, w, w->byte, n, bucket, &p, e) && put_parts(k, w, &p, e);
}

static bool put_single(ses_encode_ctx *k, const ses_bert_char *c, size_t at, size_t len, ses_err *e)
{
    ses_token_buf *r = &k->tokens;
    if (!ses_token_buf_reserve(r, 1 + SES_BERT_SLACK, e)) return false;
    r->id[r->n] = c->id;
    r->byte_offset[r->n] = (ses_offset){ (uint32_t)at, (uint32_t)(at + len) };
    r->word_id[r->n++] = (int32_t)r->n_words++;
    return true;
}

/* Skip the characters of the word at `at`, to the next position where the text may be split. */
static bool skip_word(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k, const char *text,
                      size_t *at, size_t end, ses_err *e)
{
    while (*at < end) {
        uint32_t cp = 0;
        size_t len = ses_utf8_decode(text + *at, end - *at, &cp);
        const ses_bert_char *c = len ? find_char(f, w, cp, e) : NULL;
        k->invalid_utf8 |= !len;
        if (!c) return false;
        if (c->kind == SES_BERT_SPACE || c->kind == SES_BERT_SINGLE) break;
        *at += len;
    }
    return true;
}

/* Strict UTF-8 decoding with inlined common cases. */
static inline size_t decode(const char *text, size_t n, uint32_t *cp)
{
    const uint8_t *p = (const uint8_t *)text;
    if (p[0] < 0x80) return *cp = p[0], 1;
    if (n >= 2 && p[0] >= 0xC2 && p[0] < 0xE0 && (p[1] & 0xC0) == 0x80)
        return *cp = (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu), 2;
    if (n >= 3 && p[0] > 0xE0 && p[0] < 0xED && (p[1] & 0xC0) == 0x80 && (p[2] & 0xC0) == 0x80)
        return *cp = (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu), 3;
    return ses_utf8_decode(text, n, cp);
}

static inline void add_char(ses_bert_work *w, word *x, const ses_bert_char *c, size_t at, size_t len,
                            size_t max_chars)
{
    ses_offset from = { (uint32_t)at, (uint32_t)(at + len) };
    if (!x->n) x->begin = from.begin;
    x->end = from.end;
    x->chars += c->chars;
    if (x->chars > max_chars && x->n) return; /* unknown in any case: the bytes do not matter */
    memcpy(w->byte + x->n, c->byte, sizeof c->byte);
    uint64_t both; /* one 8-byte store: two halves would cause a store-forwarding stall */
    memcpy(&both, &from, sizeof both);
    for (size_t i = 0; i < 4; i++) memcpy(w->from + x->n + i, &both, sizeof both);
    for (size_t i = 4; i < c->n; i++) memcpy(w->from + x->n + i, &both, sizeof both);
    x->n += c->n;
}

bool ses_bert_encode_non_ascii(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k, const char *text,
                               size_t begin, size_t end, ses_err *e)
{
    word x = { 0 };
    size_t start = begin; /* start of the text not yet encoded */
    for (size_t at = begin; at < end;) {
        uint32_t cp = 0;
        size_t len = decode(text + at, end - at, &cp);
        if (!len) {
            k->invalid_utf8 = true;
            return false;
        }
        const ses_bert_char *page = w->page[cp >> 6], *c = page ? &page[cp & 63] : NULL;
        if ((!c || c->kind == SES_BERT_UNRESOLVED) && !(c = find_char(f, w, cp, e))) return false;
        if (c->kind == SES_BERT_LETTER && x.n < SES_BERT_MAX_WORD) {
            add_char(w, &x, c, at, len, (size_t)f->m->max_chars);
        } else if (c->kind == SES_BERT_SPACE || c->kind == SES_BERT_SINGLE) {
            if (x.n && !put_word(f, w, k, &x, false, e)) return false;
            if (c->kind == SES_BERT_SINGLE && !put_single(k, c, at, len, e)) return false;
            start = at + len;
        } else if (c->kind != SES_BERT_REMOVED) {
            if (!skip_word(f, w, k, text, &at, end, e) || !ses_encode_by_stages(k, text, start, at, NULL, e))
                return false;
            x = (word){ 0 };
            start = at;
            continue;
        }
        at += len;
    }
    return (!x.n || put_word(f, w, k, &x, start == begin, e)) &&
           ses_token_buf_reserve(&k->tokens, SES_BERT_SLACK, e);
}
