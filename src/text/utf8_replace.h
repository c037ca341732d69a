/* Bytes that may not be UTF-8, made so: each longest stretch that could have begun a character becomes one
 * U+FFFD (what Unicode recommends, and Rust's and Python's decoders do). */
#ifndef SES_TEXT_LOSSY_H
#define SES_TEXT_LOSSY_H

#include "base/str.h"

/* Bytes at p that are one character (*good) or become one U+FFFD; n > 0. */
size_t ses_lossy_step(const char *p, size_t n, bool *good);

bool ses_lossy_append(ses_buf *out, const char *p, size_t n);

#endif
