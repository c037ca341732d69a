/* UTF-8 validation with AVX2, 64 bytes at a time. */
#include "utf8_valid_avx2.h"

#include <immintrin.h>
#include <string.h>

typedef struct block { /* 64 bytes */
    __m256i a, b;
} block;

static inline uint64_t bits(__m256i a, __m256i b)
{
    return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

/* Mask of bytes greater than c. Flipping the top bit turns signed comparison into unsigned. */
static inline uint64_t above(block v, uint8_t c)
{
    __m256i x = _mm256_set1_epi8((char)(c ^ 0x80));
    return bits(_mm256_cmpgt_epi8(v.a, x), _mm256_cmpgt_epi8(v.b, x));
}

static inline uint64_t is(block v, uint8_t c)
{
    __m256i x = _mm256_set1_epi8((char)(c ^ 0x80));
    return bits(_mm256_cmpeq_epi8(v.a, x), _mm256_cmpeq_epi8(v.b, x));
}

/* Lead bytes of two-, three- and four-byte characters in the previous block that continue in this one. */
typedef struct carry {
    uint64_t two, three, four, e0, ed, f0, f4;
} carry;

static inline uint64_t later(uint64_t now, uint64_t before, int by)
{
    return now << by | before >> (64 - by);
}

/* Whether the block contains invalid UTF-8, or completes an invalid character of the previous block. */
static bool has_error(block v, carry *c)
{
    uint64_t over7f = above(v, 0x7F), over_bf = above(v, 0xBF), over_df = above(v, 0xDF),
             over_ef = above(v, 0xEF);
    carry n = { over_bf & ~over_df, over_df & ~over_ef, over_ef,    is(v, 0xE0),
                is(v, 0xED),        is(v, 0xF0),        is(v, 0xF4) };
    uint64_t inner = over7f & ~over_bf, any = n.two | n.three | n.four,
             any_before = c->two | c->three | c->four;
    uint64_t want = later(any, any_before, 1) | later(n.three | n.four, c->three | c->four, 2) |
                    later(n.four, c->four, 3);
    uint64_t over8f = above(v, 0x8F), over9f = above(v, 0x9F);
    /* overlong forms, surrogates, and past U+10FFFF */
    uint64_t bad = (over_bf & ~above(v, 0xC1)) | above(v, 0xF4) | (later(n.e0, c->e0, 1) & ~over9f) |
                   (later(n.ed, c->ed, 1) & over9f) | (later(n.f0, c->f0, 1) & ~over8f) |
                   (later(n.f4, c->f4, 1) & over8f);
    *c = n;
    return bad | (want ^ inner);
}

static inline block load(const char *p)
{
    const __m256i top = _mm256_set1_epi8((char)0x80);
    return (block){ _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)p), top),
                    _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(p + 32)), top) };
}

bool ses_utf8_valid_avx2(const char *p, size_t n)
{
    carry c = { 0 };
    size_t i = 0;
    for (; i + 64 <= n; i += 64)
        if (has_error(load(p + i), &c)) return false;
    char tail[64] = { 0 }; /* zero is not a continuation byte, so a truncated last character is detected */
    if (i < n) memcpy(tail, p + i, n - i);
    return !has_error(load(tail), &c);
}
