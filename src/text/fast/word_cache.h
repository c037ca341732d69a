/* A short word and its tokens in 32 bytes: what the shortcuts' caches hold, in buckets of two. A new word
 * takes the second place of its bucket, one that comes again the first. */
#ifndef SES_TEXT_SMALL_ENTRY_H
#define SES_TEXT_SMALL_ENTRY_H

#include "text/tokenizer_impl.h"

typedef struct ses_word_cache_entry {
    uint8_t key[16]; /* up to 15 bytes; in the last the length, and what else tells words apart */
    int32_t id[3];
    uint8_t range[3]; /* of each token: where it begins (upper four bits) and ends */
    union {
        uint8_t n;     /* tokens */
        uint8_t shape; /* of fast_words, whose entries may be of several words: see there */
    };
} ses_word_cache_entry;

_Static_assert(sizeof(ses_word_cache_entry) == 32, "an entry is one vector");

#ifdef __AVX2__
#include <immintrin.h>

/* The tokens at the run's end, three at once and one too many; words: added to the run's count. The caller
 * counts both on. */
static inline void ses_word_cache_emit(const ses_token_buf *r, const ses_word_cache_entry *x, uint32_t at,
                                       __m128i words)
{
    __m128i places = _mm_cvtepu8_epi32(_mm_loadu_si32(x->range)), base = _mm_set1_epi32((int)at);
    __m128i begins = _mm_add_epi32(_mm_srli_epi32(places, 4), base);
    __m128i ends = _mm_add_epi32(_mm_and_si128(places, _mm_set1_epi32(15)), base);
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

/* Found in the second place: it comes again, and goes to the first. */
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
