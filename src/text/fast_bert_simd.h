/* Words to tokens with 16-byte vectors: the hot loop of fast_bert, included by the files that have the
 * flags. */
#include "fast_bert.h"

#include <immintrin.h>
#include <string.h>

/* Tokens of an entry, three at once and one too many; returns how many count. */
static inline size_t put_entry(ses_run *r, const ses_bert_entry *x, uint32_t at)
{
    __m128i places = _mm_cvtepu8_epi32(_mm_loadu_si32(x->place)), base = _mm_set1_epi32((int)at);
    __m128i begins = _mm_add_epi32(_mm_srli_epi32(places, 4), base);
    __m128i ends = _mm_add_epi32(_mm_and_si128(places, _mm_set1_epi32(15)), base);
    _mm_storeu_si128((__m128i *)(r->id + r->n), _mm_loadu_si128((const __m128i *)x->id));
    _mm_storeu_si128((__m128i *)(r->byte + r->n), _mm_unpacklo_epi32(begins, ends));
    _mm_storeu_si128((__m128i *)(r->byte + r->n + 2), _mm_unpackhi_epi32(begins, ends));
    _mm_storeu_si128((__m128i *)(r->word + r->n), _mm_set1_epi32((int)r->words));
    return x->n;
}

static inline int same(const ses_bert_entry *x, __m128i key)
{
    __m128i v = _mm_xor_si128(_mm_loadu_si128((const __m128i *)x->key), key);
    return _mm_testz_si128(v, v);
}

/* Found in the second place: it comes again, and goes to the first. */
static inline ses_bert_entry *promote(ses_bert_entry *bucket)
{
    __m256i a = _mm256_loadu_si256((const __m256i *)bucket);
    __m256i b = _mm256_loadu_si256((const __m256i *)(bucket + 1));
    _mm256_storeu_si256((__m256i *)bucket, b);
    _mm256_storeu_si256((__m256i *)(bucket + 1), a);
    return bucket;
}

static bool words(const ses_bert_fast *f, ses_bert_work *w, ses_tokens *k, const char *text, size_t base,
                  size_t n, ses_err *e)
{
    const __m128i iota = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 127);
    __m128i key[SES_BERT_BATCH];
    uint32_t slot[SES_BERT_BATCH];
    ses_run *r = &k->run;
    n = ses_bert_list(w, n);
    for (size_t i = 0; i < n; i += SES_BERT_BATCH) {
        size_t count = n - i < SES_BERT_BATCH ? n - i : SES_BERT_BATCH;
        for (size_t j = 0; j < count; j++) {
            size_t at = w->begin[i + j], len = (size_t)w->end[i + j] - at + 1;
            if (len > SES_BERT_SHORT) {
                slot[j] = ses_bert_long_key(f, w, j, at, len);
                continue;
            }
            __m128i v = _mm_and_si128(_mm_loadu_si128((const __m128i *)(w->low + at)),
                                      _mm_cmpgt_epi8(_mm_set1_epi8((char)len), iota));
            unsigned size = (unsigned)len | (_mm_movemask_epi8(v) ? 0x80 : 0);
            v = _mm_or_si128(v, _mm_slli_si128(_mm_cvtsi32_si128((int)size), 15));
            uint64_t h = ses_bert_hash(f, (uint64_t)_mm_cvtsi128_si64(v), (uint64_t)_mm_extract_epi64(v, 1));
            slot[j] = 2 * (uint32_t)(h >> (64 - SES_BERT_SMALL_BITS));
            _mm_prefetch((const char *)&w->small[slot[j]], _MM_HINT_T0);
            key[j] = v;
        }
        for (size_t j = 0; j < count; j++) {
            size_t at = w->begin[i + j], len = (size_t)w->end[i + j] - at + 1;
            ses_bert_entry *x = &w->small[slot[j]];
            if (len > SES_BERT_SHORT) {
                if (!ses_bert_put_long(f, w, k, text, base, at, len, slot[j], j, e)) return false;
            } else if (same(x, key[j]) || (same(x + 1, key[j]) && promote(x))) {
                r->n += put_entry(r, x, (uint32_t)(base + at));
                r->words++;
            } else if (!_mm_movemask_epi8(key[j])) {
                if (!ses_bert_miss(f, w, k, w->low + at, len, (uint32_t)(base + at), x, e)) return false;
            } else {
                char bytes[16];
                _mm_storeu_si128((__m128i *)bytes, key[j]);
                if (!ses_bert_odd(f, w, k, text, base + at, base + at + len, bytes, x, e)) return false;
            }
        }
    }
    return true;
}
