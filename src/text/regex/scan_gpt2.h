/* GPT-2's split pattern,
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * by hand. Its matches tile a text. */
#ifndef SES_TEXT_SCAN_GPT2_H
#define SES_TEXT_SCAN_GPT2_H

#include "sesame/types.h"

/* Bytes of the match that begins at p, 1 to n. p is valid UTF-8, n > 0, and a match begins there. */
size_t ses_scan_gpt2(const char *p, size_t n);

#endif
