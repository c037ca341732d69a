/* Lower case of UTF-8 text. Nothing is owned; any thread may call. */
#ifndef SES_BASE_UNICODE_LOWERCASE_H
#define SES_BASE_UNICODE_LOWERCASE_H

#include "base/str.h"

/* Decodes one character: returns its bytes, at least 1 if n is; *cp is above 0x10FFFF for a byte that is not
 * UTF-8. */
size_t ses_char_at(const char *s, size_t n, uint32_t *cp);

/* Appends s in lower case as Python's str.lower does, a final sigma included. Invalid bytes are copied. */
bool ses_lower_append(ses_buf *out, const char *s, size_t n);

#endif
