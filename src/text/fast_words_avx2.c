#include "fast_words.h"

#include <immintrin.h>
#include <string.h>

uint64_t ses_words_spaces_avx2(const char *p)
{
    const __m256i space = _mm256_set1_epi8(' ');
    __m256i a = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)p), space);
    __m256i b = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(p + 32)), space);
    return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

/* Words before each of three tokens, by bits 2-4 of the shape. */
static const int32_t before[8][4] = {
    { 0, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 }, { 0, 1, 1 }, { 0, 0, 2 }, { 0, 1, 2 }, { 0, 0, 3 }, { 0, 1, 3 },
};

/* Tokens of an entry, three at once and one too many. */
static inline void put_entry(ses_run *r, const ses_words_entry *x, uint32_t at)
{
    __m128i places = _mm_cvtepu8_epi32(_mm_loadu_si32(x->place)), base = _mm_set1_epi32((int)at);
    __m128i begins = _mm_add_epi32(_mm_srli_epi32(places, 4), base);
    __m128i ends = _mm_add_epi32(_mm_and_si128(places, _mm_set1_epi32(15)), base);
    __m128i words = _mm_loadu_si128((const __m128i *)before[x->shape >> 2 & 7]);
    _mm_storeu_si128((__m128i *)(r->id + r->n), _mm_loadu_si128((const __m128i *)x->id));
    _mm_storeu_si128((__m128i *)(r->byte + r->n), _mm_unpacklo_epi32(begins, ends));
    _mm_storeu_si128((__m128i *)(r->byte + r->n + 2), _mm_unpackhi_epi32(begins, ends));
    _mm_storeu_si128((__m128i *)(r->word + r->n), _mm_add_epi32(words, _mm_set1_epi32((int)r->words)));
    r->n += x->shape & 3;
    r->words += x->shape >> 5 & 3;
}

static inline bool same(const ses_words_entry *x, __m128i key)
{
    __m128i v = _mm_xor_si128(_mm_loadu_si128((const __m128i *)x->key), key);
    return _mm_testz_si128(v, v);
}

/* Found in the second place: it comes again, and goes to the first. */
static inline ses_words_entry *promote(ses_words_entry *bucket)
{
    __m256i a = _mm256_loadu_si256((const __m256i *)bucket),
            b = _mm256_loadu_si256((const __m256i *)(bucket + 1));
    _mm256_storeu_si256((__m256i *)bucket, b);
    _mm256_storeu_si256((__m256i *)(bucket + 1), a);
    return bucket;
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

bool ses_words_put_avx2(const ses_words_fast *f, ses_words_work *w, ses_tokens *k, const char *text,
                        const uint32_t ends[2], size_t from, size_t count, bool *odd, ses_err *e)
{
    __m128i key[SES_WORDS_BATCH];
    uint32_t slot[SES_WORDS_BATCH];
    for (size_t i = from; i < count; i += SES_WORDS_BATCH) {
        size_t batch = count - i < SES_WORDS_BATCH ? count - i : SES_WORDS_BATCH;
        for (size_t j = 0; j < batch; j++) {
            uint32_t at = w->cut[i + j];
            size_t len = w->cut[i + j + 1] - at;
            ses_words_place place = ses_words_place_of(at, ends);
            if (len > SES_WORDS_SHORT) {
                slot[j] = ses_words_long_key(f, w, j, text + at, len, place);
                continue;
            }
            __m128i v = load(text, at, len, w->n);
            v = _mm_or_si128(v, _mm_slli_si128(_mm_cvtsi32_si128(ses_words_tag(len, place)), 15));
            uint64_t h =
                ses_word_hash16(&f->hash, (uint64_t)_mm_cvtsi128_si64(v), (uint64_t)_mm_extract_epi64(v, 1));
            slot[j] = 2 * (uint32_t)(h >> (64 - SES_WORDS_SMALL_BITS));
            _mm_prefetch((const char *)&w->small[slot[j]], _MM_HINT_T0);
            key[j] = v;
        }
        if (!ses_run_reserve(&k->run, 3 * SES_WORDS_BATCH + SES_WORDS_SLACK, e)) return false;
        for (size_t j = 0; j < batch && !*odd; j++) {
            uint32_t at = w->cut[i + j];
            size_t len = w->cut[i + j + 1] - at;
            ses_words_entry *x = &w->small[slot[j]];
            if (len <= SES_WORDS_SHORT && (same(x, key[j]) || (same(x + 1, key[j]) && promote(x))) &&
                !(x->shape & SES_WORDS_ELSEWHERE)) {
                put_entry(&k->run, x, at);
                continue;
            }
            bool ok = len > SES_WORDS_SHORT
                          ? ses_words_put_long(f, w, k, text, ends, i + j, slot[j], j, odd, e)
                      : same(x, key[j]) ? ses_words_far(f, w, k, text, ends, i + j, odd, e)
                                        : ses_words_miss(f, w, k, text, ends, i + j, x, odd, e);
            if (!ok || !ses_run_reserve(&k->run, 3 * SES_WORDS_BATCH + SES_WORDS_SLACK, e)) return false;
        }
        if (*odd) return true;
    }
    return true;
}
