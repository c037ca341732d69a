/* Conversion of byte offsets to code point offsets with AVX2. */
#include "codepoint_offsets.h"

#include <immintrin.h>
#include <string.h>

static uint64_t inside_of(const char *p)
{
    const __m256i lead = _mm256_set1_epi8(-65); /* 0x80 to 0xBF are -128 to -65 */
    __m256i a = _mm256_loadu_si256((const __m256i *)p), b = _mm256_loadu_si256((const __m256i *)(p + 32));
    uint32_t x = (uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi8(a, lead));
    uint32_t y = (uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi8(b, lead));
    return ~((uint64_t)y << 32 | x);
}

static void fill(ses_codepoint_block *block, const char *text, size_t n)
{
    uint64_t before = 0;
    size_t i = 0;
    for (; i + 64 <= n; i += 64, block++) {
        *block = (ses_codepoint_block){ inside_of(text + i), before };
        before += (uint64_t)__builtin_popcountll(block->inside);
    }
    char tail[64] = { 0 };
    if (n > i) memcpy(tail, text + i, n - i);
    *block = (ses_codepoint_block){ inside_of(tail), before };
}

/* Number of characters that start before byte `at`. */
static inline uint32_t count_starts(const ses_codepoint_block *block, size_t at)
{
    const ses_codepoint_block *b = &block[at / 64];
    uint64_t low = b->inside & (((uint64_t)1 << at % 64) - 1);
    return (uint32_t)(at - b->before - (uint64_t)__builtin_popcountll(low));
}

static inline uint32_t codepoint_at(const ses_codepoint_block *block, size_t at)
{
    return count_starts(block, at) - (uint32_t)(block[at / 64].inside >> at % 64 & 1);
}

void ses_codepoint_offsets_avx2(ses_codepoint_block *block, const char *text, size_t n,
                                const ses_offset *byte, ses_offset *point, size_t count)
{
    fill(block, text, n);
    for (size_t i = 0; i < count; i++) {
        ses_offset b = byte[i];
        if (b.begin >= n) {
            point[i] = b;
            continue;
        }
        uint32_t begin = codepoint_at(block, b.begin);
        uint32_t end = b.end <= n      ? codepoint_at(block, b.end)
                       : b.end - 1 < n ? count_starts(block, n)
                                       : begin + 2;
        point[i] = (ses_offset){ begin, end };
    }
}

/* Character index of eight bytes: the byte's position minus the continuation bytes up to and including it.
 * *before: continuation bytes before these eight; updated. */
static inline void list_eight_bytes(uint32_t *list, uint64_t word, size_t at, uint64_t *before)
{
    const __m256i iota = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const uint64_t ones = 0x0101010101010101u;
    /* prefix sums of the continuation bytes, one per byte */
    uint64_t sums = (word >> 7 & ~(word >> 6) & ones) * ones;
    __m256i inner = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)sums));
    __m256i position = _mm256_add_epi32(iota, _mm256_set1_epi32((int)(at - *before)));
    _mm256_storeu_si256((__m256i *)(list + at), _mm256_sub_epi32(position, inner));
    *before += sums >> 56;
}

void ses_codepoint_offsets_short_avx2(uint32_t *list, const char *text, size_t n, const ses_offset *byte,
                                      ses_offset *point, size_t count)
{
    uint64_t before = 0, word = 0;
    size_t at = 0;
    for (; at + 8 <= n; at += 8) {
        memcpy(&word, text + at, sizeof word);
        list_eight_bytes(list, word, at, &before);
    }
    word = 0;
    if (at < n) memcpy(&word, text + at, n - at);
    list_eight_bytes(list, word, at, &before);
    for (size_t i = 0; i < count; i++) {
        ses_offset b = byte[i], p = b;
        if (b.begin < n) {
            p.begin = list[b.begin];
            p.end = b.end <= n ? list[b.end] : b.end - 1 < n ? list[n] : p.begin + 2;
        }
        point[i] = p;
    }
}
