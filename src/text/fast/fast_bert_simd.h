/* Hot loop of the BERT fast path with 16-byte vectors: words to tokens. Included by the files compiled
 * with the required flags. */
#include "fast_bert.h"

#include <immintrin.h>
#include <string.h>

/* Key of a piece for the large cache: its bytes, zeros, and the length with the top bit set for non-ASCII.
 * Returns the bucket, which is prefetched. */
static inline uint32_t large_key(const ses_bert_fast *f, const ses_bert_work *w, char *key, __m256i a,
                                 __m128i b, unsigned size)
{
    b = _mm_or_si128(b, _mm_slli_si128(_mm_cvtsi32_si128((int)size), 15));
    _mm256_storeu_si256((__m256i *)key, a);
    _mm_storeu_si128((__m128i *)(key + 32), b);
    uint32_t slot = ses_bert_large_slot(f, key);
    _mm_prefetch((const char *)w->large[slot].key, _MM_HINT_T0);
    _mm_prefetch((const char *)&w->large[slot].id[4], _MM_HINT_T0);
    return slot;
}

static inline uint32_t long_key(const ses_bert_fast *f, ses_bert_work *w, size_t j, size_t at, size_t len)
{
    const __m256i iota = _mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
                                          19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
    __m256i a = _mm256_loadu_si256((const __m256i *)(w->lowered + at));
    __m128i b = _mm_loadu_si128((const __m128i *)(w->lowered + at + 32));
    a = _mm256_and_si256(a, _mm256_cmpgt_epi8(_mm256_set1_epi8((char)len), iota));
    b = _mm_and_si128(b, _mm_cmpgt_epi8(_mm_set1_epi8((char)(len - 32)), _mm256_castsi256_si128(iota)));
    unsigned non_ascii = _mm256_movemask_epi8(a) | _mm_movemask_epi8(b) ? 0x80 : 0;
    return large_key(f, w, w->key[j], a, b, (unsigned)len | non_ascii);
}

static inline bool same_long(const ses_bert_large_entry *x, const char *key)
{
    __m256i a = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)x->key),
                                 _mm256_loadu_si256((const __m256i *)key));
    __m128i b = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(x->key + 32)),
                              _mm_loadu_si128((const __m128i *)(key + 32)));
    a = _mm256_or_si256(a, _mm256_zextsi128_si256(b));
    return _mm256_testz_si256(a, a);
}

static inline __m256i load8(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}

/* If the piece is in the large cache, append its tokens and return true. */
static inline bool emit_large(const ses_bert_large_entry *x, const char *key, ses_token_buf *r, uint32_t at)
{
    if (!same_long(x, key) && !same_long(++x, key)) return false;
    const __m256i base = _mm256_set1_epi32((int)at), words = _mm256_set1_epi32((int)r->n_words);
    for (size_t i = 0; i < x->n; i += 8) { /* writes up to seven surplus entries */
        size_t to = r->n + i;
        __m256i begin = _mm256_add_epi32(load8(x->begin + i), base);
        __m256i end = _mm256_add_epi32(load8(x->end + i), base);
        __m256i lowered = _mm256_unpacklo_epi32(begin, end), high = _mm256_unpackhi_epi32(begin, end);
        _mm256_storeu_si256((__m256i *)(r->id + to), _mm256_loadu_si256((const __m256i *)(x->id + i)));
        _mm256_storeu_si256((__m256i *)(r->byte_offset + to), _mm256_permute2x128_si256(lowered, high, 0x20));
        _mm256_storeu_si256((__m256i *)(r->byte_offset + to + 4),
                            _mm256_permute2x128_si256(lowered, high, 0x31));
        _mm256_storeu_si256((__m256i *)(r->word_id + to), words);
    }
    if (x->words != 1)
        for (unsigned i = 0, word = r->n_words - 1; i < x->n; i++)
            r->word_id[r->n + i] = (int32_t)(word += x->starts >> i & 1);
    r->n += x->n;
    r->n_words += x->words;
    return true;
}

/* A piece that is not in the small cache, or too long for it: look in the large cache, else encode it. */
static bool encode_not_small(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k, const char *text,
                             size_t base, size_t at, size_t len, uint32_t slot, const char *key,
                             ses_word_cache_entry *small, ses_err *e)
{
    if (len > SES_BERT_LONG) return ses_bert_encode_long(f, w, k, text, base, at, len, e);
    return emit_large(&w->large[slot], key, &k->tokens, (uint32_t)(base + at)) ||
           ses_bert_encode_miss(f, w, k, text, base + at, len, key, slot, small, e);
}

static bool encode_short(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k, const char *text,
                         size_t base, size_t at, size_t len, __m128i key, ses_word_cache_entry *small,
                         ses_err *e)
{
    __m256i word = _mm256_zextsi128_si256(_mm_bsrli_si128(_mm_bslli_si128(key, 1), 1));
    uint32_t slot = large_key(f, w, w->key[SES_BERT_BATCH], word, _mm_setzero_si128(),
                              (unsigned)_mm_extract_epi8(key, 15));
    return encode_not_small(f, w, k, text, base, at, len, slot, w->key[SES_BERT_BATCH], small, e);
}

static bool encode_window(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k, const char *text,
                          size_t base, size_t n, ses_err *e)
{
    const __m128i iota = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 127);
    __m128i key[SES_BERT_BATCH];
    uint32_t slot[SES_BERT_BATCH];
    ses_token_buf *r = &k->tokens;
    n = ses_bert_find_pieces(w, n);
    for (size_t i = 0; i < n; i += SES_BERT_BATCH) {
        size_t count = n - i < SES_BERT_BATCH ? n - i : SES_BERT_BATCH;
        for (size_t j = 0; j < count; j++) {
            size_t at = w->begin[i + j], len = (size_t)w->end[i + j] - at + 1;
            if (len > SES_BERT_SHORT) {
                slot[j] = len > SES_BERT_LONG ? 0 : long_key(f, w, j, at, len);
                continue;
            }
            __m128i v = _mm_and_si128(_mm_loadu_si128((const __m128i *)(w->lowered + at)),
                                      _mm_cmpgt_epi8(_mm_set1_epi8((char)len), iota));
            unsigned size = (unsigned)len | (_mm_movemask_epi8(v) ? 0x80 : 0);
            v = _mm_or_si128(v, _mm_slli_si128(_mm_cvtsi32_si128((int)size), 15));
            uint64_t h =
                ses_word_hash16(&f->hash, (uint64_t)_mm_cvtsi128_si64(v), (uint64_t)_mm_extract_epi64(v, 1));
            slot[j] = 2 * (uint32_t)(h >> (64 - SES_BERT_SMALL_BITS));
            _mm_prefetch((const char *)&w->small[slot[j]], _MM_HINT_T0);
            key[j] = v;
        }
        for (size_t j = 0; j < count; j++) {
            size_t at = w->begin[i + j], len = (size_t)w->end[i + j] - at + 1;
            ses_word_cache_entry *x = &w->small[slot[j]];
            if (len > SES_BERT_SHORT) {
                if (!encode_not_small(f, w, k, text, base, at, len, slot[j], w->key[j], NULL, e))
                    return false;
            } else if (ses_word_cache_matches(x, key[j]) ||
                       (ses_word_cache_matches(x + 1, key[j]) && ses_word_cache_promote(x))) {
                ses_word_cache_emit(r, x, (uint32_t)(base + at), _mm_setzero_si128());
                r->n += x->n;
                r->n_words++;
            } else if (!encode_short(f, w, k, text, base, at, len, key[j], x, e)) {
                return false;
            }
        }
    }
    return true;
}
