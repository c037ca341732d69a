/* UTF-8, strict: no overlong forms, no surrogates, nothing above U+10FFFF. All functions are thread-safe. */
#ifndef SES_BASE_UTF8_H
#define SES_BASE_UTF8_H

#include "sesame/base.h"

/* Decodes one character; returns its bytes, 1 to 4; 0: invalid, or n is 0. */
size_t ses_utf8_decode(const char *p, size_t n, uint32_t *cp);
size_t ses_utf8_valid(const char *p, size_t n); /* bytes before the first invalid one; n: all valid */
bool ses_is_ascii(const char *p, size_t n);
size_t ses_utf8_encode(uint32_t cp, char out[4]); /* bytes written; 0: not a scalar value */

/* Whether a byte of valid text continues a character: it is not its first byte. */
static inline bool ses_utf8_continues(char byte) { return ((unsigned char)byte & 0xC0) == 0x80; }

/* Number of characters in n bytes of valid text. */
static inline size_t ses_utf8_count(const char *p, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += !ses_utf8_continues(p[i]);
    return count;
}

/* Decodes one character of valid text; returns its bytes. */
static inline size_t ses_utf8_next(const char *p, uint32_t *cp)
{
    const unsigned char *s = (const unsigned char *)p;
    if (s[0] < 0x80) return *cp = s[0], 1;
    if (s[0] < 0xE0) return *cp = (s[0] & 0x1Fu) << 6 | (s[1] & 0x3Fu), 2;
    if (s[0] < 0xF0) return *cp = (s[0] & 0x0Fu) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3Fu), 3;
    return *cp = (s[0] & 0x07u) << 18 | (s[1] & 0x3Fu) << 12 | (s[2] & 0x3Fu) << 6 | (s[3] & 0x3Fu), 4;
}

#endif
