/* Little-endian integers in byte arrays, which may be unaligned. */
#ifndef SES_BASE_BYTES_H
#define SES_BASE_BYTES_H

#include "sesame/base.h"

/* The integer in n bytes, n at most 8. */
static inline uint64_t ses_le(const unsigned char *p, size_t n)
{
    uint64_t x = 0;
    for (size_t i = n; i-- > 0;) x = x << 8 | p[i];
    return x;
}

static inline uint16_t ses_le16(const unsigned char *p) { return (uint16_t)ses_le(p, 2); }
static inline uint32_t ses_le32(const unsigned char *p) { return (uint32_t)ses_le(p, 4); }
static inline uint64_t ses_le64(const unsigned char *p) { return ses_le(p, 8); }

#endif
