#include "points.h"

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

static void fill(ses_point_block *block, const char *text, size_t n)
{
    uint64_t before = 0;
    size_t i = 0;
    for (; i + 64 <= n; i += 64, block++) {
        *block = (ses_point_block){ inside_of(text + i), before };
        before += (uint64_t)__builtin_popcountll(block->inside);
    }
    char tail[64] = { 0 };
    if (n > i) memcpy(tail, text + i, n - i);
    *block = (ses_point_block){ inside_of(tail), before };
}

/* Characters that begin before at. */
static inline uint32_t leads(const ses_point_block *block, size_t at)
{
    const ses_point_block *b = &block[at / 64];
    uint64_t low = b->inside & (((uint64_t)1 << at % 64) - 1);
    return (uint32_t)(at - b->before - (uint64_t)__builtin_popcountll(low));
}

static inline uint32_t point_at(const ses_point_block *block, size_t at)
{
    return leads(block, at) - (uint32_t)(block[at / 64].inside >> at % 64 & 1);
}

void ses_points_avx2(ses_point_block *block, const char *text, size_t n, const ses_offset *byte,
                     ses_offset *point, size_t count)
{
    fill(block, text, n);
    for (size_t i = 0; i < count; i++) {
        ses_offset b = byte[i];
        if (b.begin >= n) {
            point[i] = b;
            continue;
        }
        uint32_t begin = point_at(block, b.begin);
        uint32_t end = b.end <= n ? point_at(block, b.end) : b.end - 1 < n ? leads(block, n) : begin + 2;
        point[i] = (ses_offset){ begin, end };
    }
}
