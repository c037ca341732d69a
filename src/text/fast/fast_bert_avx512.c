/* Fast path for BERT: classification of bytes with AVX-512. */
#include "fast_bert.h"

#include <immintrin.h>

static __m512i four_times(const uint8_t row[16])
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)row));
}

static uint64_t in_set(__m512i rows, __m512i lowered, __m512i high)
{
    return _mm512_test_epi8_mask(_mm512_shuffle_epi8(rows, lowered), high);
}

void ses_bert_classify_avx512(const ses_bert_fast *f, ses_bert_work *w, const char *text, size_t n)
{
    const uint8_t bit[16] = { 1, 2, 4, 8, 16, 32, 64, 128 };
    const __m512i space = four_times(f->space), punct = four_times(f->punct), check = four_times(f->check);
    const __m512i bits = four_times(bit), nibble = _mm512_set1_epi8(15);
    const __m512i a = _mm512_set1_epi8('A'), z = _mm512_set1_epi8('Z' - 'A');
    const __m512i step = _mm512_set1_epi8(f->lower ? 32 : 0);
    for (size_t i = 0; i < n; i += 64) {
        uint64_t inside = n - i < 64 ? ((uint64_t)1 << (n - i)) - 1 : ~(uint64_t)0;
        __m512i v = _mm512_maskz_loadu_epi8(inside, text + i);
        __mmask64 upper = _mm512_cmple_epu8_mask(_mm512_sub_epi8(v, a), z);
        _mm512_storeu_si512(w->lowered + i, _mm512_mask_add_epi8(v, upper, v, step));
        __m512i lowered = _mm512_and_si512(v, nibble);
        __m512i high = _mm512_shuffle_epi8(bits, _mm512_and_si512(_mm512_srli_epi16(v, 4), nibble));
        uint64_t spaces = in_set(space, lowered, high), marks = in_set(punct, lowered, high);
        uint64_t check_non_ascii = f->check_non_ascii ? _mm512_movepi8_mask(v) : 0;
        w->word[i / 64] = ~(spaces | marks) & inside;
        w->punct[i / 64] = marks & inside;
        w->check[i / 64] = (in_set(check, lowered, high) | check_non_ascii) & inside;
    }
}
