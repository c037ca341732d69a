/* Scanner for GPT-2's split pattern,
 *       's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * The matches cover the whole text. Stateless and thread-safe. */
#ifndef SES_TEXT_SCAN_GPT2_H
#define SES_TEXT_SCAN_GPT2_H

#include "sesame/base.h"

/* Length of the match at p, from 1 to n. p is valid UTF-8, n > 0, and p is the start of a match. */
size_t ses_scan_gpt2(const char *p, size_t n);

#endif
