/* Fast path for byte-level BPE with AVX2: classification of bytes, and batched cache lookup. */
#include "fast_byte_bpe.h"
#include "word_store_emit.h"

#include <immintrin.h>

/* ---- masks ---- */

typedef struct pair { /* 64 bytes */
    __m256i a, b;
} pair;

static inline uint64_t bits(__m256i a, __m256i b)
{
    return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

/* Mask of bytes in [low, low + span). */
static inline __m256i in(__m256i v, char low, char span)
{
    __m256i x = _mm256_sub_epi8(v, _mm256_set1_epi8(low));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(x, _mm256_set1_epi8((char)(span - 1))), x);
}

static inline uint64_t in_both(pair v, char low, char span)
{
    return bits(in(v.a, low, span), in(v.b, low, span));
}

uint64_t ses_byte_bpe_classify_avx2(ses_byte_bpe_work *w, size_t n)
{
    const __m256i bit32 = _mm256_set1_epi8(32);
    uint64_t wide = 0;
    for (size_t i = 0; i < n; i += 64) {
        pair v = { _mm256_loadu_si256((const __m256i *)(w->text + i)),
                   _mm256_loadu_si256((const __m256i *)(w->text + i + 32)) };
        pair low = { _mm256_or_si256(v.a, bit32), _mm256_or_si256(v.b, bit32) };
        uint64_t inside = n - i < 64 ? ((uint64_t)1 << (n - i)) - 1 : ~(uint64_t)0,
                 non_ascii = bits(v.a, v.b);
        uint64_t is_space = in_both(v, ' ', 1);
        w->letter[i / 64] = in_both(low, 'a', 26) & ~non_ascii & inside;
        w->number[i / 64] = in_both(v, '0', 10) & inside;
        w->space[i / 64] = (is_space | in_both(v, 9, 5)) & inside;
        w->is_space[i / 64] = is_space & inside;
        w->apostrophe[i / 64] = in_both(v, '\'', 1) & inside;
        w->non_ascii[i / 64] = non_ascii;
        w->continuation[i / 64] = non_ascii ? in_both(v, (char)0x80, 64) : 0;
        wide |= (uint64_t)(non_ascii != 0) << i / 64;
    }
    return wide;
}

/* ---- words ---- */

/* One batch of lookups: keys, and the results so far. */
typedef struct batch {
    __m128i key[SES_BYTE_BPE_BATCH];       /* short words */
    uint64_t hash[SES_BYTE_BPE_BATCH];     /* long words */
    uint32_t slot[SES_BYTE_BPE_BATCH];     /* bucket in the cache */
    uint32_t position[SES_BYTE_BPE_BATCH]; /* position in the store; 0: none */
} batch;

static inline ses_string word_at(const ses_byte_bpe_work *w, size_t i)
{
    return (ses_string){ w->text + w->begin[i], (size_t)w->begin[i + 1] - w->begin[i] };
}

/* Compute keys and hashes of n words from index `from` on; returns whether some are long. */
static inline bool hash_words(const ses_byte_bpe_fast *f, const ses_byte_bpe_work *w, batch *b, size_t from,
                              size_t n)
{
    const __m128i iota = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 127);
    bool any = false;
    for (size_t j = 0; j < n; j++) {
        ses_string word = word_at(w, from + j);
        if (word.n > SES_BYTE_BPE_SHORT) {
            any = true;
            if (word.n > SES_WORD_STORE_LONG) continue;
            b->hash[j] = ses_word_store_hash(&f->hash, word.p, word.n, 0);
            __builtin_prefetch(ses_word_store_bucket(&w->store, b->hash[j]));
            continue;
        }
        __m128i v = _mm_and_si128(_mm_loadu_si128((const __m128i *)word.p),
                                  _mm_cmpgt_epi8(_mm_set1_epi8((char)word.n), iota));
        v = _mm_or_si128(v, _mm_slli_si128(_mm_cvtsi32_si128((int)word.n), 15));
        uint64_t h =
            ses_word_hash16(&f->hash, (uint64_t)_mm_cvtsi128_si64(v), (uint64_t)_mm_extract_epi64(v, 1));
        b->slot[j] = 2 * (uint32_t)(h >> (64 - SES_BYTE_BPE_CACHE_BITS));
        _mm_prefetch((const char *)&w->cache[b->slot[j]], _MM_HINT_T0);
        b->key[j] = v;
    }
    return any;
}

/* Find the store positions of the batch and prefetch their records. */
static void find_positions(const ses_byte_bpe_work *w, batch *b, size_t from, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        size_t len = word_at(w, from + j).n;
        const ses_word_cache_entry *x = &w->cache[b->slot[j]];
        b->position[j] = len <= SES_BYTE_BPE_SHORT    ? x->n == SES_BYTE_BPE_IN_STORE ? (uint32_t)x->id[0] : 0
                         : len <= SES_WORD_STORE_LONG ? ses_word_store_find(&w->store, b->hash[j])
                                                      : 0;
        if (b->position[j]) ses_word_store_prefetch(&w->store, b->position[j]);
    }
}

bool ses_byte_bpe_encode_words_avx2(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_encode_ctx *k,
                                    size_t base, size_t count, ses_err *e)
{
    batch b;
    memset(b.slot, 0, sizeof b.slot);
    ses_token_buf *r = &k->tokens;
    for (size_t i = 0; i < count; i += SES_BYTE_BPE_BATCH) {
        size_t n = count - i < SES_BYTE_BPE_BATCH ? count - i : SES_BYTE_BPE_BATCH;
        bool any = hash_words(f, w, &b, i, n);
        if (any || w->prefetch_store) find_positions(w, &b, i, n);
        w->prefetch_store = false;
        for (size_t j = 0; j < n; j++) {
            ses_string word = word_at(w, i + j);
            uint32_t at = (uint32_t)(base + w->begin[i + j]);
            ses_word_cache_entry *x = NULL;
            const ses_word_record *record = NULL;
            if (word.n <= SES_BYTE_BPE_SHORT) {
                x = &w->cache[b.slot[j]];
                if (ses_word_cache_matches(x, b.key[j]) ||
                    (ses_word_cache_matches(x + 1, b.key[j]) && ses_word_cache_promote(x))) {
                    if (x->n < SES_BYTE_BPE_IN_STORE) {
                        ses_word_cache_emit(r, x, at, _mm_setzero_si128());
                        r->n += x->n;
                        r->n_words++;
                        continue;
                    }
                    w->prefetch_store = true;
                    record = ses_word_store_at(&w->store, (uint32_t)x->id[0]);
                }
            } else if (word.n <= SES_WORD_STORE_LONG) {
                record = ses_word_store_at(&w->store, b.position[j]);
                if (record && !ses_word_record_matches(record, word.p, word.n, 0)) record = NULL;
            }
            if (record)
                ses_word_record_emit(r, record, at);
            else if (!ses_byte_bpe_encode_miss(f, w, k, word, at, x, b.hash[j], e))
                return false;
        }
    }
    return true;
}
