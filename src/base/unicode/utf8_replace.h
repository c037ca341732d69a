/* Replaces invalid UTF-8: each maximal subpart becomes one U+FFFD, as recommended by Unicode and
 * implemented in Rust and Python. Stateless and thread-safe. */
#ifndef SES_BASE_UTF8_REPLACE_H
#define SES_BASE_UTF8_REPLACE_H

#include "base/str.h"

/* Length of the next character (*good), or of the next invalid sequence that becomes one U+FFFD; n > 0. */
size_t ses_utf8_next_subpart(const char *p, size_t n, bool *good);

/* Append p[0, n) to out with invalid sequences replaced. False: out of memory, recorded in out. */
bool ses_utf8_replace_invalid(ses_buf *out, const char *p, size_t n);

#endif
