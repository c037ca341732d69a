/* fast_words: chunks that are not in the small cache. */
#include "fast_words.h"

#include <string.h>

static uint32_t large_hash(const ses_words_fast *f, const char *key)
{
    uint64_t h = (uint8_t)key[63], a[2];
    memcpy(a, key + 48, sizeof a);
    h = ses_word_hash16(&f->hash, a[0] ^ h, a[1]);
    for (size_t i = 0, n = (uint8_t)key[63]; i < n && i < 48; i += 16) {
        memcpy(a, key + i, sizeof a);
        h = ses_word_hash16(&f->hash, a[0] ^ h, a[1]);
    }
    return 2 * (uint32_t)(h >> (64 - SES_WORDS_LARGE_BITS));
}

uint32_t ses_words_long_key(const ses_words_fast *f, ses_words_work *w, size_t j, const char *p, size_t len,
                            ses_words_place place)
{
    char *key = w->key[j];
    if (len > SES_WORDS_LONG) return 0;
    memset(key, 0, 64);
    memcpy(key, p, len);
    key[62] = (char)place;
    key[63] = (char)len;
    uint32_t slot = large_hash(f, key);
    __builtin_prefetch(w->large[slot].key);
    __builtin_prefetch(w->large[slot].id);
    __builtin_prefetch(w->large[slot].begin);
    return slot;
}

/* ---- keeping ---- */

/* Tokens of the run that a chunk gave: from n on, of words from `words` on. */
typedef struct given {
    const char *text; /* all of it */
    uint32_t begin, end, words;
    size_t n, marks;
} given;

static bool fits_small(const given *g, const ses_tokens *k)
{
    return g->end - g->begin <= SES_WORDS_SHORT && k->run.n - g->n <= 3 && k->n_mark == g->marks;
}

/* A new chunk takes the second place: the first is for those that have come again. */
static ses_words_entry *keep_small(ses_words_entry *bucket, const given *g, const ses_run *r,
                                   ses_words_place place)
{
    size_t len = g->end - g->begin, n = r->n - g->n;
    bucket += bucket->key[15] != 0;
    memset(bucket, 0, sizeof *bucket);
    memcpy(bucket->key, g->text + g->begin, len);
    bucket->key[15] = ses_words_tag(len, place);
    bucket->shape = (uint8_t)(n | (r->words - g->words) << 5);
    for (size_t i = 0; i < n; i++) {
        ses_offset o = r->byte[g->n + i];
        uint32_t word = (uint32_t)r->word[g->n + i] - g->words;
        bucket->id[i] = r->id[g->n + i];
        bucket->place[i] = (uint8_t)((o.begin - g->begin) << 4 | (o.end - g->begin));
        if (i) bucket->shape |= (uint8_t)(word << (i == 1 ? 2 : 3));
    }
    return bucket;
}

/* Tokens called by a text can be kept when that is what stands there. */
static bool keep_large(ses_words_large *bucket, const given *g, const ses_tokens *k, const char *key)
{
    const ses_run *r = &k->run;
    size_t n = r->n - g->n, len = g->end - g->begin;
    if (n > SES_WORDS_IDS || len > SES_WORDS_LONG || r->words - g->words > UINT8_MAX) return false;
    for (size_t i = g->marks; i < k->n_mark; i++) {
        const ses_mark_token *m = &k->mark[i];
        ses_offset o = r->byte[m->token];
        if (m->added || m->n != o.end - o.begin ||
            memcmp(k->surface.data + m->begin, g->text + o.begin, m->n))
            return false;
    }
    bucket[1] = bucket[0];
    memset(bucket, 0, sizeof *bucket);
    memcpy(bucket->key, key, 64);
    bucket->n = (uint8_t)n;
    bucket->words = (uint8_t)(r->words - g->words);
    bucket->surface = k->n_mark > g->marks;
    for (size_t i = 0; i < n; i++) {
        bucket->id[i] = r->id[g->n + i];
        bucket->begin[i] = (uint8_t)(r->byte[g->n + i].begin - g->begin);
        bucket->end[i] = (uint8_t)(r->byte[g->n + i].end - g->begin);
        bucket->word[i] = (uint8_t)((uint32_t)r->word[g->n + i] - g->words);
    }
    return true;
}

/* Whether all tokens lie in the chunk, as they do but where ranges are one character too early. */
static bool is_inside(const given *g, const ses_run *r)
{
    for (size_t i = g->n; i < r->n; i++)
        if (r->byte[i].begin < g->begin || r->byte[i].end > g->end || r->byte[i].begin > r->byte[i].end)
            return false;
    return true;
}

/* A space and calm ASCII: no normalizer has anything to look at across its ends. */
static bool is_plain(const ses_words_fast *f, const char *p, size_t n)
{
    size_t i = 1;
    while (i < n && f->calm[(uint8_t)p[i]] == 1) i++;
    return !f->makes_blanks && *p == ' ' && i == n;
}

/* Whether chunk g is one for itself wherever it stands (*alone) and whether it is none even here (*odd). */
static bool look_around(const ses_words_fast *f, ses_words_work *w, const given *g, const uint32_t ends[2],
                        bool *alone, bool *odd, ses_err *e)
{
    ses_string chunk = { g->text + g->begin, g->end - g->begin };
    bool left = g->begin > ends[0], right = g->end < ends[1], begins = true;
    *alone = true;
    if (!f->looks_around || is_plain(f, chunk.p, chunk.n)) return true;
    if (!left && !right && chunk.n > SES_WORDS_LONG) return true; /* all there is, and not to be kept */
    if (!ses_words_joins(f, w, chunk, left, true, alone, e)) return false;
    *odd = !*alone && right;
    if (*alone || right || !left) return true;
    if (!ses_words_joins(f, w, chunk, true, false, &begins, e)) return false; /* nothing stands behind it */
    *odd = !begins;
    return true;
}

static bool put_new(const ses_words_fast *f, ses_words_work *w, ses_tokens *k, const char *text,
                    const uint32_t ends[2], size_t i, ses_words_entry *small, ses_words_large *large,
                    const char *key, bool *odd, ses_err *e)
{
    given g = { text, w->cut[i], w->cut[i + 1], k->run.words, k->run.n, k->n_mark };
    ses_words_place place = ses_words_place_of(g.begin, ends);
    bool alone;
    if (!look_around(f, w, &g, ends, &alone, odd, e)) return false;
    if (*odd) return true;
    bool ok =
        f->spm ? ses_words_spm_chunk(f, w, k, text, g.begin, g.end, place == SES_WORDS_INNER, &alone, odd, e)
               : ses_encode_exact(k, text, g.begin, g.end, NULL, e);
    if (!ok) return false;
    if (*odd || !alone || !is_inside(&g, &k->run)) return true;
    if (small && fits_small(&g, k)) {
        keep_small(small, &g, &k->run, place);
    } else if (key && keep_large(large ? large : &w->large[large_hash(f, key)], &g, k, key) && small) {
        given none = g;
        none.n = k->run.n;
        keep_small(small, &none, &k->run, place)->shape = SES_WORDS_ELSEWHERE;
    }
    return true;
}

/* ---- putting ---- */

static bool put_large(const ses_words_fast *f, const ses_words_large *x, ses_tokens *k, const char *text,
                      uint32_t at, ses_err *e)
{
    ses_run *r = &k->run;
    if (!ses_run_reserve(r, x->n, e)) return false;
    for (size_t i = 0; i < x->n; i++) {
        if (x->surface && x->id[i] == f->surface &&
            !ses_mark_put(k, text + at + x->begin[i], (size_t)x->end[i] - x->begin[i], false, e))
            return false;
        r->id[r->n] = x->id[i];
        r->byte[r->n] = (ses_offset){ at + x->begin[i], at + x->end[i] };
        r->word[r->n++] = (int32_t)(r->words + x->word[i]);
    }
    r->words += x->words;
    return true;
}

bool ses_words_put_long(const ses_words_fast *f, ses_words_work *w, ses_tokens *k, const char *text,
                        const uint32_t ends[2], size_t i, uint32_t slot, size_t j, bool *odd, ses_err *e)
{
    uint32_t at = w->cut[i];
    if (w->cut[i + 1] - at > SES_WORDS_LONG) return put_new(f, w, k, text, ends, i, NULL, NULL, NULL, odd, e);
    ses_words_large *x = &w->large[slot];
    const char *key = w->key[j];
    if (memcmp(x->key, key, 64) && memcmp((++x)->key, key, 64))
        return put_new(f, w, k, text, ends, i, NULL, x - 1, key, odd, e);
    return put_large(f, x, k, text, at, e);
}

bool ses_words_miss(const ses_words_fast *f, ses_words_work *w, ses_tokens *k, const char *text,
                    const uint32_t ends[2], size_t i, ses_words_entry *bucket, bool *odd, ses_err *e)
{
    char key[64] = { 0 };
    size_t len = w->cut[i + 1] - w->cut[i];
    memcpy(key, text + w->cut[i], len);
    key[62] = (char)ses_words_place_of(w->cut[i], ends);
    key[63] = (char)len;
    return put_new(f, w, k, text, ends, i, bucket, NULL, key, odd, e);
}

bool ses_words_far(const ses_words_fast *f, ses_words_work *w, ses_tokens *k, const char *text,
                   const uint32_t ends[2], size_t i, bool *odd, ses_err *e)
{
    size_t len = w->cut[i + 1] - w->cut[i];
    uint32_t slot = ses_words_long_key(f, w, 0, text + w->cut[i], len, ses_words_place_of(w->cut[i], ends));
    return ses_words_put_long(f, w, k, text, ends, i, slot, 0, odd, e);
}

/* ---- one by one ---- */

bool ses_words_put_ref(const ses_words_fast *f, ses_words_work *w, ses_tokens *k, const char *text,
                       const uint32_t ends[2], size_t from, size_t count, bool *odd, ses_err *e)
{
    ses_run *r = &k->run;
    for (size_t i = from; i < count && !*odd; i++) {
        uint32_t at = w->cut[i];
        size_t len = w->cut[i + 1] - at;
        bool ok = true;
        if (len > SES_WORDS_SHORT) {
            if (!ses_words_far(f, w, k, text, ends, i, odd, e)) return false;
            continue;
        }
        uint64_t key[2] = { 0 };
        memcpy(key, text + at, len);
        ((uint8_t *)key)[15] = ses_words_tag(len, ses_words_place_of(at, ends));
        ses_words_entry *x =
            &w->small[2 * (ses_word_hash16(&f->hash, key[0], key[1]) >> (64 - SES_WORDS_SMALL_BITS))];
        if (memcmp(x->key, key, 16) && memcmp((++x)->key, key, 16))
            ok = ses_words_miss(f, w, k, text, ends, i, x - 1, odd, e);
        else if (x->shape & SES_WORDS_ELSEWHERE)
            ok = ses_words_far(f, w, k, text, ends, i, odd, e);
        else {
            ok = ses_run_reserve(r, 3, e);
            for (unsigned j = 0; ok && j < (x->shape & 3u); j++) {
                unsigned word = j == 0 ? 0 : j == 1 ? x->shape >> 2 & 1u : x->shape >> 3 & 3u;
                r->id[r->n] = x->id[j];
                r->byte[r->n] = (ses_offset){ at + (x->place[j] >> 4), at + (x->place[j] & 15u) };
                r->word[r->n++] = (int32_t)(r->words + word);
            }
            r->words += x->shape >> 5 & 3u;
        }
        if (!ok) return false;
    }
    return true;
}
