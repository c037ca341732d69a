/* Appends the tokens of a record to a buffer that has capacity for them and SES_WORD_STORE_SLACK more. */
#ifndef SES_TEXT_WORD_STORE_EMIT_H
#define SES_TEXT_WORD_STORE_EMIT_H

#include "text/tokenizer_impl.h"
#include "word_store.h"

#ifdef __AVX2__
#include <immintrin.h>

static inline __m256i ses_word_record_load8(const uint8_t *p, size_t width)
{
    return width == 1 ? _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p))
                      : _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
}

static inline void ses_word_record_emit_width(ses_token_buf *r, const ses_word_record *x, uint32_t at,
                                              size_t width)
{
    ses_word_record_parts p = ses_word_record_parts_of(x);
    const __m256i base = _mm256_set1_epi32((int)at), words = _mm256_set1_epi32((int)r->n_words);
    for (size_t i = 0; i < x->n; i += 8) {
        size_t to = r->n + i;
        __m256i begin = _mm256_add_epi32(ses_word_record_load8(p.begin + width * i, width), base);
        __m256i end = _mm256_add_epi32(ses_word_record_load8(p.end + width * i, width), base);
        __m256i low = _mm256_unpacklo_epi32(begin, end), high = _mm256_unpackhi_epi32(begin, end);
        __m256i word = x->split ? _mm256_add_epi32(ses_word_record_load8(p.word + i, 1), words) : words;
        _mm256_storeu_si256((__m256i *)(r->id + to), _mm256_loadu_si256((const __m256i *)(p.id + i)));
        _mm256_storeu_si256((__m256i *)(r->byte_offset + to), _mm256_permute2x128_si256(low, high, 0x20));
        _mm256_storeu_si256((__m256i *)(r->byte_offset + to + 4), _mm256_permute2x128_si256(low, high, 0x31));
        _mm256_storeu_si256((__m256i *)(r->word_id + to), word);
    }
    r->n += x->n;
    r->n_words += x->words;
}

static inline void ses_word_record_emit(ses_token_buf *r, const ses_word_record *x, uint32_t at)
{
    if (x->len <= SES_WORD_STORE_NARROW)
        ses_word_record_emit_width(r, x, at, 1);
    else
        ses_word_record_emit_width(r, x, at, 2);
}
#else
static inline void ses_word_record_emit(ses_token_buf *r, const ses_word_record *x, uint32_t at)
{
    ses_word_record_parts p = ses_word_record_parts_of(x);
    for (size_t i = 0; i < x->n; i++) {
        r->id[r->n + i] = p.id[i];
        ses_offset o = ses_word_record_offset(&p, i);
        r->byte_offset[r->n + i] = (ses_offset){ at + o.begin, at + o.end };
        r->word_id[r->n + i] = (int32_t)(r->n_words + (x->split ? p.word[i] : 0u));
    }
    r->n += x->n;
    r->n_words += x->words;
}
#endif

#endif
