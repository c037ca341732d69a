/* Fast path for byte-level BPE: classification of bytes with AVX-512. */
#include "fast_byte_bpe.h"

#include <immintrin.h>

static inline uint64_t in(__m512i v, char low, char span)
{
    return _mm512_cmplt_epu8_mask(_mm512_sub_epi8(v, _mm512_set1_epi8(low)), _mm512_set1_epi8(span));
}

uint64_t ses_byte_bpe_classify_avx512(ses_byte_bpe_work *w, size_t n)
{
    uint64_t wide = 0;
    for (size_t i = 0; i < n; i += 64) {
        uint64_t inside = n - i < 64 ? ((uint64_t)1 << (n - i)) - 1 : ~(uint64_t)0;
        __m512i v = _mm512_loadu_si512(w->text + i), low = _mm512_or_si512(v, _mm512_set1_epi8(32));
        uint64_t non_ascii = _mm512_movepi8_mask(v),
                 is_space = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8(' '));
        w->letter[i / 64] = in(low, 'a', 26) & ~non_ascii & inside;
        w->number[i / 64] = in(v, '0', 10) & inside;
        w->space[i / 64] = (is_space | in(v, 9, 5)) & inside;
        w->is_space[i / 64] = is_space & inside;
        w->apostrophe[i / 64] = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('\'')) & inside;
        w->non_ascii[i / 64] = non_ascii;
        w->continuation[i / 64] = non_ascii ? in(v, (char)0x80, 64) : 0;
        wide |= (uint64_t)(non_ascii != 0) << i / 64;
    }
    return wide;
}
