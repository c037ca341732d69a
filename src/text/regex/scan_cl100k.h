/* Scanner for the split patterns of cl100k and related tokenizers,
 *     (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|
 *     \s+(?!\S)|\s+
 * The matches cover the whole text. Stateless and thread-safe. */
#ifndef SES_TEXT_SCAN_CL100K_H
#define SES_TEXT_SCAN_CL100K_H

#include "sesame/base.h"

/* Length of the match at p, from 1 to n. p is valid UTF-8, n > 0, and p is the start of a match. digits: D
 * in the pattern, 0: unlimited. */
size_t ses_scan_cl100k(const char *p, size_t n, unsigned digits);

#endif
