/* A cache entry of 32 bytes: a short word and up to three tokens. The caches have buckets of two entries:
 * a new word replaces the second, a word found again moves to the first. */
#ifndef SES_TEXT_WORD_CACHE_H
#define SES_TEXT_WORD_CACHE_H

#include "text/tokenizer_impl.h"

typedef struct ses_word_cache_entry {
    uint8_t key[16]; /* up to 15 bytes, zero-padded; the last byte holds the length and a tag */
    int32_t id[3];
    uint8_t range[3]; /* start (upper four bits) and end of each token */
    union {
        uint8_t n;      /* tokens */
        uint8_t layout; /* used by fast_words, whose entries may contain several words; see there */
    };
} ses_word_cache_entry;

_Static_assert(sizeof(ses_word_cache_entry) == 32, "an entry must be one vector");

#ifdef __AVX2__
#include <immintrin.h>

/* Append three tokens at once; the fourth entry written is surplus. words: added to the word index. The
 * caller updates the counts. */
static inline void ses_word_cache_emit(const ses_token_buf *r, const ses_word_cache_entry *x, uint32_t at,
                                       __m128i words)
{
    __m128i ranges = _mm_cvtepu8_epi32(_mm_loadu_si32(x->range)), base = _mm_set1_epi32((int)at);
    __m128i begins = _mm_add_epi32(_mm_srli_epi32(ranges, 4), base);
    __m128i ends = _mm_add_epi32(_mm_and_si128(ranges, _mm_set1_epi32(15)), base);
    _mm_storeu_si128((__m128i *)(r->id + r->n), _mm_loadu_si128((const __m128i *)x->id));
    _mm_storeu_si128((__m128i *)(r->byte_offset + r->n), _mm_unpacklo_epi32(begins, ends));
    _mm_storeu_si128((__m128i *)(r->byte_offset + r->n + 2), _mm_unpackhi_epi32(begins, ends));
    _mm_storeu_si128((__m128i *)(r->word_id + r->n), _mm_add_epi32(words, _mm_set1_epi32((int)r->n_words)));
}

static inline bool ses_word_cache_matches(const ses_word_cache_entry *x, __m128i key)
{
    __m128i v = _mm_xor_si128(_mm_loadu_si128((const __m128i *)x->key), key);
    return _mm_testz_si128(v, v);
}

/* Move an entry that was found again from the second to the first slot. */
static inline ses_word_cache_entry *ses_word_cache_promote(ses_word_cache_entry *bucket)
{
    __m256i a = _mm256_loadu_si256((const __m256i *)bucket);
    __m256i b = _mm256_loadu_si256((const __m256i *)(bucket + 1));
    _mm256_storeu_si256((__m256i *)bucket, b);
    _mm256_storeu_si256((__m256i *)(bucket + 1), a);
    return bucket;
}
#endif

#endif
