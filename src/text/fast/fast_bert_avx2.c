/* Fast path for BERT: classification of bytes with AVX2. */
#include "fast_bert_simd.h"

bool ses_bert_encode_window_avx2(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k,
                                 const char *text, size_t base, size_t n, ses_err *e)
{
    return encode_window(f, w, k, text, base, n, e);
}

static uint32_t in_set(__m256i rows, __m256i lowered, __m256i high)
{
    __m256i bits = _mm256_and_si256(_mm256_shuffle_epi8(rows, lowered), high);
    return ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bits, _mm256_setzero_si256()));
}

static __m256i twice(const uint8_t row[16])
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)row));
}

void ses_bert_classify_avx2(const ses_bert_fast *f, ses_bert_work *w, const char *text, size_t n)
{
    const uint8_t bit[16] = { 1, 2, 4, 8, 16, 32, 64, 128 };
    const __m256i space = twice(f->space), punct = twice(f->punct), check = twice(f->check),
                  bits = twice(bit);
    const __m256i nibble = _mm256_set1_epi8(15), wide_on = _mm256_set1_epi8(f->check_non_ascii ? -128 : 0);
    const __m256i before_a = _mm256_set1_epi8('A' - 1), after_z = _mm256_set1_epi8('Z' + 1);
    const __m256i step = _mm256_set1_epi8(f->lower ? 32 : 0);
    for (size_t i = 0; i < n; i += 64) {
        uint64_t masks[3] = { 0 };
        for (size_t h = 0; h < 64; h += 32) {
            char tail[32];
            const char *p = text + i + h;
            if (i + h + 32 > n) { /* pad with a space */
                memset(tail, ' ', sizeof tail);
                if (i + h < n) memcpy(tail, p, n - i - h);
                p = tail;
            }
            __m256i v = _mm256_loadu_si256((const __m256i *)p);
            __m256i upper = _mm256_and_si256(_mm256_cmpgt_epi8(v, before_a), _mm256_cmpgt_epi8(after_z, v));
            _mm256_storeu_si256((__m256i *)(w->lowered + i + h),
                                _mm256_add_epi8(v, _mm256_and_si256(upper, step)));
            __m256i lowered = _mm256_and_si256(v, nibble);
            __m256i high = _mm256_shuffle_epi8(bits, _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble));
            masks[0] |= (uint64_t)in_set(space, lowered, high) << h;
            masks[1] |= (uint64_t)in_set(punct, lowered, high) << h;
            uint32_t check_non_ascii = (uint32_t)_mm256_movemask_epi8(_mm256_and_si256(v, wide_on));
            masks[2] |= (uint64_t)(in_set(check, lowered, high) | check_non_ascii) << h;
        }
        uint64_t inside = n - i < 64 ? ((uint64_t)1 << (n - i)) - 1 : ~(uint64_t)0;
        w->word[i / 64] = ~(masks[0] | masks[1]) & inside;
        w->punct[i / 64] = masks[1] & inside;
        w->check[i / 64] = masks[2] & inside;
    }
}
