/* fast_bert: a word to its tokens; characters beyond ASCII to words. */
#include "fast_bert.h"

#include "base/alloc.h"
#include "base/unicode.h"
#include "base/utf8.h"

#include <string.h>

/* ---- tokens by the hash of their bytes ---- */

/* Of a prefix one byte longer. */
static uint64_t roll(uint64_t h, uint8_t byte) { return (h + byte + 1) * 0xD6E8FEB86659FD93u; }

static uint64_t finish(const ses_bert_fast *f, uint64_t h) { return (h ^ h >> 29) * f->key[2]; }

static uint32_t pair_of(const uint8_t *p, size_t n) { return (p[0] * 61u + (n > 1 ? p[1] + 1u : 0)) & 4095; }

bool ses_bert_table(const ses_bert_fast *f, ses_bert_tokens *t, bool next, ses_arena *mem, ses_err *e)
{
    const ses_vocab *v = &f->m->vocab;
    ses_string prefix = next ? f->m->prefix : (ses_string){ "", 0 };
    uint32_t bits = 4;
    while (((int64_t)1 << bits) < 2 * (int64_t)v->count) bits++;
    t->shift = 64 - bits;
    t->skip = (uint32_t)prefix.n;
    t->slot = ses_arena_array(mem, (size_t)1 << bits, sizeof *t->slot, e);
    t->length = ses_arena_array(mem, 4096, sizeof *t->length, e);
    if (!t->slot || !t->length) return false;
    for (size_t i = 0; i < (size_t)1 << bits; i++) t->slot[i].id = -1;
    for (int32_t id = 0; id < v->size; id++) {
        size_t n = 0;
        const char *s = ses_vocab_token(v, id, &n);
        if (!s || n <= prefix.n || memcmp(s, prefix.p, prefix.n)) continue;
        const uint8_t *p = (const uint8_t *)s + prefix.n;
        n -= prefix.n;
        uint64_t h = 0;
        for (size_t i = 0; i < n; i++) h = roll(h, p[i]);
        h = finish(f, h);
        size_t at = h >> t->shift, mask = ((size_t)1 << bits) - 1;
        while (t->slot[at].id >= 0) at = (at + 1) & mask;
        t->slot[at] = (ses_bert_slot){ (uint32_t)h, id };
        uint64_t bit = (uint64_t)1 << (n < 63 ? n : 63);
        t->length[pair_of(p, n)] |= bit; /* a text of one byte reads it under one, a longer one under two */
        if (n == 1)
            for (uint32_t b = 0; b < 256; b++)
                t->length[pair_of((const uint8_t[2]){ p[0], (uint8_t)b }, 2)] |= bit;
        if (n > t->longest) t->longest = (uint32_t)n;
    }
    return true;
}

static int32_t table_find(const ses_bert_fast *f, const ses_bert_tokens *t, uint64_t h, const uint8_t *p,
                          size_t n)
{
    h = finish(f, h);
    const ses_vocab *v = &f->m->vocab;
    size_t mask = ((size_t)1 << (64 - t->shift)) - 1;
    for (size_t at = h >> t->shift; t->slot[at].id >= 0; at = (at + 1) & mask) {
        if (t->slot[at].tag != (uint32_t)h) continue;
        int32_t id = t->slot[at].id;
        if (v->len[id] == n + t->skip && !memcmp(v->byte + v->start[id] + t->skip, p, n)) return id;
    }
    return -1;
}

/* The longest token that begins at p: its bytes, 0 if none. */
static size_t longest(const ses_bert_fast *f, const ses_bert_tokens *t, const uint8_t *p, size_t n,
                      int32_t *id)
{
    uint64_t hash[SES_BERT_WORD + 1], lengths = t->length[pair_of(p, n)];
    if (n > t->longest) n = t->longest;
    hash[0] = 0;
    for (size_t i = 0; i < n; i++) {
        hash[i + 1] = roll(hash[i], p[i]);
        if (lengths >> (i + 1) & 1) __builtin_prefetch(&t->slot[finish(f, hash[i + 1]) >> t->shift]);
    }
    for (; n >= 63; n--)
        if (lengths >> 63 && (*id = table_find(f, t, hash[n], p, n)) >= 0) return n;
    for (lengths &= n < 63 ? ((uint64_t)2 << n) - 1 : ~(uint64_t)0; lengths; lengths &= ~((uint64_t)1 << n)) {
        n = 63 - (size_t)__builtin_clzll(lengths);
        if ((*id = table_find(f, t, hash[n], p, n)) >= 0) return n;
    }
    return 0;
}

typedef struct parts {
    size_t n;
    int32_t id[SES_BERT_WORD];
    uint16_t end[SES_BERT_WORD];
} parts;

/* Tokens of a normalized word of at most SES_BERT_WORD bytes. */
static bool take_apart(const ses_bert_fast *f, const uint8_t *p, size_t n, parts *out, ses_err *e)
{
    size_t chars = 0, at = 0;
    for (size_t i = 0; i < n; i++) chars += (p[i] & 0xC0) != 0x80;
    out->n = 0;
    while (at < n && chars <= (size_t)f->m->max_chars) {
        size_t len = longest(f, at ? &f->next : &f->first, p + at, n - at, &out->id[out->n]);
        if (!len) break;
        at += len;
        out->end[out->n++] = (uint16_t)at;
    }
    if (at == n) return true;
    if (f->m->unknown_id < 0)
        return ses_fail(e, SES_EARG, "a word needs the unknown token \"%s\", which is not in the vocabulary",
                        ses_quoted_of(f->m->unknown.p, f->m->unknown.n).s);
    out->n = 1;
    out->id[0] = f->m->unknown_id;
    out->end[0] = (uint16_t)n;
    return true;
}

/* ---- caches ---- */

static uint64_t key_hash(const ses_bert_fast *f, const uint8_t *key, size_t n)
{
    uint64_t h = 0, a[2];
    for (size_t i = 0; i < n; i += 16) {
        size_t have = n - i < 16 ? n - i : 16;
        a[0] = a[1] = 0;
        memcpy(a, key + i, have);
        h = ses_bert_hash(f, a[0] ^ h, a[1]);
    }
    return h;
}

/* Tokens of a word that is not in the small cache: from the large one, or found now and kept in the one where
 * they fit. bucket: where the small cache would have it; NULL: the word is too long for that. */
static bool resolve(const ses_bert_fast *f, ses_bert_work *w, const char *word, size_t n,
                    ses_bert_entry *bucket, parts *p, ses_err *e)
{
    uint8_t key[56] = { 0 };
    if (n > SES_BERT_LONG) return take_apart(f, (const uint8_t *)word, n, p, e);
    memcpy(key, word, n);
    key[55] = (uint8_t)n;
    ses_bert_large *x = &w->large[key_hash(f, key, n) >> (64 - SES_BERT_LARGE_BITS)];
    if (!memcmp(x->key, key, sizeof key)) {
        p->n = x->n;
        for (size_t i = 0; i < x->n; i++) p->id[i] = x->id[i], p->end[i] = x->end[i];
        return true;
    }
    if (!take_apart(f, key, n, p, e)) return false;
    if (bucket && p->n <= SES_LEN(bucket->id)) {
        ses_bert_entry y = { .n = (uint8_t)p->n };
        memcpy(y.key, key, 15);
        y.key[15] = (uint8_t)n;
        for (size_t i = 0; i < p->n; i++) y.id[i] = p->id[i], y.end[i] = (uint8_t)p->end[i];
        bucket[1] = bucket[0]; /* the older of the two goes */
        bucket[0] = y;
    } else if (p->n <= SES_LEN(x->id)) {
        memcpy(x->key, key, sizeof key);
        x->n = (uint8_t)p->n;
        for (size_t i = 0; i < p->n; i++) x->id[i] = p->id[i], x->end[i] = (uint8_t)p->end[i];
    }
    return true;
}

/* ---- words of ASCII ---- */

bool ses_bert_miss(const ses_bert_fast *f, ses_bert_work *w, ses_tokens *k, const char *word, size_t n,
                   uint32_t at, ses_bert_entry *bucket, ses_err *e)
{
    parts p;
    if (!resolve(f, w, word, n, bucket, &p, e)) return false;
    ses_run *r = &k->run;
    for (size_t i = 0, begin = 0; i < p.n; i++) {
        r->id[r->n] = p.id[i];
        r->byte[r->n] = (ses_offset){ at + (uint32_t)begin, at + p.end[i] };
        r->word[r->n++] = (int32_t)r->words;
        begin = p.end[i];
    }
    return true;
}

/* ---- characters ---- */

bool ses_bert_ask(const ses_bert_fast *f, uint32_t cp, ses_bert_char *c, ses_err *e)
{
    ses_text in = { 0 }, out = { 0 };
    char utf8[4];
    size_t n = ses_utf8_encode(cp, utf8), spaces = 0, letters = 0, alone = 0;
    const ses_steps *steps = &f->t->steps[SES_NORMALIZER];
    bool ok = ses_text_put(&in, utf8, n, (ses_offset){ 0, (uint32_t)n }, e);
    ok = ok && (steps->n ? steps->step[0].stage->normalize(steps->step[0].self, &in, 0, n, &out, e)
                         : ses_text_copy(&out, &in, 0, n, e));
    c->kind = SES_BERT_ODD;
    char *p = out.byte;
    size_t len = out.n;
    if (len > 2 && p[0] == ' ' && p[len - 1] == ' ') p++, len -= 2, alone++; /* Chinese */
    for (size_t i = 0; i < len;) {
        uint32_t x = 0;
        i += ses_utf8_decode(p + i, len - i, &x);
        if (ses_cp_is(x, SES_CP_SPACE))
            spaces++;
        else if (ses_cp_is(x, SES_CP_PUNCT8))
            alone++;
        else
            letters++;
    }
    if (!ok || ses_cp_is(cp, SES_CP_KNOT))
        c->kind = SES_BERT_ODD;
    else if (!len)
        c->kind = SES_BERT_GONE;
    else if (spaces && !letters && !alone)
        c->kind = SES_BERT_SPACE;
    else if (len > sizeof c->byte || spaces)
        c->kind = SES_BERT_ODD;
    else if (alone && alone + letters == 1)
        c->kind = SES_BERT_ALONE;
    else if (alone == 1 && letters == 1 && len != out.n)
        c->kind = SES_BERT_ALONE;
    else if (!alone)
        c->kind = SES_BERT_LETTER;
    if (c->kind == SES_BERT_LETTER || c->kind == SES_BERT_ALONE) {
        memcpy(c->byte, p, len);
        c->n = (uint8_t)len;
    }
    ses_text_free(&in);
    ses_text_free(&out);
    return ok;
}

static const ses_bert_char *look_up(const ses_bert_fast *f, ses_bert_work *w, uint32_t cp, ses_err *e)
{
    ses_bert_char **page = &w->page[cp >> 6];
    if (!*page && !(*page = ses_arena_array(&w->mem, 64, sizeof **page, e))) return NULL;
    ses_bert_char *c = &(*page)[cp & 63];
    return c->kind != SES_BERT_UNKNOWN || ses_bert_ask(f, cp, c, e) ? c : NULL;
}

/* ---- words beyond ASCII ---- */

/* Where the bytes of the word being made come from: w->byte and w->from. */
typedef struct word {
    size_t n, chars;     /* bytes kept, characters seen */
    uint32_t begin, end; /* in the text: of the first and last character kept */
} word;

static bool put_tokens(ses_tokens *k, const ses_bert_work *w, const int32_t *id, const uint8_t *end, size_t n,
                       ses_err *e)
{
    ses_run *r = &k->run;
    if (!ses_run_reserve(r, n + SES_BERT_SLACK, e)) return false;
    for (size_t i = 0, begin = 0; i < n; i++) {
        r->id[r->n] = id[i];
        r->byte[r->n] = (ses_offset){ w->from[begin].begin, w->from[end[i] - 1].end };
        r->word[r->n++] = (int32_t)r->words;
        begin = end[i];
    }
    r->words++;
    return true;
}

static bool put_parts(ses_tokens *k, const ses_bert_work *w, const parts *p, ses_err *e)
{
    ses_run *r = &k->run;
    if (!ses_run_reserve(r, p->n + SES_BERT_SLACK, e)) return false;
    for (size_t i = 0, begin = 0; i < p->n; i++) {
        r->id[r->n] = p->id[i];
        r->byte[r->n] = (ses_offset){ w->from[begin].begin, w->from[p->end[i] - 1].end };
        r->word[r->n++] = (int32_t)r->words;
        begin = p->end[i];
    }
    r->words++;
    return true;
}

static bool put_short(const ses_bert_fast *f, ses_bert_work *w, ses_tokens *k, size_t n, ses_err *e)
{
    uint8_t key[16] = { 0 };
    uint64_t a[2];
    memcpy(key, w->byte, n);
    key[15] = (uint8_t)n;
    memcpy(a, key, sizeof a);
    ses_bert_entry *x = &w->small[2 * (ses_bert_hash(f, a[0], a[1]) >> (64 - SES_BERT_SMALL_BITS))];
    if (!memcmp(x->key, key, 16)) return put_tokens(k, w, x->id, x->end, x->n, e);
    if (!memcmp(x[1].key, key, 16)) return put_tokens(k, w, x[1].id, x[1].end, x[1].n, e);
    parts p;
    return resolve(f, w, w->byte, n, x, &p, e) && put_parts(k, w, &p, e);
}

/* The word made so far, if any. One with too many characters is unknown whatever they are. */
static bool put_word(const ses_bert_fast *f, ses_bert_work *w, ses_tokens *k, word *x, ses_err *e)
{
    size_t n = x->n;
    bool too_long = x->chars > (size_t)f->m->max_chars;
    uint32_t begin = x->begin, end = x->end;
    *x = (word){ 0 };
    if (!n) return true;
    if (too_long) {
        parts p = { .n = 1 };
        if (f->m->unknown_id < 0) return take_apart(f, (const uint8_t *)w->byte, n, &p, e);
        p.id[0] = f->m->unknown_id;
        p.end[0] = 1;
        w->from[0] = (ses_offset){ begin, end };
        return put_parts(k, w, &p, e);
    }
    if (n <= SES_BERT_SHORT) return put_short(f, w, k, n, e);
    parts p;
    return resolve(f, w, w->byte, n, NULL, &p, e) && put_parts(k, w, &p, e);
}

/* Past the characters that belong to the word at `at`: the next place where the text may be cut. */
static bool word_end(const ses_bert_fast *f, ses_bert_work *w, const char *text, size_t *at, size_t end,
                     ses_err *e)
{
    while (*at < end) {
        uint32_t cp = 0;
        size_t len = ses_utf8_decode(text + *at, end - *at, &cp);
        const ses_bert_char *c = look_up(f, w, cp, e);
        if (!c) return false;
        if (c->kind == SES_BERT_SPACE || c->kind == SES_BERT_ALONE) break;
        *at += len;
    }
    return true;
}

static void add_char(ses_bert_work *w, word *x, const ses_bert_char *c, size_t at, size_t len,
                     size_t max_chars)
{
    ses_offset from = { (uint32_t)at, (uint32_t)(at + len) };
    if (!x->n) x->begin = from.begin;
    x->end = from.end;
    for (size_t i = 0; i < c->n; i++) x->chars += ((uint8_t)c->byte[i] & 0xC0) != 0x80;
    if (x->chars > max_chars && x->n) return; /* unknown: what it is made of does not matter */
    memcpy(w->byte + x->n, c->byte, sizeof c->byte);
    for (size_t i = 0; i < c->n; i++) w->from[x->n + i] = from;
    x->n += c->n;
}

bool ses_bert_wide(const ses_bert_fast *f, ses_bert_work *w, ses_tokens *k, const char *text, size_t begin,
                   size_t end, ses_err *e)
{
    word x = { 0 };
    size_t start = begin; /* of what is not put yet */
    for (size_t at = begin; at < end;) {
        uint32_t cp = 0;
        size_t len = ses_utf8_decode(text + at, end - at, &cp);
        const ses_bert_char *c = look_up(f, w, cp, e);
        if (!c) return false;
        if (c->kind == SES_BERT_LETTER && x.n + sizeof c->byte <= SES_BERT_WORD) {
            add_char(w, &x, c, at, len, (size_t)f->m->max_chars);
        } else if (c->kind == SES_BERT_SPACE || c->kind == SES_BERT_ALONE) {
            if (!put_word(f, w, k, &x, e)) return false;
            if (c->kind == SES_BERT_ALONE) {
                add_char(w, &x, c, at, len, SIZE_MAX);
                if (!put_word(f, w, k, &x, e)) return false;
            }
            start = at + len;
        } else if (c->kind != SES_BERT_GONE) {
            if (!word_end(f, w, text, &at, end, e) || !ses_encode_exact(k, text, start, at, NULL, e))
                return false;
            x = (word){ 0 };
            start = at;
            continue;
        }
        at += len;
    }
    return put_word(f, w, k, &x, e) && ses_run_reserve(&k->run, SES_BERT_SLACK, e);
}
