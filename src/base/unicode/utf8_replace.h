/* Replacement of invalid UTF-8 by U+FFFD: one per maximal subpart, as Unicode recommends and as the
 * decoders of Rust (from_utf8_lossy) and Python do. Thread-safe. */
#ifndef SES_BASE_UTF8_REPLACE_H
#define SES_BASE_UTF8_REPLACE_H

#include "base/str.h"

/* Bytes at p that form one character (*valid), or one maximal subpart of an invalid one; n > 0. */
size_t ses_utf8_next_subpart(const char *p, size_t n, bool *valid);

/* Appends n bytes at p to out, with invalid bytes replaced. False: out of memory, see ses_buf_ok. */
bool ses_utf8_replace_invalid(ses_buf *out, const char *p, size_t n);

#endif
