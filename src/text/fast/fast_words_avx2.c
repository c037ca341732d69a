/* Fast path for word-local pipelines with AVX2: finding spaces, and batched cache lookup. */
#include "fast_words.h"
#include "word_store_emit.h"

#include <immintrin.h>
#include <string.h>

uint64_t ses_words_spaces_avx2(const char *p)
{
    const __m256i space = _mm256_set1_epi8(' ');
    __m256i a = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)p), space);
    __m256i b = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(p + 32)), space);
    return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

/* Words before each of three tokens, indexed by bits 2-4 of the layout. */
static const int32_t before[8][4] = {
    { 0, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 }, { 0, 1, 1 }, { 0, 0, 2 }, { 0, 1, 2 }, { 0, 0, 3 }, { 0, 1, 3 },
};

static inline void put_entry(ses_token_buf *r, const ses_word_cache_entry *x, uint32_t at)
{
    ses_word_cache_emit(r, x, at, _mm_loadu_si128((const __m128i *)before[x->layout >> 2 & 7]));
    r->n += x->layout & 3;
    r->n_words += x->layout >> 5 & 3;
}

static inline __m128i load(const char *text, size_t at, size_t len, size_t n)
{
    const __m128i iota = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 127);
    if (at + 16 <= n)
        return _mm_and_si128(_mm_loadu_si128((const __m128i *)(text + at)),
                             _mm_cmpgt_epi8(_mm_set1_epi8((char)len), iota));
    char rest[16] = { 0 };
    memcpy(rest, text + at, len);
    return _mm_loadu_si128((const __m128i *)rest);
}

/* One batch of lookups: keys, and the results so far. */
typedef struct batch {
    __m128i key[SES_WORDS_BATCH];       /* short chunks */
    uint64_t hash[SES_WORDS_BATCH];     /* long chunks */
    uint32_t slot[SES_WORDS_BATCH];     /* bucket in the cache */
    uint32_t position[SES_WORDS_BATCH]; /* position in the store; 0: none */
} batch;

/* Compute keys and hashes of n chunks from index `from` on; returns whether some are long. */
static inline bool hash_chunks(const ses_words_fast *f, const ses_words_work *w, const char *text,
                               const uint32_t ends[2], batch *b, size_t from, size_t n)
{
    bool any = false;
    for (size_t j = 0; j < n; j++) {
        uint32_t at = w->chunk_start[from + j];
        size_t len = w->chunk_start[from + j + 1] - at;
        ses_chunk_position position = ses_chunk_position_of(w, at, ends);
        if (len > SES_WORDS_SHORT) {
            any = true;
            if (len > SES_WORD_STORE_LONG) continue;
            b->hash[j] = ses_word_store_hash(
                &f->hash, text + at, len, ses_words_long_tag(f, w, at, w->chunk_start[from + j + 1], ends));
            __builtin_prefetch(ses_word_store_bucket(&w->store, b->hash[j]));
            continue;
        }
        __m128i v = load(text, at, len, w->n);
        v = _mm_or_si128(v, _mm_slli_si128(_mm_cvtsi32_si128(ses_words_tag(len, position)), 15));
        uint64_t h =
            ses_word_hash16(&f->hash, (uint64_t)_mm_cvtsi128_si64(v), (uint64_t)_mm_extract_epi64(v, 1));
        b->slot[j] = 2 * (uint32_t)(h >> (64 - SES_WORDS_CACHE_BITS));
        _mm_prefetch((const char *)&w->cache[b->slot[j]], _MM_HINT_T0);
        b->key[j] = v;
    }
    return any;
}

/* Find the store positions of the batch and prefetch their records. */
static void find_positions(const ses_words_work *w, batch *b, size_t from, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        size_t len = w->chunk_start[from + j + 1] - w->chunk_start[from + j];
        const ses_word_cache_entry *x = &w->cache[b->slot[j]];
        b->position[j] = len <= SES_WORDS_SHORT ? x->layout & SES_WORDS_IN_STORE ? (uint32_t)x->id[0] : 0
                         : len <= SES_WORD_STORE_LONG ? ses_word_store_find(&w->store, b->hash[j])
                                                      : 0;
        if (b->position[j]) ses_word_store_prefetch(&w->store, b->position[j]);
    }
}

enum { MAX_BATCH_TOKENS = 3 * SES_WORDS_BATCH + SES_WORDS_SLACK }; /* capacity for a batch of entries */

static inline bool emit_record(const ses_words_fast *f, const ses_word_record *x, ses_encode_ctx *k,
                               const char *text, uint32_t at, ses_err *e)
{
    if (!ses_token_buf_reserve(&k->tokens, x->n + (size_t)MAX_BATCH_TOKENS, e)) return false;
    if (x->surface) return ses_words_put_surface(f, x, k, text, at, e);
    ses_word_record_emit(&k->tokens, x, at);
    return true;
}

bool ses_words_put_avx2(const ses_words_fast *f, ses_words_work *w, ses_encode_ctx *k, const char *text,
                        const uint32_t ends[2], size_t from, size_t count, bool *dependent, ses_err *e)
{
    batch b;
    memset(b.slot, 0, sizeof b.slot);
    for (size_t i = from; i < count && !*dependent; i += SES_WORDS_BATCH) {
        size_t n = count - i < SES_WORDS_BATCH ? count - i : SES_WORDS_BATCH;
        bool any = hash_chunks(f, w, text, ends, &b, i, n);
        if (any || w->prefetch_store) find_positions(w, &b, i, n);
        w->prefetch_store = false;
        if (!ses_token_buf_reserve(&k->tokens, MAX_BATCH_TOKENS, e)) return false;
        for (size_t j = 0; j < n && !*dependent; j++) {
            uint32_t at = w->chunk_start[i + j];
            size_t len = w->chunk_start[i + j + 1] - at;
            ses_word_cache_entry *x = NULL;
            const ses_word_record *record = NULL;
            if (len <= SES_WORDS_SHORT) {
                x = &w->cache[b.slot[j]];
                if (ses_word_cache_matches(x, b.key[j]) ||
                    (ses_word_cache_matches(x + 1, b.key[j]) && ses_word_cache_promote(x))) {
                    if (!(x->layout & SES_WORDS_IN_STORE)) {
                        put_entry(&k->tokens, x, at);
                        continue;
                    }
                    w->prefetch_store = true;
                    record = ses_word_store_at(&w->store, (uint32_t)x->id[0]);
                }
            } else if (len <= SES_WORD_STORE_LONG) {
                record = ses_word_store_at(&w->store, b.position[j]);
                if (record &&
                    !ses_word_record_matches(record, text + at, len,
                                             ses_words_long_tag(f, w, at, w->chunk_start[i + j + 1], ends)))
                    record = NULL;
            }
            bool ok = record
                          ? emit_record(f, record, k, text, at, e)
                          : ses_words_encode_miss(f, w, k, text, ends, i + j, x, b.hash[j], dependent, e) &&
                                ses_token_buf_reserve(&k->tokens, MAX_BATCH_TOKENS, e);
            if (!ok) return false;
        }
    }
    return true;
}
