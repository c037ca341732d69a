/* Base64 (RFC 4648), strict: groups of four characters, padded, no stray bits. Buffers are the caller's. */
#ifndef SES_BASE_BASE64_H
#define SES_BASE_BASE64_H

#include "sesame/base.h"

static inline size_t ses_base64_encoded_size(size_t n)
{
    return (n + 2) / 3 * 4;
} /* characters for n bytes */
static inline size_t ses_base64_max_decoded_size(size_t n) { return n / 4 * 3; } /* bytes for n characters */

void ses_base64_encode(const void *bytes, size_t n, char *out);
bool ses_base64_decode(const char *text, size_t n, void *out, size_t *bytes, ses_err *e);

#endif
