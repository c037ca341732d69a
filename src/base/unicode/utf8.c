/* UTF-8 decoding, encoding, validation and replacement of invalid bytes. */
#include "utf8.h"

#include <string.h>

size_t ses_utf8_decode(const char *p, size_t n, uint32_t *cp)
{
    const unsigned char *s = (const unsigned char *)p;
    if (!n) return 0;
    if (s[0] < 0x80) return *cp = s[0], 1;
    /* The range of the second byte excludes overlong forms, surrogates and values above U+10FFFF. */
    unsigned low = 0x80, high = 0xBF;
    size_t len;
    if (s[0] >= 0xC2 && s[0] <= 0xDF) {
        len = 2;
    } else if (s[0] >= 0xE0 && s[0] <= 0xEF) {
        len = 3;
        if (s[0] == 0xE0) low = 0xA0;
        if (s[0] == 0xED) high = 0x9F;
    } else if (s[0] >= 0xF0 && s[0] <= 0xF4) {
        len = 4;
        if (s[0] == 0xF0) low = 0x90;
        if (s[0] == 0xF4) high = 0x8F;
    } else {
        return 0;
    }
    if (n < len || s[1] < low || s[1] > high) return 0;
    uint32_t c = s[0] & (0x7Fu >> len);
    c = c << 6 | (s[1] & 0x3Fu);
    for (size_t i = 2; i < len; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
        c = c << 6 | (s[i] & 0x3Fu);
    }
    *cp = c;
    return len;
}

/* Bytes of a two- or three-byte character that passes a quick check; else 0. */
static inline size_t quick_multibyte(const unsigned char *s)
{
    if (s[0] >= 0xC2 && s[0] < 0xE0) return (s[1] & 0xC0) == 0x80 ? 2 : 0;
    bool three = s[0] > 0xE0 ? s[0] < 0xF0 && s[0] != 0xED : s[0] == 0xE0 && s[1] >= 0xA0;
    return three && ((s[1] ^ 0x80) | (s[2] ^ 0x80)) < 0x40 ? 3 : 0;
}

size_t ses_utf8_valid(const char *p, size_t n)
{
    const unsigned char *s = (const unsigned char *)p;
    size_t i = 0;
    while (i < n) {
        uint64_t word;
        size_t k = 0;
        if (n - i >= sizeof word) {
            memcpy(&word, p + i, sizeof word);
            word &= 0x8080808080808080u;
            if (!word) {
                i += sizeof word;
                continue;
            }
            while (s[i] < 0x80) i++;
            if (n - i >= 3) k = quick_multibyte(s + i);
        }
        uint32_t cp;
        if (!k) k = ses_utf8_decode(p + i, n - i, &cp);
        if (!k) return i;
        i += k;
    }
    return n;
}

size_t ses_utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF)) return 0;
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

bool ses_is_ascii(const char *p, size_t n)
{
    uint64_t any = 0, word;
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        for (size_t j = 0; j < 32; j += 8) memcpy(&word, p + i + j, 8), any |= word;
    for (; i < n; i++) any |= (uint8_t)p[i];
    return !(any & 0x8080808080808080u);
}
