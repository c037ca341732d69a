/* Bytes that may not be UTF-8, made so: each longest stretch that could have begun a character becomes one
 * U+FFFD (what Unicode recommends, and Rust's and Python's decoders do). */
#ifndef SES_TEXT_LOSSY_H
#define SES_TEXT_LOSSY_H

#include "base/str.h"

/* Bytes at p that are one character (*good) or become one U+FFFD; n > 0. */
size_t ses_utf8_next_subpart(const char *p, size_t n, bool *good);

bool ses_utf8_replace_invalid(ses_buf *out, const char *p, size_t n);

#endif
