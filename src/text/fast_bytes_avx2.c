#include "fast_bytes.h"

#include <immintrin.h>

/* ---- masks ---- */

typedef struct pair { /* 64 bytes */
    __m256i a, b;
} pair;

static inline uint64_t bits(__m256i a, __m256i b)
{
    return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

/* Bytes from low on, `span` of them. */
static inline __m256i in(__m256i v, char low, char span)
{
    __m256i x = _mm256_sub_epi8(v, _mm256_set1_epi8(low));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(x, _mm256_set1_epi8((char)(span - 1))), x);
}

static inline uint64_t in_both(pair v, char low, char span)
{
    return bits(in(v.a, low, span), in(v.b, low, span));
}

uint64_t ses_bytes_sort_avx2(ses_bytes_work *w, size_t n)
{
    const __m256i bit32 = _mm256_set1_epi8(32);
    uint64_t wide = 0;
    for (size_t i = 0; i < n; i += 64) {
        pair v = { _mm256_loadu_si256((const __m256i *)(w->text + i)),
                   _mm256_loadu_si256((const __m256i *)(w->text + i + 32)) };
        pair low = { _mm256_or_si256(v.a, bit32), _mm256_or_si256(v.b, bit32) };
        uint64_t inside = n - i < 64 ? ((uint64_t)1 << (n - i)) - 1 : ~(uint64_t)0, high = bits(v.a, v.b);
        uint64_t blank = in_both(v, ' ', 1);
        w->letter[i / 64] = in_both(low, 'a', 26) & ~high & inside;
        w->number[i / 64] = in_both(v, '0', 10) & inside;
        w->space[i / 64] = (blank | in_both(v, 9, 5)) & inside;
        w->blank[i / 64] = blank & inside;
        w->quote[i / 64] = in_both(v, '\'', 1) & inside;
        w->inner[i / 64] = high ? in_both(v, (char)0x80, 64) : 0;
        wide |= (uint64_t)(high != 0) << i / 64;
    }
    return wide;
}

/* ---- words ---- */

/* Tokens of an entry, three at once and one too many. */
static inline void put_entry(ses_run *r, const ses_bytes_entry *x, uint32_t at)
{
    __m128i places = _mm_cvtepu8_epi32(_mm_loadu_si32(x->place)), base = _mm_set1_epi32((int)at);
    __m128i begins = _mm_add_epi32(_mm_srli_epi32(places, 4), base);
    __m128i ends = _mm_add_epi32(_mm_and_si128(places, _mm_set1_epi32(15)), base);
    _mm_storeu_si128((__m128i *)(r->id + r->n), _mm_loadu_si128((const __m128i *)x->id));
    _mm_storeu_si128((__m128i *)(r->byte + r->n), _mm_unpacklo_epi32(begins, ends));
    _mm_storeu_si128((__m128i *)(r->byte + r->n + 2), _mm_unpackhi_epi32(begins, ends));
    _mm_storeu_si128((__m128i *)(r->word + r->n), _mm_set1_epi32((int)r->words));
    r->n += x->n;
    r->words++;
}

static inline bool same(const ses_bytes_entry *x, __m128i key)
{
    __m128i v = _mm_xor_si128(_mm_loadu_si128((const __m128i *)x->key), key);
    return _mm_testz_si128(v, v);
}

/* Found in the second place: it comes again, and goes to the first. */
static inline ses_bytes_entry *promote(ses_bytes_entry *bucket)
{
    __m256i a = _mm256_loadu_si256((const __m256i *)bucket),
            b = _mm256_loadu_si256((const __m256i *)(bucket + 1));
    _mm256_storeu_si256((__m256i *)bucket, b);
    _mm256_storeu_si256((__m256i *)(bucket + 1), a);
    return bucket;
}

bool ses_bytes_words_avx2(const ses_bytes_fast *f, ses_bytes_work *w, ses_tokens *k, size_t base,
                          size_t count, ses_err *e)
{
    const __m128i iota = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 127);
    __m128i key[SES_BYTES_BATCH];
    uint32_t slot[SES_BYTES_BATCH];
    ses_run *r = &k->run;
    for (size_t i = 0; i < count; i += SES_BYTES_BATCH) {
        size_t batch = count - i < SES_BYTES_BATCH ? count - i : SES_BYTES_BATCH;
        for (size_t j = 0; j < batch; j++) {
            size_t at = w->begin[i + j], len = (size_t)w->begin[i + j + 1] - at;
            if (len > SES_BYTES_SHORT) {
                slot[j] = ses_bytes_long_key(f, w, j, at, len);
                continue;
            }
            __m128i v = _mm_and_si128(_mm_loadu_si128((const __m128i *)(w->text + at)),
                                      _mm_cmpgt_epi8(_mm_set1_epi8((char)len), iota));
            v = _mm_or_si128(v, _mm_slli_si128(_mm_cvtsi32_si128((int)len), 15));
            uint64_t h =
                ses_word_hash16(&f->hash, (uint64_t)_mm_cvtsi128_si64(v), (uint64_t)_mm_extract_epi64(v, 1));
            slot[j] = 2 * (uint32_t)(h >> (64 - SES_BYTES_SMALL_BITS));
            _mm_prefetch((const char *)&w->small[slot[j]], _MM_HINT_T0);
            key[j] = v;
        }
        for (size_t j = 0; j < batch; j++) {
            size_t at = w->begin[i + j], len = (size_t)w->begin[i + j + 1] - at;
            ses_bytes_entry *x = &w->small[slot[j]];
            bool ok = true;
            if (len > SES_BYTES_SHORT)
                ok = ses_bytes_put_long(f, w, k, base, at, len, slot[j], j, e);
            else if (same(x, key[j]) || (same(x + 1, key[j]) && promote(x))) {
                if (x->n < SES_BYTES_ELSEWHERE)
                    put_entry(r, x, (uint32_t)(base + at));
                else
                    ok = ses_bytes_far(f, w, k, w->text + at, len, (uint32_t)(base + at), e);
            } else
                ok = ses_bytes_miss(f, w, k, w->text + at, len, (uint32_t)(base + at), x, e);
            if (!ok) return false;
        }
    }
    return true;
}
